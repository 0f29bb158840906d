"""Every row of the table, on a server of two listeners: status, reason, headers, body, and what the connection does."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.djl_table.differences import ACCEPTED
from tests.e2e.djl_table.models import lay_out
from tests.e2e.djl_table.rows import INFERENCE, Row, rows
from tests.harness.djl_serving import DjlServing, djl_serving

ROWS = rows()
BAD = [row for row in ROWS if row.status >= 400]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DjlServing]:
    root = tmp_path_factory.mktemp("table")
    with djl_serving(root / "log", "-s", lay_out(root / "models"), split=True) as running:
        yield running


def test_the_table_is_large_enough_and_no_row_is_there_twice() -> None:
    assert len(ROWS) >= 150
    assert len(BAD) >= 60
    assert len({row.name for row in ROWS}) >= len(ROWS) - 5


@pytest.mark.parametrize("row", [row for row in ROWS if row.name not in ACCEPTED], ids=lambda row: row.name)
def test_the_row_holds(server: DjlServing, row: Row) -> None:
    check(server, row)


def check(server: DjlServing, row: Row) -> None:
    status, reason, headers, body, stays = ask(server, row)
    told = f"{row.section}: {status} {reason} {headers} {body[:400]!r}"
    assert status == row.status, told
    if row.reason:
        assert reason == row.reason, told
    for name, value in row.headers.items():
        assert headers.get(name) == value, told
    assert not headers.keys() & set(row.absent), told
    if row.body is not None:
        assert body == row.body, told
    if row.json is not None:
        holds(json.loads(body), row.json)
    if row.error is not None:
        assert json.loads(body) == {"code": row.status, "type": row.error[0], "message": row.error[1]}, told
    if row.holds is not None:
        row.holds(headers, body)
    assert stays == row.stays, told


def holds(found: Any, expected: Any) -> None:
    """An object holds at least what is expected, a list as many as that."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in found, (key, found)
            holds(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected), (found, expected)
        for one, wanted in zip(found, expected, strict=True):
            holds(one, wanted)
    else:
        assert found == expected


def ask(server: DjlServing, row: Row) -> tuple[int, str, dict[str, str], bytes, bool]:
    """Send a row, and return the answer: status, reason, headers, body, and whether the connection stays open."""
    port = server.port if row.on == INFERENCE else server.management
    fields = "".join(f"{name}: {value}\r\n" for name, value in row.fields.items())
    head = f"{row.method} {row.url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(row.send)}\r\n{fields}\r\n"
    with socket.create_connection(("127.0.0.1", port), 60) as plug:
        plug.sendall(head.encode() + row.send)
        reader = plug.makefile("rb")
        _, status, reason = reader.readline().decode("latin-1").rstrip("\r\n").split(" ", 2)
        headers: dict[str, str] = {}
        while line := reader.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = read_body(reader, headers)
        return int(status), reason, headers, body, stays_open(plug, reader)


def read_body(reader: Any, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return bytes(reader.read(int(headers.get("content-length", "0"))))
    body = b""
    while size := int(reader.readline(), 16):
        body += reader.read(size)
        reader.readline()
    reader.readline()
    return body


def stays_open(plug: socket.socket, reader: Any) -> bool:
    """Ask once more on the same connection."""
    try:
        plug.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return bool(reader.readline())
    except ConnectionError:
        return False


def test_no_section_is_forgotten() -> None:
    wanted = "4.1 4.2 4.3 4.4 4.6 4.7 4.8 5.1 5.2 5.3 8.4 8.5 9.1 9.2"
    assert {row.section for row in ROWS} >= set(wanted.split())


def test_few_differences_are_accepted_and_each_is_one(server: DjlServing) -> None:
    assert len(ACCEPTED) <= 15
    for row in ROWS:
        if row.name in ACCEPTED:
            with pytest.raises(AssertionError):
                check(server, row)
    assert not ACCEPTED.keys() - {row.name for row in ROWS}
