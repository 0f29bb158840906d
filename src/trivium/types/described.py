"""Descriptions of routes and services for programs: what each takes and answers, in general and for one model.

A wire gives rows, in its own folder; whoever makes a document of them knows no wire. Schemas are JSON Schemas, or types
of which msgspec makes one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from trivium.types.access import AccessScope
from trivium.types.protocol_context import ProtocolContext
from trivium.types.spec import ModelSpec

JsonSchema = Mapping[str, Any]

TEXT: JsonSchema = {"type": "string"}
WHOLE: JsonSchema = {"type": "integer"}
NUMBER: JsonSchema = {"type": "number"}
SWITCH: JsonSchema = {"type": "boolean"}
ANYTHING: JsonSchema = {}
BYTES: JsonSchema = {"type": "string", "format": "binary"}

JSON_KIND = "application/json"
EVENTS_KIND = "text/event-stream"
TEXT_KIND = "text/plain"
ANY_KIND = "*/*"


@dataclass(frozen=True, slots=True)
class DescribedBody:
    """Describes a body: by its media type the schema of what it holds, a JSON Schema or a type; none where it may be
    anything, and may have no media type.
    """

    schemas: Mapping[str, Any]
    note: str = ""
    is_required: bool = True


def json_body(schema: Any, note: str = "", is_required: bool = True) -> DescribedBody:
    """Return the description of a body that is JSON."""
    return DescribedBody({JSON_KIND: schema}, note, is_required)


def object_of(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> JsonSchema:
    """Return the schema of an object with these members, which may have others."""
    found: dict[str, Any] = {"type": "object", "properties": {**required, **(optional or {})}}
    return {**found, "required": list(required)} if required else found


def list_of(schema: JsonSchema) -> JsonSchema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


@dataclass(frozen=True, slots=True)
class DescribedArgument:
    """Describes an argument of a request's query, or a header field."""

    name: str
    schema: JsonSchema = field(default_factory=lambda: TEXT)
    note: str = ""
    where: str = "query"


Answers = Mapping[str, DescribedBody | None]
"""By status ("200"; "4XX": all of this class) what the body of an answer is; None: there is none."""


@dataclass(frozen=True, slots=True)
class ModelBodies:
    """Describes what a route takes and answers for one model."""

    body: DescribedBody | None
    answers: Answers


def _nothing_of_model(spec: ModelSpec) -> ModelBodies | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedVerb:
    """Describes what is asked for by routes with one verb: a `summary` in a line, arguments, body, and the answers that
    are no errors. `of_model` says more for one model, None for one of which there is no more to say.
    """

    summary: str
    answers: Answers
    note: str = ""
    body: DescribedBody | None = None
    arguments: Sequence[DescribedArgument] = ()
    of_model: Callable[[ModelSpec], ModelBodies | None] = _nothing_of_model


@dataclass(frozen=True, slots=True)
class DescribedRoute:
    """Describes a row of a route table, with methods and path as that has them."""

    methods: Sequence[str]
    path: str
    scope: AccessScope
    verb: str
    what: DescribedVerb


@dataclass(frozen=True, slots=True)
class WireDescription:
    """Describes all that a wire answers on one listener: its name for people, its routes, and its errors."""

    title: str
    routes: Sequence[DescribedRoute]
    errors: Answers
    note: str = ""


@runtime_checkable
class SupportsDescription(Protocol):
    """Extends the entry of a protocol over HTTP that can say more of its routes than their paths."""

    def describe(self, context: ProtocolContext) -> WireDescription:
        """Describe what the protocol answers that `make` makes of the same facts. Routes that it does not own are taken
        out by the caller.
        """
        ...


@runtime_checkable
class SupportsReflection(Protocol):
    """Extends the entry of a protocol over gRPC that can tell programs how its services are called."""

    def descriptors(self) -> Sequence[bytes]:
        """Return the files that define the services, each as a FileDescriptorProto of protobuf, and those that they
        import.
        """
        ...
