"""Records as JSON: what is always there, whose lines they are, which requests they name, tracebacks, any text."""

import json
import logging
import sys
from typing import Any

import pytest

from trivium.commands.json_log import JsonFormatter
from trivium.types.recording import (
    RECORD_FACTS,
    WORKER_LINE,
    InstanceName,
    RequestName,
    WorkerLine,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"


def formatted(message: str, *, exc_info: Any = None, **extra: object) -> dict[str, Any]:
    record = logging.LogRecord("trivium.x", logging.WARNING, "f.py", 1, message, None, exc_info)
    record.created = 1764356368.5
    record.__dict__.update(extra)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    told = json.loads(text)
    assert isinstance(told, dict)
    return told


BASE = {"time": "2025-11-28T18:59:28.500Z", "level": "warning", "logger": "trivium.x"}


@pytest.mark.parametrize(
    "message", ["plain", "two\nlines", 'a "quote" \x1b[31m', "half \udc80 of a pair", "多"]
)
def test_any_message_is_one_line(message: str):
    told = formatted(message)
    assert told == {**BASE, "message": message.encode("utf-8", "backslashreplace").decode()}


def line(*requests: RequestName) -> dict[str, WorkerLine]:
    return {WORKER_LINE: WorkerLine(InstanceName("m", "2", 1), "stdout", "hello", "m_0", requests)}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ((), {}),
        ((RequestName("a"),), {"request_id": "a"}),
        ((RequestName("a", TRACE),), {"request_id": "a", "trace_id": TRACE}),
        ((RequestName("", TRACE),), {"trace_id": TRACE}),
        ((RequestName("a", TRACE), RequestName("b", TRACE)), {"request_ids": ["a", "b"], "trace_id": TRACE}),
        (
            (RequestName("a", "1"), RequestName("b", "2")),
            {"request_ids": ["a", "b"], "trace_ids": ["1", "2"]},
        ),
    ],
)
def test_a_workers_line_names_the_requests_in_hand(
    requests: tuple[RequestName, ...], expected: dict[str, object]
):
    whose = {"model": "m", "version": "2", "instance": "m_0", "stream": "stdout"}
    assert formatted("m_0 stdout: hello", **line(*requests)) == {
        **BASE,
        "message": "hello",
        **whose,
        **expected,
    }


def test_facts_and_a_traceback():
    try:
        raise ValueError("bad")
    except ValueError:
        told = formatted(
            "it failed", exc_info=sys.exc_info(), **{RECORD_FACTS: {"model": "m", "version": ""}}
        )
    assert told["model"] == "m"
    assert "version" not in told
    assert told["exception"].startswith("Traceback (most recent call last):\n")
    assert told["exception"].endswith("ValueError: bad")
