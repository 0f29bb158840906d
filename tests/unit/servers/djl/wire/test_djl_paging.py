"""DJL's asynchronous answers on the wire (sheet, section 4.7)."""

import pytest

from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.djl.wire.options import DjlOptions
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Defer, Deferred, Fetch, Fetched, Infer, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import Body, Head, HttpAnswer

TOKEN = "12345678-1234-1234-1234-123456789abc"
PROTOCOL = DjlHttp(lambda: "id", DjlOptions(exact=True))


def decoded(**headers: str):
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    head = Head("POST", "/predictions/m", "", named)
    return PROTOCOL.decode(head, PROTOCOL.head(head), Body(b"x"))


def part(text: bytes, final: bool = False, **more: object) -> ResponsePart:
    return ResponsePart(Raw((RawPart(text),), **more), final=final)  # type: ignore[arg-type]


def page(fetched: Fetched, index: str = "") -> HttpAnswer:
    _, encoder = decoded(x_starting_token=TOKEN + index)
    return encoder.encode(ResponsePart(answer=fetched))


def test_a_request_that_is_not_synchronous_gets_a_token() -> None:
    operation, encoder = decoded(x_synchronous="FALSE")
    assert isinstance(operation, Defer)
    assert operation.infer.model == "m"
    answer = encoder.encode(ResponsePart(answer=Deferred(TOKEN)))
    assert (answer.status, answer.size) == (200, 0)
    assert b"x-next-token: %b\r\n" % TOKEN.encode() in answer.fields
    assert b"X-Amzn-SageMaker-Custom-Attributes: x-next-token=%b\r\n" % TOKEN.encode() in answer.fields
    assert isinstance(decoded(x_synchronous="true")[0], Infer)


@pytest.mark.parametrize(
    ("headers", "fetch"),
    [
        ({"x_starting_token": TOKEN}, Fetch(TOKEN)),
        ({"x_starting_token": f"{TOKEN}12", "x_max_items": "3"}, Fetch(TOKEN, 12, 3)),
        ({"x_starting_token": TOKEN, "x_synchronous": "false"}, Fetch(TOKEN)),
    ],
)
def test_a_token_fetches(headers: dict[str, str], fetch: Fetch) -> None:
    assert decoded(**headers)[0] == fetch


@pytest.mark.parametrize(
    "headers",
    [
        {"x_starting_token": "short"},
        {"x_starting_token": f"{TOKEN}x"},
        {"x_starting_token": f"{TOKEN[:35]}\r"},
        {"x_starting_token": f"{TOKEN[:35]}/"},
        {"x_starting_token": f"{TOKEN}{'9' * 20}"},
        {"x_starting_token": TOKEN, "x_max_items": "many"},
    ],
)
def test_what_is_no_token_is_400(headers: dict[str, str]) -> None:
    with pytest.raises(ServeError) as caught:
        decoded(**headers)
    assert PROTOCOL.refuse(caught.value).status == 400


def test_a_token_without_an_answer_is_400_in_the_originals_words() -> None:
    _, encoder = decoded(x_starting_token=TOKEN)
    error = ServeError(Code.NOT_FOUND, "ours", info=ErrorInfo.of(reasons.UNKNOWN_TOKEN, token=TOKEN))
    answer = encoder.encode(ResponsePart(error=error))
    assert answer.status == 400
    body = b"".join(answer.buffers)
    assert b'"type": "BadRequestException"' in body
    assert f"Invalid x-starting-token: {TOKEN}".encode() in body


def test_nothing_yet_is_202_with_the_token_again() -> None:
    answer = page(Fetched((), 2, False, False), "2")
    assert (answer.status, answer.reason, answer.size) == (202, b"The model result is not yet available", 0)
    assert f"x-next-token: {TOKEN}2\r\n".encode() in answer.fields


def test_the_first_page_has_the_models_head_and_the_token_of_the_next() -> None:
    parts = (part(b"a", status=201, reason="Made", properties={"x-own": "1"}), part(b"b"))
    answer = page(Fetched(parts, 2, False, True))
    assert (answer.status, answer.reason, b"".join(answer.buffers)) == (201, b"Made", b"ab")
    assert b"x-own: 1\r\n" in answer.fields
    assert f"x-next-token: {TOKEN}2\r\n".encode() in answer.fields


def test_a_later_page_has_no_head_of_the_model_and_the_last_no_token() -> None:
    answer = page(
        Fetched((part(b"c", status=201, properties={"x-own": "1"}), part(b"d", True)), 4, True, True), "2"
    )
    assert (answer.status, b"".join(answer.buffers)) == (200, b"cd")
    assert b"x-own" not in answer.fields
    assert b"x-next-token" not in answer.fields


def test_what_went_wrong_meanwhile_is_500_and_behind_a_part_the_last_piece() -> None:
    for code in (Code.WORKER_DIED, Code.TOO_LARGE):
        failed = ResponsePart(error=ServeError(code, "it died"))
        answer = page(Fetched((failed,), 1, True, True))
        assert (answer.status, answer.closes) == (500, True)
        assert b"it died" in b"".join(answer.buffers)
        answer = page(Fetched((part(b"a"), failed), 2, True, True))
        assert answer.status == 200
        assert b"".join(answer.buffers).startswith(b"a{")
