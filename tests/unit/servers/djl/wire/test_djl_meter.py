"""How predictions are counted, and what becomes of /ping where errors come too fast."""

import pytest

from trivium.servers.djl.wire import grpc, http
from trivium.servers.djl.wire.config import DjlConfig
from trivium.servers.djl.wire.meter import DjlMeter, kind_of
from trivium.servers.djl.words.error_rate_policy import ErrorKind, ErrorRate
from trivium.types import reasons
from trivium.types.by_type import ByType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.operations import Listing, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, RpcCall

NO_MEMORY = ServeError(Code.OUT_OF_MEMORY, "x", info=ErrorInfo.of(reasons.NO_MEMORY))
HEALTH = ResponsePart(answer=Listing(()))


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ServeError(Code.QUEUE_FULL, "x"), 503, ErrorKind.WLM),
        (ServeError(Code.WORKER_DIED, "x"), 429, ErrorKind.WLM),
        (NO_MEMORY, 507, ErrorKind.WLM),
        (ServeError(Code.MODEL_FAILED, "x"), 424, ErrorKind.MODEL),
        (ServeError(Code.OUT_OF_MEMORY, "x"), 507, ErrorKind.MODEL),
        (ServeError(Code.INTERNAL, "x"), 500, ErrorKind.SERVER),
        (ServeError(Code.INVALID, "x"), 400, None),
        (ServeError(Code.NOT_FOUND, "x"), 404, None),
    ],
)
def test_whose_error_it_is(error: ServeError, status: int, kind: ErrorKind | None) -> None:
    assert kind_of(error, status) is kind


def head(path: str) -> Head:
    return Head("POST", path, "", {})


def ask(protocol: WireProtocol, path: str, part: ResponsePart) -> int:
    target = protocol.head(head(path))
    return protocol.decode(head(path), target, Body(b""))[1].encode(part).status


def answered(status: int) -> ResponsePart:
    return ResponsePart(payload=Raw((RawPart(b"x"),), status=status))


def test_an_error_on_one_listener_counts_for_the_health_that_each_tells_for_good() -> None:
    """Sharp edge 6: /ping is 503 for good once an error rate is exceeded."""
    context = ProtocolContext(own=ByType(DjlConfig(error_rates="model=1")))
    inference, management, rpc = http.make(context), http.make(context), grpc.make(context)

    def codes() -> list[int]:
        answer = rpc.decode(RpcCall(grpc.PING), b"")[1].encode(HEALTH)
        assert answer.message is not None
        rpc_code = int.from_bytes(answer.message[1:3], "little")  # a varint of two bytes
        found = [ask(each, "/ping", HEALTH) for each in (inference, management)]
        return [*found, (rpc_code & 0x7F) | (rpc_code >> 8) << 7]

    for part in (answered(424), answered(200), ResponsePart(error=ServeError(Code.QUEUE_FULL, "x"))):
        ask(inference, "/predictions/m", part)
        assert codes() == [200, 200, 200]
    ask(inference, "/predictions/m", ResponsePart(error=ServeError(Code.MODEL_FAILED, "x")))
    assert codes() == [503, 503, 503]
    ask(inference, "/predictions/m", answered(200))
    assert codes() == [503, 503, 503]


def test_answers_are_counted_once_by_their_first_part() -> None:
    meter = DjlMeter({ErrorKind.ANY: ErrorRate(0)}, lambda: 0.0)
    context = ProtocolContext(states=ByType(meter))
    protocol = http.make(context)
    target = protocol.head(head("/predictions/m"))
    encoder = protocol.decode(head("/predictions/m"), target, Body(b""))[1]
    for final in (False, False, True):
        encoder.encode(ResponsePart(payload=Raw((RawPart(b"x"),)), final=final))
    assert meter.answers[2] == 1
    assert not meter.is_exceeded
