"""Makes an OpenAPI 3.1 document of what wires describe, and of models with requests that work.

A row of a route table becomes operations: any method becomes POST where there is a body, else GET; whatever follows a
path is one segment, or nothing. A model's request becomes a path of its own where the route names the model, an example
of the route where its body does. Pure. Source: the OpenAPI Specification 3.1.1.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trivium.codecs.path_segments import decoded
from trivium.types.access import AccessScope, Endpoint
from trivium.types.console_facts import ExampleRequest
from trivium.types.described import (
    JSON_KIND,
    DescribedBody,
    DescribedRoute,
    WireDescription,
)
from trivium.types.spec import ModelSpec

Document = dict[str, Any]

_ANY, _REST = "*", "..."
_OPERATIONS = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
_NAMES = re.compile(r"{(\w+)}")
_NO_WORD = re.compile(r"\W+")
_KEY = "key"
_SCHEMAS = "#/components/schemas/"
_ANY_VALUE = "Any value."


class ApiModel(msgspec.Struct, frozen=True):
    """Names a model that serves, with requests to it that work; one without a body has no example of one."""

    spec: ModelSpec
    examples: tuple[ExampleRequest, ...]


class ServerTitle(msgspec.Struct, frozen=True):
    """Says whose document it is: name and version as clients see them, and whether keys are asked for."""

    name: str
    version: str
    has_keys: bool = False


def openapi(title: ServerTitle, wires: Sequence[WireDescription], models: Sequence[ApiModel]) -> Document:
    """Return the document. Of two rows with the same method and path the first one counts."""
    return _Assembly(title, wires).document(models)


def paths_of(route: DescribedRoute) -> Iterator[str]:
    """Yield the paths by which a row stands in the document."""
    path = route.path
    if not path.endswith(_REST):
        yield path
        return
    whole = path.removesuffix(_REST)
    yield whole.rpartition("/")[0] or "/"
    if whole.endswith("}"):
        yield whole


def methods_of(route: DescribedRoute) -> Iterator[str]:
    """Yield the methods by which a row stands in the document."""
    for method in route.methods:
        if method == _ANY:
            yield "POST" if route.what.body is not None else "GET"
        elif method in _OPERATIONS:
            yield method


class _Assembly:
    """Collects the parts of one document."""

    def __init__(self, title: ServerTitle, wires: Sequence[WireDescription]) -> None:
        self._title = title
        self._wires = wires
        self._ids: set[str] = set()
        self._types: dict[Any, Any] = {}
        self._collect(wires)

    def document(self, models: Sequence[ApiModel]) -> Document:
        paths: dict[str, dict[str, Any]] = {}
        for wire in self._wires:
            for route in wire.routes:
                for path in paths_of(route):
                    shown = self._same(paths, path)
                    for method in methods_of(route):
                        item = paths.setdefault(shown, {})
                        if method.lower() not in item:
                            item[method.lower()] = self._operation(wire, route, shown)
        tags = [{"name": wire.title, "description": wire.note or wire.title} for wire in self._wires]
        of_models: dict[str, dict[str, Any]] = {}
        for model in models:
            self._add_model(model, paths, of_models)
        tags = [
            *(
                {
                    "name": _tag(model.spec),
                    "description": f"Version {model.spec.version}, engine {model.spec.engine}",
                }
                for model in models
                if model.examples
            ),
            *tags,
        ]
        errors = {
            f"{_slug(wire.title)}_{status}": self._answer(status, body)
            for wire in self._wires
            for status, body in wire.errors.items()
        }
        components: dict[str, Any] = {"schemas": self._components, "responses": errors}
        found: Document = {
            "openapi": "3.1.0",
            "info": {"title": self._title.name, "version": self._title.version or "0"},
            "tags": tags,
            "paths": {**of_models, **paths},
            "components": components,
        }
        if self._title.has_keys:
            components["securitySchemes"] = {_KEY: {"type": "http", "scheme": "bearer"}}
        return found

    # -- routes --------------------------------------------------------------------------------------------

    @staticmethod
    def _same(paths: Mapping[str, Any], path: str) -> str:
        """Return a path under the names that its segments already have in the document: others are no other path."""
        plain = _NAMES.sub("{}", path)
        return next((known for known in paths if _NAMES.sub("{}", known) == plain), path)

    def _operation(self, wire: WireDescription, route: DescribedRoute, path: str) -> Document:
        what = route.what
        found = self._head(wire, route, what.summary, what.note, f"{wire.title} {route.verb}", path)
        found["tags"] = [wire.title]
        arguments = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in _NAMES.findall(path)
        ]
        arguments += [
            {
                "name": one.name,
                "in": one.where,
                "schema": dict(one.schema),
                "description": one.note or one.name,
            }
            for one in what.arguments
        ]
        if arguments:
            found["parameters"] = arguments
        self._exchange(found, wire, what.body, what.answers)
        return found

    def _head(
        self, wire: WireDescription, route: DescribedRoute, summary: str, note: str, name: str, path: str
    ) -> Document:
        found: Document = {"operationId": self._id(name, path), "summary": summary}
        if note:
            found["description"] = note
        if self._title.has_keys:
            found["security"] = [] if route.scope is AccessScope.OPEN else [{_KEY: []}]
        found["x-scope"] = route.scope.value
        return found

    def _exchange(
        self,
        found: Document,
        wire: WireDescription,
        body: DescribedBody | None,
        answers: Mapping[str, DescribedBody | None],
    ) -> None:
        if body is not None:
            found["requestBody"] = {"required": body.is_required, "content": self._content(body)}
            if body.note:
                found["requestBody"]["description"] = body.note
        errors = {} if "default" in answers and len(answers) == 1 else wire.errors
        told = {**errors, **answers}
        found["responses"] = {
            status: self._answer(status, told[status])
            if status in answers
            else {"$ref": f"#/components/responses/{_slug(wire.title)}_{status}"}
            for status in sorted(told)
        }

    def _answer(self, status: str, body: DescribedBody | None) -> Document:
        if body is None:
            return {"description": _DESCRIBED_STATUS.get(status, "There is no body.")}
        told = {"description": body.note or _DESCRIBED_STATUS.get(status, "The answer.")}
        return {**told, "content": self._content(body)} if body.schemas else told

    def _content(self, body: DescribedBody) -> Document:
        return {kind: {"schema": self._schema(schema)} for kind, schema in body.schemas.items()}

    def _id(self, name: str, path: str) -> str:
        """Return a name that no other operation has: where one verb has several paths, the later ones have a number."""
        plain = _slug(name)
        plain += "_of_version" if "{version}" in path else ""
        number, found = 1, plain
        while found in self._ids:
            number += 1
            found = f"{plain}_{number}"
        self._ids.add(found)
        return found

    # -- models --------------------------------------------------------------------------------------------

    def _add_model(
        self, model: ApiModel, paths: dict[str, dict[str, Any]], of_models: dict[str, dict[str, Any]]
    ) -> None:
        for example in model.examples:
            wire, route = self._owner(example)
            if wire is None or route is None:
                continue
            if "{" not in route.path:
                operation = paths.get(route.path, {}).get(example.method.lower(), {})
                content = operation.get("requestBody", {}).get("content", {}).get(example.content_type)
                if content is not None:
                    content.setdefault("examples", {})[model.spec.name] = {"value": _value(example)}
                continue
            of_models.setdefault(example.path, {})[example.method.lower()] = self._model_operation(
                wire, route, model, example
            )

    def _model_operation(
        self, wire: WireDescription, route: DescribedRoute, model: ApiModel, example: ExampleRequest
    ) -> Document:
        spec, what = model.spec, route.what
        name = f"{wire.title} {route.verb} {spec.name}"
        found = self._head(wire, route, what.summary, what.note, name, "")
        found["tags"] = [_tag(spec)]
        bodies = what.of_model(spec)
        body, answers = (what.body, what.answers) if bodies is None else (bodies.body, bodies.answers)
        self._exchange(found, wire, body, answers)
        content = found.get("requestBody", {}).get("content", {})
        kind = example.content_type or JSON_KIND
        if example.body and kind in content:
            found["requestBody"]["content"] = {
                kind: {**content[kind], "example": _value(example)},
                **{other: content[other] for other in content if other != kind},
            }
        elif example.file or not example.body:
            kinds = sorted(content, key=lambda kind: kind == JSON_KIND and not spec.inputs)
            if content:
                found["requestBody"]["content"] = {kind: content[kind] for kind in kinds}
        return found

    def _owner(self, example: ExampleRequest) -> tuple[WireDescription | None, DescribedRoute | None]:
        """Return the route that a request is for, of those that fit the one that says most of it literally."""
        found = [
            (sum(segment[:1] != "{" for segment in path.split("/")), -number, wire, route)
            for number, wire in enumerate(self._wires)
            for route in wire.routes
            for path in paths_of(route)
            if any(
                Endpoint(method, path).matches(example.method, _plain(example.path))
                for method in route.methods
            )
        ]
        if not found:
            return None, None
        _, _, wire, route = max(found, key=lambda each: each[:2])
        return wire, route

    # -- schemas -------------------------------------------------------------------------------------------

    def _collect(self, wires: Sequence[WireDescription]) -> None:
        """Have msgspec make a schema of each type that a body has."""
        found: dict[Any, None] = {}
        for wire in wires:
            for route in wire.routes:
                bodies = [route.what.body, *route.what.answers.values(), *wire.errors.values()]
                for body in bodies:
                    for schema in () if body is None else body.schemas.values():
                        found |= dict.fromkeys(_types_in(schema))
        types = list(found)
        made, self._components = msgspec.json.schema_components(
            types, schema_hook=lambda kind: {"description": _ANY_VALUE}, ref_template=_SCHEMAS + "{name}"
        )
        self._types = dict(zip(types, made, strict=True))

    def _schema(self, schema: Any) -> Any:
        """Return a schema with references in place of the types in it; what has definitions of its own keeps them."""
        if isinstance(schema, type):
            return self._types[schema]
        if isinstance(schema, Mapping):
            return {name: self._schema(value) for name, value in schema.items()}
        return [self._schema(value) for value in schema] if isinstance(schema, list | tuple) else schema


_DESCRIBED_STATUS = {
    "200": "The answer.",
    "202": "It was begun.",
    "204": "It is done.",
    "303": "It is done; go on there.",
    "304": "It is as the client knows it.",
    "413": "The request is too large.",
    "4XX": "The request cannot be served as it is: what is wrong with it, and the next step.",
    "5XX": "The server, or the model, could not answer.",
    "default": "Whatever else is said.",
}


def _types_in(schema: Any) -> Iterator[type]:
    if isinstance(schema, type):
        yield schema
    elif isinstance(schema, Mapping):
        for value in schema.values():
            yield from _types_in(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _types_in(value)


def _slug(name: str) -> str:
    return _NO_WORD.sub("_", name).strip("_").lower()


def _tag(spec: ModelSpec) -> str:
    return f"Model {spec.name}"


def _value(example: ExampleRequest) -> Any:
    try:
        return json.loads(example.body)
    except (ValueError, RecursionError):
        return example.body


def _plain(path: str) -> str:
    """Return a path whose encoded characters are plain, but for slashes, which would be other segments."""
    return "/".join(decoded(segment).replace("/", "%2F") for segment in path.split("/"))
