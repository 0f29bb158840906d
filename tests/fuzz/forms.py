"""Bodies as forms, and the requests of DJL and TorchServe that carry them."""

import random

from tests.fuzz.target import Change, Target
from tests.fuzz.v2_json import check_answer

from trivium.codecs import forms, header_text
from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.types.errors import ServeError
from trivium.types.wire import Body, Head

PROTOCOLS = (DjlHttp(lambda: "id"), TorchServeHttp(lambda: "id"), TorchServeHttp(lambda: "id", True))
KIND = b'multipart/form-data; boundary="b-1"'


def part(name: str, data: bytes, more: bytes = b"") -> bytes:
    return b'--b-1\r\nContent-Disposition: form-data; name="%s"\r\n%s\r\n%s\r\n' % (name.encode(), more, data)


def entry(kind: bytes, body: bytes) -> bytes:
    """An input: the content type on a line of its own, then the body."""
    return kind + b"\n" + body


CORPUS = (
    entry(KIND, part("data", b"abc") + b"--b-1--\r\n"),
    entry(KIND, part("a", b"") + part("a", bytes(40), b"Content-Type: image/png\r\n") + b"--b-1--"),
    entry(KIND, b"preamble\r\n" + part("x", b"--b-1x", b"X: 1\r\n folded\r\n") + b"--b-1--\r\nepilogue"),
    entry(
        b"Multipart/Form-Data;boundary=b-1; charset=utf-8",
        b"--b-1\r\nContent-Disposition: form-data; name=x; filename*=UTF-8''%e2%82%ac\r\n\r\n1\r\n--b-1--",
    ),
    entry(b"application/x-www-form-urlencoded", b"a=1&b=%C3%A4+c&model_name=m&d"),
    entry(b"application/json", b"{}"),
    entry(b"", b""),
)
TOKENS = (
    b"--b-1", b"--b-1--", b"\r\n--b-1\r\n", b"\r\n\r\n", b"\r\n", b"\n", b'name="', b"name=", b"filename*=utf-8''%",
    b'filename="',
    b"Content-Disposition: form-data;", b"Content-Transfer-Encoding: base64\r\n", b"Content-Type: ", b"boundary=",
    b'"', b"\\",
    b";", b"%", b"%zz", b"&", b"=", b"+", b"\xff", b"\0", b"charset=x", b"multipart/form-data",
)  # fmt: skip
PATHS = (
    "/predictions/m",
    "/invocations",
    "/predictions/m/1/more",
    "/explanations/m",
    "/models/m/invoke",
    "/predictions/%ff",
)
QUERIES = ("", "model_name=m&a=1", "%ff", "a", "a=1&a=2;b", "model_name=", "&" * 2000)
HEADERS = (
    (b"x-amzn-sagemaker-custom-attributes", b"a=1;b=;=c;handler=x"),
    (b"x-priority", b"3"),
    (b"x-priority", b"-"),
    (b"x-synchronous", b"false"),
    (b"x-request-id", b"\xe4 1"),
    (b"accept", b"text/*;q=0.5, */*;q=x"),
)  # fmt: skip


def rebuilt(given: bytes, change: Change, chance: random.Random) -> bytes:
    kind, _, body = given.partition(b"\n")
    return (
        entry(kind, change(body)) if chance.random() < 0.7 else entry(change(kind).replace(b"\n", b""), body)
    )


def read_parts(data: bytes, chance: random.Random) -> None:
    kind, _, body = data.partition(b"\n")
    found = forms.parts(kind.decode("latin-1"), body)
    assert sum(len(part.data) for part in found) <= len(body)
    header_text.by_preference(kind.decode("latin-1"))


def read_request(data: bytes, chance: random.Random) -> None:
    """Through a protocol, with the rest of a head from a few."""
    kind, _, body = data.partition(b"\n")
    protocol = chance.choice(PROTOCOLS)
    headers = {b"content-type": kind, **dict(chance.sample(HEADERS, chance.choice((0, 1, 2))))}
    head = Head(
        chance.choice(("POST", "PUT", "GET")),
        chance.choice(PATHS),
        chance.choice(QUERIES),
        headers,
        len(body),
    )
    try:
        target = protocol.head(head)
        protocol.is_costly(head, body)
        protocol.decode(head, target, Body(body))
    except ServeError as error:
        check_answer(protocol.refuse(error))
        raise


TARGETS = (
    Target("forms", CORPUS, read_parts, tokens=TOKENS, rebuild=rebuilt),
    Target("form_requests", CORPUS, read_request, tokens=TOKENS, rebuild=rebuilt),
)
