"""The pure pieces by tables: heads, answers; and the access log."""

import json
from pathlib import Path

import pytest
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.access_log import AccessLine, AccessLog
from trivium.frontends.http.request import join_repeated, read_head
from trivium.frontends.http.response import CHUNKED, CLOSE, opening, part, whole
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.wire import HttpAnswer


@pytest.mark.parametrize(
    ("url", "path", "query"),
    [
        (b"/", "/", ""),
        (b"/v2/models/a%2Fb", "/v2/models/a%2Fb", ""),
        (b"/a?b=c?d", "/a", "b=c?d"),
        (b"//a", "//a", ""),
        (b"http://h/a?b", "/a", "b"),
        (b"HTTPS://h", "/", ""),
    ],
)
def test_targets(url: bytes, path: str, query: str) -> None:
    head = read_head(b"GET", url, {b"host": b"h"}, True)
    assert (head.method, head.path, head.query, head.content_length) == ("GET", path, query, 0)


def test_lengths() -> None:
    assert read_head(b"HEAD", b"/", {b"content-length": b"12"}, False) == read_head(
        b"GET", b"/", {b"content-length": b"12"}, False
    )
    chunked = {b"host": b"h", b"transfer-encoding": b"CHUNKED"}
    assert read_head(b"POST", b"/", chunked, True).content_length is None
    with pytest.raises(ServeError, match=r"6\.1"):
        read_head(b"POST", b"/", chunked, False)


def test_repeated_fields_join_unless_there_can_be_only_one() -> None:
    headers = {b"accept": b"a", b"host": b"h"}
    join_repeated(headers, b"accept", b"b")
    assert headers[b"accept"] == b"a, b"
    with pytest.raises(ServeError, match="host came twice"):
        join_repeated(headers, b"host", b"h")


def test_answers() -> None:
    answer = HttpAnswer(404, b"A: b\r\n", (b"xy", memoryview(b"z")), 3)
    start = b"HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 3\r\n"
    assert b"".join(whole(answer, b"", False)) == start + b"\r\nxyz"
    assert b"".join(whole(answer, CLOSE, True)) == start + b"Connection: close\r\n\r\n"
    assert b"".join(whole(HttpAnswer(204, b"", (), 0), b"", False)) == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert (
        b"".join(whole(HttpAnswer(299, b"", (), 0), b"", False))
        == b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"
    )


def test_parts() -> None:
    first = HttpAnswer(200, b"", (b"x" * 17,), 17, final=False)
    assert b"".join(opening(first, CHUNKED)) == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b"".join(part(first, True)) == b"11\r\n" + b"x" * 17 + b"\r\n"
    assert b"".join(part(first, False)) == b"x" * 17
    last = HttpAnswer(200, b"", (), 0)
    assert b"".join(part(last, True)) == b"0\r\n\r\n"
    assert part(last, False) == []


def test_the_access_log_has_a_line_per_answer(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    stage = HttpHarness()
    stage.core.is_prompt = False
    stage.site.log = AccessLog(str(path))
    stage.send(get("a").replace(b"GET", b"HEAD") + post("b", b"abc") + get("missing") + get("c"))
    stage.wait(2)
    stage.core.tickets[0].echo()
    stage.core.tickets[1].echo()
    stage.core.tickets[2].say(b"four")
    stage.core.tickets[2].answer(ResponsePart(error=ServeError(Code.EXPIRED, "late")))
    assert path.read_bytes() == b""
    stage.wait(1)
    stage.site.log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["method"], line["path"], line["status"], line["size"]) for line in lines] == [
        ("HEAD", "/echo/a", 200, 1),
        ("POST", "/echo/b", 200, 3),
        ("GET", "/echo/missing", 404, 12),
        ("GET", "/echo/c", 200, 4 + len("late")),
    ]
    assert lines[0]["peer"] == "192.0.2.1:4711"
    assert lines[0]["seconds"] == 2.0


def test_the_access_log_writes_many_lines_at_once_and_survives_a_full_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(str(path))
    for number in range(256):
        assert path.stat().st_size == 0
        log.add(AccessLine(float(number), "p", "GET", "/", 200, 0, 0.0))
    log.close()
    assert len(path.read_text().splitlines()) == 256
    full = AccessLog("/dev/full")
    full.add(AccessLine(0.0, "p", "GET", "/", 200, 0, 0.0))
    full.close()
    assert "may be lost: 1 (" in caplog.text
