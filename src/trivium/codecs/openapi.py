"""Describes an HTTP API as a document of OpenAPI 3.0, made from the table of its routes.

Source: the OpenAPI Specification 3.0.1. A route has operations for people beside the endpoints that it answers, so that
what is served and what is described are one table. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.codecs.routes import HttpRoute, endpoints
from trivium.types.access import Endpoint

VERSION = "3.0.1"
_NAME = re.compile(r"{(\w+)}")
_ERROR = {"$ref": "#/components/schemas/Error"}
_JSON = "application/json"
ANYTHING: Mapping[str, Any] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
"""Content of which nothing is known."""

OBJECT: Mapping[str, Any] = MappingProxyType({_JSON: {"schema": {"type": "object"}}})
"""Content that is some JSON object."""


def content_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return content that is JSON of this schema."""
    return {_JSON: {"schema": schema}}


class ApiArgument(msgspec.Struct, frozen=True):
    """An argument of the query: its name, its type in JSON's words, what it is, and what it is where it is not sent."""

    name: str
    type: str
    says: str
    default: str | int | bool | None = None
    is_needed: bool = False


class ApiOperation(msgspec.Struct, frozen=True):
    """Describes what one method does at one path, where "{name}" is a segment, or part of one. `id` names it among all
    others; `takes` and `gives` are the content of the request (None: it has none) and of an answer of status 200, and
    `others` the statuses of other answers, each with what it means.
    """

    method: str
    path: str
    id: str
    says: str
    takes: Mapping[str, Any] | None = None
    gives: Mapping[str, Any] = OBJECT
    arguments: Sequence[ApiArgument] = ()
    others: Mapping[int, str] = {}
    is_deprecated: bool = False


class ApiRoute(msgspec.Struct, frozen=True):
    """Holds what a protocol answers, and how that is described."""

    rows: Sequence[HttpRoute]
    operations: Sequence[ApiOperation] = ()

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Return the rows as the table for people has them."""
        return endpoints(self.rows)


class ApiTitle(msgspec.Struct, frozen=True):
    """Says what is described, and which version of it."""

    title: str
    version: str
    says: str = ""


def document(
    title: ApiTitle,
    operations: Iterable[ApiOperation],
    names: Mapping[str, str],
    error: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the document of these operations. `names` says what each name in a path is, `error` is the schema of a
    refusal. Names of which the value is `known` are replaced by it.
    """
    known = {} if known is None else known
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _NAME.sub(lambda found: _filled(found, known), operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, path, names)
    about = {"title": wire_text(title.title), "version": title.version}
    if title.says:
        about["description"] = title.says
    return {
        "openapi": VERSION,
        "info": about,
        "paths": paths,
        "components": {"schemas": {"Error": dict(error)}},
    }


def _filled(found: re.Match[str], known: Mapping[str, str]) -> str:
    value = known.get(found[1])
    return found[0] if value is None else quote(wire_text(value), safe="")


def _operation(operation: ApiOperation, path: str, names: Mapping[str, str]) -> dict[str, Any]:
    about: dict[str, Any] = {"description": operation.says, "operationId": operation.id}
    if operation.is_deprecated:
        about["deprecated"] = True
    about["parameters"] = [
        *(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": names[name],
                "schema": {"type": "string"},
            }
            for name in _NAME.findall(path)
        ),
        *map(_argument, operation.arguments),
    ]
    if operation.takes is not None:
        about["requestBody"] = {"content": dict(operation.takes)}
    about["responses"] = {
        "200": {"description": "It succeeded.", "content": dict(operation.gives)},
        **{str(status): _other(status, says) for status, says in sorted(operation.others.items())},
    }
    return about


def _argument(argument: ApiArgument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": argument.type}
    if argument.default is not None:
        schema["default"] = argument.default
    return {
        "name": argument.name,
        "in": "query",
        "required": argument.is_needed,
        "description": argument.says,
        "schema": schema,
    }


def _other(status: int, says: str) -> dict[str, Any]:
    return {"description": says, "content": dict(OBJECT) if status < 400 else content_of(_ERROR)}
