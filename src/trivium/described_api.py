"""Describes one listener to programs: what each protocol says of its routes or services, and a request to each model.

Knows no protocol by name; of one that describes nothing the paths alone are said.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from trivium.codecs.openapi import ApiModel, ServerTitle, openapi
from trivium.codecs.routes import prefix_of
from trivium.types.console_facts import ExampleRequest
from trivium.types.described import (
    ANY_KIND,
    ANYTHING,
    DescribedBody,
    DescribedRoute,
    DescribedVerb,
    SupportsDescription,
    SupportsReflection,
    WireDescription,
)
from trivium.types.listeners import Listener
from trivium.types.protocol_context import HttpProtocolEntry, ProtocolContext, RpcProtocolEntry
from trivium.types.spec import ModelSpec

Examples = Callable[[ModelSpec], Sequence[ExampleRequest]]


class ListenerDescription:
    """Writes the document of one listener, anew for other models. `entries` are its protocols with their facts."""

    def __init__(
        self,
        title: ServerTitle,
        listener: Listener,
        entries: Iterable[tuple[str, HttpProtocolEntry, ProtocolContext]],
        examples: Examples,
    ) -> None:
        self._title = title
        self._examples = examples
        self._wires = tuple(served_wires(listener, entries))

    def document(self, specs: Sequence[ModelSpec]) -> bytes:
        """Return the document as JSON, with these models."""
        models = [ApiModel(spec, tuple(self._examples(spec))) for spec in specs]
        return msgspec.json.encode(openapi(self._title, self._wires, models))


def served_wires(
    listener: Listener, entries: Iterable[tuple[str, HttpProtocolEntry, ProtocolContext]]
) -> Iterable[WireDescription]:
    """Yield what each protocol describes of the routes that it owns there."""
    owned: dict[str, set[str]] = {}
    for route in listener.routes:
        owned.setdefault(route.protocol, set()).add(route.prefix)
    for name, entry, context in entries:
        told = (
            entry.describe(context) if isinstance(entry, SupportsDescription) else _undescribed(name, entry)
        )
        routes = tuple(one for one in told.routes if prefix_of(one.path) in owned.get(name, ()))
        if routes:
            yield WireDescription(told.title, routes, told.errors, told.note)


_UNKNOWN = DescribedVerb(summary="Not described", answers={"default": DescribedBody({ANY_KIND: ANYTHING})})
_NO_ERRORS: Mapping[str, DescribedBody | None] = {}


def _undescribed(name: str, entry: HttpProtocolEntry) -> WireDescription:
    """Return what the table of a protocol says by itself."""
    rows = (DescribedRoute((row.method,), row.path, row.scope, "asked", _UNKNOWN) for row in entry.ENDPOINTS)
    return WireDescription(name, tuple(rows), _NO_ERRORS)


def descriptors_of(entries: Iterable[RpcProtocolEntry]) -> tuple[bytes, ...]:
    """Return the files that define the services of these protocols, each once."""
    each = (entry.descriptors() for entry in entries if isinstance(entry, SupportsReflection))
    return tuple(dict.fromkeys(file for files in each for file in files))
