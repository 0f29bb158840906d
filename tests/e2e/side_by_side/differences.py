"""The differences to the original that were accepted: which request shows each, in what, and why it stays.

`docs/triton.md` has a table made of this. The suite holds it to both: what is not here must not differ, and what is
here must. Imports nothing of the project: the manual's maker reads it by itself.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """`requests`: wire and row of the tables that show it; `aspects`: what differs in them; the rest is told."""

    requests: tuple[tuple[str, str], ...]
    aspects: frozenset[str]
    what: str
    triton: str
    trivium: str
    reason: str


_ALL = frozenset({"status", "content type", "text", "body"})

_MALFORMED = (
    "an empty body for JSON",
    "an empty object",
    "no JSON",
    "a string without an end",
    "a bad escape",
    "something behind the JSON",
    "an array at the top",
    "inputs that are no array",
    "no name",
    "a name that is no string",
    "no shape",
    "a shape that is no array",
    "a negative dimension",
    "a dimension in quotes",
    "a fraction of a dimension",
    "no datatype",
    "a datatype that is no string",
    "a binary size that is no number",
    "an id that is no string",
    "an id that is null",
    "outputs that are no array",
    "an output without a name",
    "parameters that are no object",
    "a negative classification",
    "an index request that is no JSON",
    "generate of no JSON",
)
"""Of BAD in `http_faults`."""

ACCEPTED: tuple[Difference, ...] = (
    Difference(
        (("http", "an integer beyond INT32"),),
        frozenset({"status", "text", "body"}),
        "an integer in JSON that its datatype cannot hold",
        "wraps around, 200",
        "400, with the element and the bounds",
        "a number that nobody sent would be computed with, and nobody would know",
    ),
    Difference(
        tuple(("http", row) for row in _MALFORMED),
        frozenset({"text"}),
        "JSON over HTTP that cannot be read, or whose members are missing or of another type",
        "the words of its JSON library, and a byte or a member's name",
        "the same status, and our JSON library's words, with the byte or the path of the member",
        "a text for people: no client takes it apart, and to say it alike took a second JSON parser",
    ),
    Difference(
        (("http", "an output twice"),),
        frozenset({"status", "text", "body"}),
        "an output that is asked for twice",
        "answered once, 200",
        "400",
        "newer originals refuse it with the text that we have",
    ),
    Difference(
        (("http", "no required input"),),
        frozenset({"status", "content type", "text"}),
        "a model with optional inputs, and another one missing",
        "runs without it, and the model's code fails",
        "400, by the number of inputs",
        "the inputs that are not optional are required, and the model should not have to look",
    ),
    Difference(
        (("http", "a raw body for several strings"),),
        _ALL,
        "a raw body for a BYTES input of dims [-1]",
        "400",
        "one element",
        "its shape is clear: one of one",
    ),
    Difference(
        (("http", "infer with a header that ends in blanks"),),
        frozenset({"body"}),
        "blanks at the end of a header or of metadata that become a parameter",
        "belong to the value",
        "do not",
        "RFC 9110 says that they are no part of it, and gRPC that they may be taken off",
    ),
    Difference(
        (("http", "generate by a model that answers twice"),),
        frozenset({"status"}),
        "generate, and the model answers several times",
        "status 200, and an error in the body",
        "status 500, and the same error",
        "an error of status 200 passes for an answer, with every client that looks at the status",
    ),
    Difference(
        (("http", "HEAD"),),
        frozenset({"status"}),
        "HEAD",
        "405",
        "as GET, without the body",
        "RFC 9110 asks it of every server, and load balancers do it",
    ),
    Difference(
        (("http", "an unknown model, and no JSON"),),
        frozenset({"status", "content type", "text"}),
        "several faults in one request, the model's name among them, over HTTP",
        "the model's name is looked up first",
        "the body is read first",
        "what a request is has to be known before the core is asked who serves it",
    ),
    Difference(
        (("http", "statistics of a model that refused"), ("http", "statistics of a model that failed")),
        frozenset({"body"}),
        "statistics of requests that were answered with an error",
        "`fail` leaves out those refused for shape or datatype, `success` has those that the model answered so itself",
        "all of them are in `fail`",
        "so the two add up to all requests, and a client that saw an error is no success",
    ),
    Difference(
        (("grpc", "another shape, and data of a third"),),
        frozenset({"text"}),
        "a shape that the model does not take, with data of another size",
        "the shape is told",
        "the size is told",
        "data are read by the shape that the request gives them, before a model sees them",
    ),
    Difference(
        (("grpc", "an unknown datatype"),),
        frozenset({"text"}),
        "an unknown word for a datatype over gRPC",
        "a text with what the model expects",
        "the text of HTTP",
        "it is no datatype whatever the model expects",
    ),
    Difference(
        (
            ("call", "an unknown model"),
            ("call", "an unknown version"),
            ("call", "a version"),
            ("call", "an unknown one, asked for several answers"),
        ),
        frozenset({"body"}),
        "a BLS call of a model that is not there, or not ready",
        "an error that says that it is not ready",
        "the same, and then why",
        "the model's name may be misspelt, and only the server knows which there are",
    ),
    Difference(
        (
            ("call", "a model that finds nothing"),
            ("call", "a model that will not"),
            ("call", "a model that cannot now"),
        ),
        frozenset({"body"}),
        "the code of an error that a called model answers with",
        "always INTERNAL",
        "the called model's",
        "newer originals pass it on",
    ),
    Difference(
        (("story", "the same request as at first"),),
        frozenset({"status", "text", "body"}),
        "a load without `config` of a model that was loaded with one",
        "keeps the configuration that was sent",
        "reads that of the folder",
        "what is loaded is what is there; else only an unload would end what somebody once sent",
    ),
)
"""At most 15, by the order of the wires."""
