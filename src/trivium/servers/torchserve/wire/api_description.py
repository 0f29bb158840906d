"""Describes TorchServe's API as OpenAPI: what a listener serves, and how one model is called or managed.

Made from the tables of `routes` and `management_routes`. Source: spec sheet `torchserve`, sections 4.1 and 5, for which
documents there are, and their titles; the original's own are not valid, and leave out half of its routes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import msgspec

from trivium.codecs.header_text import JSON, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.codecs.openapi import ApiOperation, ApiRoute, ApiTitle, document
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.wire.management_answer import is_known
from trivium.servers.torchserve.wire.management_routes import MANAGEMENT
from trivium.servers.torchserve.wire.routes import DESCRIPTIONS, OPEN_INFERENCE, PING, PREDICTIONS
from trivium.servers.torchserve.words.original import SERVER_VERSION
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless, unwritable
from trivium.types.listeners import Role, is_below
from trivium.types.operations import ModelDescriptions, ResponsePart
from trivium.types.wire import HttpAnswer, Target

_NAMES: Mapping[str, str] = {"model_name": "The name of a model.", "model_version": "A version of it."}
_ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["code", "type", "message"],
    "properties": {
        "code": {"type": "integer", "description": "The status."},
        "type": {"type": "string", "description": "The name of the error."},
        "message": {"type": "string", "description": "What is wrong."},
    },
}
_MODEL = "{model_name}"


class OwnedRoutes(msgspec.Struct, frozen=True):
    """Says which routes of a listener are TorchServe's: those of these prefixes (None: all that it can own), and
    whether it answers the open inference protocol by itself.
    """

    prefixes: frozenset[str] | None = None
    open_inference: bool = True


ALL_ROUTES = OwnedRoutes()


class ApiDescriber:
    """Makes the documents of one listener: of the routes that are `owned` there, for its `roles`."""

    def __init__(self, roles: Set[Role], owned: OwnedRoutes) -> None:
        inference = [PING, *PREDICTIONS, *(OPEN_INFERENCE if owned.open_inference else ())]
        prefixes = owned.prefixes
        self._inference = _owned(inference, prefixes) if Role.INFERENCE in roles else []
        self._management = _owned(MANAGEMENT, prefixes) if Role.MANAGEMENT in roles else []

    @cached_property
    def of_server(self) -> Mapping[str, Any]:
        """The description of everything that is served."""
        says = "Serves models of PyTorch, and others, to the clients of TorchServe."
        title = ApiTitle("TorchServe APIs", SERVER_VERSION, says)
        operations = [*_operations(DESCRIPTIONS), *self._inference, *self._management]
        return document(title, operations, _NAMES, _ERROR)

    def of_model(self, model: str) -> Mapping[str, Any]:
        """Describe how a model is called."""
        title = ApiTitle(f"RESTful API for: {model}", "1.0.0")
        return _of_model(title, self._inference, model)

    def of_management(self, model: str) -> Mapping[str, Any]:
        """Describe how a model is managed."""
        title = ApiTitle(f"RESTful Management API for: {model}", SERVER_VERSION)
        return _of_model(title, self._management, model)


def _of_model(title: ApiTitle, operations: Iterable[ApiOperation], model: str) -> Mapping[str, Any]:
    of_models = [operation for operation in operations if _MODEL in operation.path]
    return document(title, of_models, _NAMES, _ERROR, {"model_name": model})


def _owned(routes: Iterable[ApiRoute], prefixes: Set[str] | None) -> Sequence[ApiOperation]:
    return [
        operation
        for operation in _operations(routes)
        if prefixes is None or any(is_below(prefix, operation.path) for prefix in prefixes)
    ]


def _operations(routes: Iterable[ApiRoute]) -> Iterable[ApiOperation]:
    return [operation for route in routes for operation in route.operations]


class ApiDescriptionEncoder:
    """Writes the document that `make` makes: of the server, or of the model (`target`) that the core has described."""

    __slots__ = ("_exact", "_is_of_model", "_make", "_request_id", "_target")

    def __init__(
        self,
        request_id: str,
        make: Callable[[str], Mapping[str, Any]],
        target: Target,
        exact: bool,
        is_of_model: bool = True,
    ) -> None:
        self._request_id = request_id
        self._make = make
        self._target = target
        self._exact = exact
        self._is_of_model = is_of_model

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        try:
            body = indented(self._make(self._model(part)))
        except ServeError as error:
            return refuse(frameless(error), self._request_id, self._target, self._exact)
        except Exception as error:
            return refuse(unwritable(error), self._request_id, self._target, self._exact)
        return HttpAnswer(200, uncached_lines(self._request_id) + JSON, (body,), len(body))

    def _model(self, part: ResponsePart) -> str:
        """Return the name of the model. Raises what keeps it from being described."""
        if part.error is not None:
            raise anew(part.error)
        if not self._is_of_model and part.final:
            return ""
        if not isinstance(part.answer, ModelDescriptions):
            raise ServeError(Code.INTERNAL, "The server did not say what it serves. Report it.")
        rows = list(filter(is_known, part.answer.statuses))
        if not rows:
            model = self._target.model
            words = f"Model '{model}' is not there: it did not load, or is unregistered."
            raise ServeError(Code.NOT_FOUND, words, info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model=model))
        return rows[0].model
