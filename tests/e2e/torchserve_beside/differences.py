"""The differences to the original that were accepted: which request shows each, in what, and why it stays.

`docs/torchserve.md` has a table made of this. The suite holds it to both: what is not here must not differ, and what is
here must. Imports nothing of the project: the manual's maker reads it by itself.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """`requests`: setting and pattern of the names that show it; `aspects`: what may differ in
    them, and at least one of these does, unless the original's answer is luck; the rest is told."""

    requests: tuple[tuple[str, str], ...]
    aspects: frozenset[str]
    what: str
    torchserve: str
    trivium: str
    reason: str
    is_luck: bool = False


_ALL = frozenset({"status", "fields", "closes", "chunks", "body"})
_RPC = frozenset({"status", "text", "messages"})


def _open(*patterns: str) -> tuple[tuple[str, str], ...]:
    return tuple(("open", pattern) for pattern in patterns)


ACCEPTED: tuple[Difference, ...] = (
    Difference(
        _open(
            "inference: a negative length",
            "inference: another version of HTTP",
            "inference: no request",
            "inference: no version of HTTP",
            "inference: an address in full",
            "inference: * that closes",
            "inference: an old client",
            "inference: a stream for an old client",
            "inference: too long a body",
            "inference: too long a header",
            "inference: too long an address",
        ),
        _ALL,
        "HTTP/1.1 itself: a length below 0, other versions, an address in full, `Connection: close`, HTTP/1.0, a "
        "TLS hello, heads and "
        "bodies that are too long",
        "a length of -1 is none, any version is served, an address in full is not found, connections stay open, "
        "HTTP/1.0 gets "
        "chunks, a TLS hello no answer; a head of more than 8 KiB is 400; behind a 413 the rest of the body is awaited",
        "as RFC 9110 and 9112 say; 414 and 431, from 64 KiB on; the connection closes behind a 413",
        "what two servers in a row read differently is how requests are smuggled",
    ),
    Difference(
        (
            *_open("inference: GET /", "inference: POST /", "management: GET /", "management: POST /"),
            *_open("management: PUT /models", "management: DELETE /models", "management: P* /models/view"),
            ("guarded", "GET / at inference by its key"),
        ),
        frozenset({"fields"}),
        "405",
        "does not say which methods there are",
        "`Allow` names them",
        "RFC 9110 asks for it",
    ),
    Difference(
        _open(
            "a form with a bad escape to *",
            "a part without a name to *",
            "a part without an end to *",
            "management: register by JSON that is none",
            "management: register by an array",
        ),
        _ALL,
        "bodies that cannot be read",
        "500 with the words of its Java libraries; a part without an end is lost in silence",
        "400 with what was found and expected; a bad escape in a form stays as it is",
        "it is the client's fault, and the client learns which",
    ),
    Difference(
        _open("JSON in capitals to *", "headers to *", "inference: * /predictions/view%2f1.0")
        + _open("inference: * /predictions/..%2f"),
        _ALL,
        "names in capitals, and an escaped slash in a name",
        "media types and header names are told apart by their capitals; an escaped slash parts a name and a version",
        "media types and header names are the same in any capitals, the last header of a name counts; an escaped "
        "slash is part of "
        "the name",
        "RFC 9110 and 3986 say so",
    ),
    Difference(
        _open("inference: * /v1/models/view", "inference: * /v1/models/nobody", "inference: readiness by v1"),
        _ALL,
        "`/v1/models/MODEL` at the inference address",
        "not found",
        "OpenAI's description of a model",
        "a language model answers OpenAI's clients there; KServe's readiness is at the management address, as in "
        "the original",
    ),
    Difference(
        _open("inference: * /wfpredict/nobody", "management: GET /workflows"),
        _ALL,
        "workflows",
        "served",
        "501 or not found",
        "they are not supported in this version: call their models one after another",
    ),
    Difference(
        _open(
            "story: a full queue",
            "story: a ticket while all work",
            "story: a model comes, is scaled and goes",
            "story: called while it*",
        ),
        frozenset({"fields"}),
        "503 where nobody can take a request",
        "says no more",
        "`Retry-After` says when it is worth asking again",
        "clients that heed it do not ask in vain",
    ),
    Difference(
        _open(
            "management: POST /models?url=broken.mar",
            "management: POST /models?url=notes.txt",
            "story: registered with a handler that is not there",
            "story: registered without a manifest",
        ),
        _ALL,
        "registering what is no whole archive, names a handler that is not there, or has no manifest",
        "400 `Model name is not defined.`, or 500 once a worker has failed",
        "400 or 404 with what is wrong, before a worker is started; an archive without a manifest is served under "
        "its file's name",
        "the message is what its author needs, and the way in for old archives stays open",
    ),
    Difference(
        _open("story: registered by JSON", "story: registered with words for numbers"),
        frozenset({"body"}),
        "a registration's numbers that are none, or below 0",
        "are taken as they are (`responseTimeout` -3), or become others (`maxBatchDelay` -10000)",
        "count as absent",
        "a model that was registered so answers nothing",
    ),
    Difference(
        _open(
            "grpc_inference: no message",
            "grpc_inference: says code 413",
            "grpc_management: scale nothing",
        ),
        _RPC,
        "gRPC: a message that is none, a wish without a name, a handler's own 413",
        "UNKNOWN without a text; UNKNOWN without a text; RESOURCE_EXHAUSTED",
        "INVALID_ARGUMENT and NOT_FOUND with a text; INTERNAL",
        "the first two say what is wrong; 413 would blame the client's message",
    ),
    Difference(
        _open("grpc_inference: a stream that fails", "grpc_inference: an unknown model's sequence"),
        _RPC,
        "gRPC: a stream whose handler fails in its middle, a sequence of a model that is not there",
        "the call never ends; it ends with UNKNOWN behind the message that says why",
        "UNAVAILABLE with the text of a failed prediction; the call goes on for other models",
        "a client that waits for ever learns nothing; one stream may ask several models",
    ),
    Difference(
        _open("story: a worker that is killed"),
        frozenset({"status", "body"}),
        "a worker that is killed by SIGKILL",
        "500, or 507 where it sees the exit status in time",
        "507",
        "the kernel kills so where memory runs out, and 507 says that",
        is_luck=True,
    ),
    Difference(
        (*_open("metrics: GET / for metrics"), ("guarded", "GET / at inference by *")),
        _ALL,
        "the root of an address, other than by OPTIONS",
        "405, to whoever asks",
        "not found at the metrics address; 400 without its key",
        "only who has a key hears what there is not",
    ),
    Difference(
        _open("management: describe sequences"),
        frozenset({"body"}),
        "`remainingCapacity` of a model with `sequenceBatching`",
        "the bound of a queue that sequences do not use",
        "what its sequences may still have waiting",
        "the number is there to be believed",
    ),
)
"""At most 15."""
