"""Holds what a handler answered in a test: tensors by name or a body, piece by piece, or the error as a value."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trivium.codecs.conversion import negotiated
from trivium.types.datatype import Array
from trivium.types.errors import ServeError, anew
from trivium.types.operations import ResponsePart
from trivium.types.payload import Payload, Raw, Tensors

_JSON = "application/json"


class TestAnswer:
    """One answer. `error` is why there is none, or why it broke off; whoever reads the answer all the same gets it
    raised. `parts` are what came, in order, as the front ends of a server get it.
    """

    __test__ = False  # pytest collects no class of this name

    def __init__(self, parts: Sequence[ResponsePart], accept: str = "") -> None:
        self.parts = tuple(parts)
        self.error: ServeError | None = next((part.error for part in parts if part.error is not None), None)
        self._accept = accept

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """Return what the parts hold that hold anything."""
        return tuple(part.payload for part in self.parts if part.payload is not None)

    @property
    def pieces(self) -> list[dict[str, Array] | bytes]:
        """Return a stream as a list: of each part its tensors by name, or its body. Those in front of an error, too."""
        return [_shown(one) for one in self.payloads]

    @property
    def arrays(self) -> dict[str, Array]:
        """Return the tensors by name; BYTES as objects of type `bytes`. Raises the error; TypeError for a body."""
        found = self._only()
        if not isinstance(found, Tensors):
            raise TypeError(f"the handler answered a body, and no tensors: {self.body[:200]!r}")
        return {one.name: one.array for one in found.items}

    def __getitem__(self, name: str) -> Array:
        """Return one tensor. Raises as `arrays`; KeyError names those there are."""
        found = self.arrays
        if name not in found:
            raise KeyError(f"no tensor {name!r}; there are: {', '.join(found)}")
        return found[name]

    @property
    def body(self) -> bytes:
        """Return the body, of a stream all of it. Tensors are written as a client is sent them who takes any form: one
        element of BYTES as it is, else JSON. Raises the error.
        """
        self._check()
        return b"".join(_bytes(one, self._accept)[1] for one in self.payloads)

    @property
    def text(self) -> str:
        """Return the body as text. Raises the error; UnicodeDecodeError."""
        return self.body.decode()

    def json(self) -> Any:
        """Return what the body holds in JSON. Raises the error; ValueError."""
        return json.loads(self.body)

    @property
    def status(self) -> int:
        """Return the status that the handler asks of HTTP: 200 where it asks for none. That of an error is its wire's,
        unless the handler asked for one: 0.
        """
        if self.error is not None:
            return self.error.status or 0
        first = self.payloads[0] if self.payloads else None
        return first.status or 200 if isinstance(first, Raw) else 200

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the header fields that the handler set, under their names in lower case, its content type included."""
        self._check()
        first = self.payloads[0] if self.payloads else None
        found = {"content-type": _bytes(first, self._accept)[0]} if first is not None else {}
        given = first.properties if isinstance(first, Raw) else {}
        return {**found, **{name.lower(): value for name, value in given.items()}}

    def __repr__(self) -> str:
        return f"TestAnswer({self.error!r})" if self.error is not None else f"TestAnswer({self.pieces!r})"

    def _check(self) -> None:
        if self.error is not None:
            raise anew(self.error) from self.error.__cause__

    def _only(self) -> Payload:
        self._check()
        if len(self.payloads) != 1:
            raise TypeError(f"the handler answered in {len(self.payloads)} parts: they are in `pieces`")
        return self.payloads[0]


def _shown(payload: Payload) -> "dict[str, Array] | bytes":
    if isinstance(payload, Tensors):
        return {one.name: one.array for one in payload.items}
    return _bytes(payload, "")[1]


def _bytes(payload: Payload, accept: str) -> tuple[str, bytes]:
    """Return the content type and the bytes of a payload."""
    if isinstance(payload, Tensors):
        kind, pieces = negotiated(payload, accept, "", _JSON)
        return kind, b"".join(bytes(one) for one in pieces)
    assert isinstance(payload, Raw), "handlers answer tensors or bodies"
    part = payload.parts[0] if payload.parts else None
    return ("", b"") if part is None else (part.content_type, bytes(part.data))
