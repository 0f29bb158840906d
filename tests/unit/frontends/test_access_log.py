"""Lines of the access log: what was collected stands in them, what was not is left out, late facts are awaited."""

import json
from pathlib import Path
from typing import Any

import pytest

from trivium.frontends.access_log import AccessLine, AccessLog, ServedLine
from trivium.types.observing import RequestFacts

COMMON = (1764356368.5, "1.2.3.4:5", "POST", "/v2/models/m/infer", 200, 12, 0.25)
TOLD = {
    "peer": "1.2.3.4:5",
    "method": "POST",
    "path": "/v2/models/m/infer",
    "status": 200,
    "size": 12,
    "seconds": 0.25,
}
SERVED = RequestFacts("r", "m", "1", "", 4, 0.125, 0.0625)
SHOWN = {
    "request_id": "r",
    "model": "m",
    "version": "1",
    "requests_together": 4,
    "queue_seconds": 0.125,
    "compute_seconds": 0.0625,
}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("alike", "first"),
    [
        (False, {"time": 1764356368.5}),
        (
            True,
            {
                "time": "2025-11-28T18:59:28.500Z",
                "level": "info",
                "logger": "trivium.access",
                "message": "POST /v2/models/m/infer 200",
            },
        ),
    ],
)
def test_both_forms(tmp_path: Path, alike: bool, first: dict[str, object]):
    log = AccessLog(str(tmp_path / "log"), alike)
    log.add(AccessLine(*COMMON))
    log.add(ServedLine(*COMMON, facts=SERVED))
    log.add(ServedLine(*COMMON, facts=RequestFacts("r", "m", "1", queued=0.5, code="expired")))
    log.close()
    failed = {"request_id": "r", "model": "m", "version": "1", "queue_seconds": 0.5, "error": "expired"}
    assert lines(tmp_path / "log") == [
        {**first, **TOLD},
        {**first, **TOLD, **SHOWN},
        {**first, **TOLD, **failed},
    ]


def test_a_line_whose_execution_goes_on_is_written_with_the_next_ones(tmp_path: Path):
    log = AccessLog(str(tmp_path / "log"))
    facts = RequestFacts("late", "m", "1", waits=True)
    log.add(ServedLine(*COMMON, facts=facts))
    log.add(AccessLine(*COMMON))
    log.flush()
    facts.together, facts.waits = 1, False
    log.close()
    first, second = lines(tmp_path / "log")
    assert "request_id" not in first
    assert (second["request_id"], second["requests_together"]) == ("late", 1)
