import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import refuse


def with_reason(code, reason, **facts):
    return ServeError(code, "x", info=ErrorInfo.of(reason, **facts))


@pytest.mark.parametrize(
    ("error", "status", "fields"),
    [
        (ServeError(Code.INVALID, "x"), 400, b""),
        (ServeError(Code.QUEUE_FULL, "x", 0.2), 503, b"Retry-After: 1\r\n"),
        (ServeError(Code.DRAINING, "x", 3.0), 503, b"Retry-After: 3\r\n"),
        (ServeError(Code.QUEUE_FULL, "x", 0.0), 503, b"Retry-After: 0\r\n"),
        (with_reason(Code.METHOD, reasons.NO_METHOD, allow="GET"), 405, b"Allow: GET\r\n"),
        (
            with_reason(Code.UNSUPPORTED_MEDIA, request_reasons.NO_CODING),
            415,
            b"Accept-Encoding: gzip, deflate\r\n",
        ),
        (ServeError(Code.MODEL_FAILED, "x"), 500, b""),
        (ServeError(Code.EXPIRED, "x"), 504, b""),
    ],
)
def test_an_error_is_its_status_its_text_and_its_lines(error, status, fields):
    answer = refuse(error)
    assert answer.status == status
    assert answer.fields == b"Content-Type: application/json\r\n" + fields
    assert answer.buffers == (b'{"error":"x"}',)
    assert answer.size == len(answer.buffers[0])
    assert answer.final


@settings(max_examples=examples(60))
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives(text):
    body = json.loads(refuse(ServeError(Code.INVALID, text)).buffers[0].decode())
    assert body == {"error": text.encode("utf-8", "backslashreplace").decode()}


def test_a_text_that_quotes_a_huge_request_is_cut():
    answer = refuse(ServeError(Code.INVALID, "found " + "x" * 10**6 + " here"))
    assert answer.size < 5000
    text = json.loads(answer.buffers[0])["error"]
    assert text.startswith("found x")
    assert text.endswith("x here")
