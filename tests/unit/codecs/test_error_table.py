"""What a wire says of an error: by reason and verb, by reason, by code and verb, by code, and by what was decided."""

import pytest

from trivium.codecs.error_table import (
    CHALLENGE,
    HTTP_STATUS,
    OWN_ROWS,
    ErrorRow,
    ErrorTable,
    Refusal,
    Wording,
    header_lines,
    rows_of,
    said,
)
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, with_facts

TABLE = ErrorTable(
    {
        **OWN_ROWS,
        **rows_of(410, {"gone": "{model} is gone", "listed": lambda facts: f"in {facts['place']}"}),
        ("gone", "load"): ErrorRow(409, "Taken", "{model} was there", b"A: b\r\n"),
        (Code.INVALID, "load"): ErrorRow(422),
    }
)


def error(code: Code, reason: str = "", **facts: object) -> ServeError:
    return ServeError(code, "Own.", info=ErrorInfo.of(reason, **facts) if reason else None)


@pytest.mark.parametrize(
    ("found", "verb", "wording"),
    [
        (error(Code.INVALID, "gone", model="m"), "load", Wording(409, "Taken", "m was there", b"A: b\r\n")),
        (error(Code.INVALID, "gone", model="{m}"), "infer", Wording(410, text="{m} is gone")),
        (error(Code.INVALID, "gone", model="m"), "", Wording(410, text="m is gone")),
        (error(Code.INVALID, "listed"), "", Wording(410, text="in a request")),
        (error(Code.INVALID, "unknown"), "load", Wording(422)),
        (error(Code.INVALID), "load", Wording(422)),
        (error(Code.INVALID), "infer", Wording(400)),
        (error(Code.DRAINING, "unknown"), "load", Wording(503)),
    ],
)
def test_the_row_that_says_most_goes_first(found: ServeError, verb: str, wording: Wording) -> None:
    assert TABLE.wording(found, verb, {"place": "a request", "model": "of the request"}) == wording


def test_what_has_no_row_says_nothing() -> None:
    assert ErrorTable({}).wording(error(Code.INVALID, "gone")) == Wording()
    assert HTTP_STATUS.keys() == set(Code)


def test_what_was_decided_is_said_whatever_the_table_has() -> None:
    wording = Wording(418, text="{not a template}")
    refusal = anew(Refusal(Code.INVALID, "Own.", wording, info=ErrorInfo.of("gone", model="m")))
    assert TABLE.wording(refusal, "load") is wording


@pytest.mark.parametrize(
    ("retry_after", "reason", "least", "lines"),
    [
        (None, "", 0, b""),
        (0.0, "", 0, b"Retry-After: 0\r\n"),
        (0.0, "", 1, b"Retry-After: 1\r\n"),
        (1.2, "", 1, b"Retry-After: 2\r\n"),
        (1.0, reasons.NO_METHOD, 0, b"Retry-After: 1\r\nAllow: GET, HEAD\r\n"),
        (None, "other", 0, b""),
    ],
)
def test_header_lines(retry_after: float | None, reason: str, least: int, lines: bytes) -> None:
    found = error(Code.METHOD, reason, allow="GET, HEAD")
    found.retry_after = retry_after
    assert header_lines(found, least) == lines
    assert CHALLENGE.endswith(b"\r\n")


def test_words_of_another_server_are_a_fact() -> None:
    found = said(Code.CONFLICT, "Own.", "No {such} thing", "gone")
    assert (found.reason, found.metadata) == ("gone", {"words": "No {such} thing"})
    table = ErrorTable({"gone": ErrorRow(404, text="{words}")})
    assert table.wording(found).text == "No {such} thing"


def test_facts_of_a_request_do_not_replace_those_of_the_error() -> None:
    known = with_facts(error(Code.INVALID, "gone", model="m"), model="of the request", request_id="7")
    assert (known.reason, known.metadata) == ("gone", {"model": "m", "request_id": "7"})
    bare = with_facts(ServeError(Code.INVALID, "Own.", 2.0, 418), request_id="7")
    assert (bare.reason, bare.retry_after, bare.status, bare.message) == ("", 2.0, 418, "Own.")
