"""What the headers of a request say, and which requests are none."""

import pytest

from trivium.frontends.h2.rpc_head import (
    INTERNAL,
    UNAUTHENTICATED,
    UNIMPLEMENTED,
    RpcHead,
    read_head,
    read_timeout,
)

Headers = list[tuple[bytes, bytes]]
PLAIN: Headers = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a.B/C"),
    (b":authority", b"localhost:8001"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
]


def with_(*more: tuple[bytes, bytes], without: tuple[bytes, ...] = ()) -> RpcHead:
    names = {name for name, _ in more if name.startswith(b":") or name == b"content-type"} | set(without)
    kept = [pair for pair in PLAIN if pair[0] not in names]
    pseudo = [pair for pair in more if pair[0].startswith(b":")]
    return read_head([*pseudo, *kept, *(pair for pair in more if pair not in pseudo)])


def test_a_plain_call() -> None:
    head = with_()
    assert head == RpcHead("/a.B/C", {}, None, "identity", frozenset({""}))


def test_everything_that_a_call_may_say() -> None:
    head = with_(
        (b"user-agent", b"grpc-python"),
        (b"grpc-timeout", b"1500m"),
        (b"grpc-encoding", b"gzip"),
        (b"grpc-accept-encoding", b"identity, deflate,gzip"),
        (b"key", b"first"),
        (b"key", "ü".encode()),
        (b"key-bin", b"AAE"),
        (b"other", b"\xff"),
    )
    assert head.metadata == {"user-agent": "grpc-python", "key": "first, ü"}
    assert (head.timeout, head.coding, head.accepts) == (1.5, "gzip", {"identity", "deflate", "gzip"})
    assert (head.malformed, head.http, head.code) == ("", 200, 0)


@pytest.mark.parametrize("second", [b"Bearer good", b"Bearer other", b"", b"\xff"])
def test_a_key_comes_once(second: bytes) -> None:
    for pair in ((b"Bearer good", second), (second, b"Bearer good")):
        head = with_(*((b"authorization", value) for value in pair))
        assert (head.code, head.metadata) == (UNAUTHENTICATED, {})
        assert "came twice" in head.details
    assert with_((b"authorization", b"Bearer good")).metadata == {"authorization": "Bearer good"}


@pytest.mark.parametrize("kind", [b"application/grpc+proto", b"application/grpc;charset=utf-8"])
def test_content_types_of_grpc(kind: bytes) -> None:
    assert with_((b"content-type", kind)).http == 200


@pytest.mark.parametrize(
    ("more", "http", "code", "says"),
    [
        ((b"content-type", b"application/json"), 415, INTERNAL, "'application/json'"),
        ((b"content-type", b"application/grpcx"), 415, INTERNAL, "'application/grpcx'"),
        ((b":method", b"GET"), 405, INTERNAL, "POST"),
        ((b"grpc-encoding", b"snappy"), 200, UNIMPLEMENTED, "'snappy'"),
        ((b"grpc-timeout", b"soon"), 200, INTERNAL, "'soon'"),
    ],
)
def test_refusals(more: tuple[bytes, bytes], http: int, code: int, says: str) -> None:
    head = with_(more)
    assert (head.http, head.code, head.malformed) == (http, code, "")
    assert says in head.details


def test_a_content_type_that_is_not_there() -> None:
    assert with_(without=(b"content-type",)).http == 415


MALFORMED = [
    ((b"connection", b"close"),),
    ((b"transfer-encoding", b"chunked"),),
    ((b"Key", b"upper case"),),
    ((b"", b"nothing"),),
    ((b"te", b"gzip"),),
    ((b"key", b"a\r\nb"),),
    ((b":status", b"200"),),
    ((b":path", b"/a"), (b":path", b"/b")),
]


@pytest.mark.parametrize("more", MALFORMED)
def test_what_is_no_request(more: tuple[tuple[bytes, bytes], ...]) -> None:
    assert with_(*more).malformed


@pytest.mark.parametrize("name", [b":method", b":scheme", b":path"])
def test_what_must_be_there(name: bytes) -> None:
    assert with_(without=(name,)).malformed


def test_pseudo_headers_come_first() -> None:
    assert read_head([*PLAIN[1:], PLAIN[0]]).malformed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1H", 3600.0),
        ("2M", 120.0),
        ("3S", 3.0),
        ("4m", 0.004),
        ("5u", 5e-6),
        ("6n", 6e-9),
        ("0S", 0.0),
        ("99999999H", 99999999 * 3600.0),
        ("100000000n", None),
        ("S", None),
        ("1", None),
        ("", None),
        ("-1S", None),
        ("1.5S", None),
        ("1s", None),
        ("١S", None),
        (" 1S", None),
    ],
)
def test_timeouts(text: str, seconds: float | None) -> None:
    assert read_timeout(text) == (None if seconds is None else pytest.approx(seconds))
