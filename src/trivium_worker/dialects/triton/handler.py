"""The Triton dialect: a class `TritonPythonModel` that gets requests and returns responses, or sends them.

Decides by the rules of sheet "triton", sections 8.1, 8.2 and 8.5. Where the original would let a client hang
(nothing returned, nothing sent), the request fails. Needs numpy, which the shims import.
"""

import json
import os
import sys
from collections.abc import Coroutine
from typing import Any

from trivium_worker.dialects.triton.loading import load_module
from trivium_worker.dialects.triton.loop import EventLoop
from trivium_worker.dialects.triton.texts import reported
from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.wire.values import Failure, Item, Outcome


class TritonAdapter(Adapter):
    """One instance of a model. `settings["model_config"]` is the configuration's JSON text."""

    def __init__(self, setup: Setup, host: Host) -> None:
        """Raises Failure ("load failed") with what user code raised, or where there is no numpy."""
        check_numpy()
        from c_python_backend_utils.backend import BACKEND
        from c_python_backend_utils.request import ReceivedRequest
        from c_python_backend_utils.response import InferenceResponse
        from c_python_backend_utils.sender import LEFT_OVER

        self._backend = BACKEND
        self._make_request: Any = ReceivedRequest
        self._response = InferenceResponse
        self._left_over = LEFT_OVER
        self._loop = EventLoop()
        self._file = os.path.join(setup.root, setup.entry)
        config = setup.settings["model_config"]
        BACKEND.start(host, setup.instance, setup.root, json.loads(config))
        self._model = _loaded(setup, config)
        self.has_check = hasattr(self._model, "is_ready")
        if not callable(getattr(self._model, "execute", None)):
            self._model = _WithoutExecute(self._file, self._model)
        BACKEND.is_serving = True

    def run(self, items: list[Item]) -> list[Outcome]:
        """See `Adapter.run`. Where user code raises, all requests fail that it had not answered."""
        make_request = self._make_request
        requests = [make_request(item) for item in items]
        backend = self._backend
        backend.batch = items
        try:
            returned = self._model.execute(requests)
            if returned.__class__ is list and len(returned) == len(requests) and not backend.is_decoupled:
                outcomes = self._plain(items, requests, returned)
                if outcomes is not None:
                    return outcomes
            elif isinstance(returned, Coroutine):
                returned = self._awaited(returned, requests, items)
            return self._all(requests, returned)
        except Exception as error:
            failure = reported(error)
            return [request.fail(failure.message, failure.code) for request in requests]
        finally:
            backend.batch = ()

    def check(self) -> str:
        """Return the answer of `is_ready`, which may be a coroutine (sheet "triton", section 8.1); what it raises
        means no.
        """
        try:
            said = self._model.is_ready()
            if isinstance(said, Coroutine):
                said = self._loop.result(said, (), ends=())
            if not isinstance(said, bool):
                raise Failure(f"is_ready() must return a boolean value, found type '{type(said)}'.")
        except (Exception, SystemExit) as error:
            return reported(error).message
        return "" if said else f"Model '{self._backend.instance}' is not ready (user-defined check failed)."

    def close(self) -> None:
        """Call `finalize`, if there is one; what it raises is printed."""
        self._backend.is_serving = False
        self._loop.stop()
        finalize = getattr(self._model, "finalize", None)
        if finalize is not None:
            try:
                finalize()
            except Exception as error:
                reported(error)
        self._left_over.stop()

    def _plain(self, items: list[Item], requests: list[Any], returned: list[Any]) -> list[Outcome] | None:
        """The usual case: a response with tensors alone for every request. None where something is otherwise."""
        outcomes: list[Outcome] = []
        declared = self._backend.declared
        for item, request, response in zip(items, requests, returned, strict=False):
            if (
                response.__class__ is not self._response
                or request._sender is not None
                or response._error is not None
                or response._parameters is not None
            ):
                return None
            wanted = item.outputs or declared
            outcomes.append([tensor.on_wire() for tensor in response._tensors if tensor._name in wanted])
            request._is_answered = True
        return outcomes

    def _all(self, requests: list[Any], returned: Any) -> list[Outcome]:
        """Outcomes by every rule of sheet "triton", section 8.2. Raises Failure where one of them is broken."""
        if returned is None:
            returned = [None] * len(requests)
        elif self._backend.is_decoupled:
            raise Failure(
                f"Python model '{self._backend.instance}' is using the decoupled mode and the execute "
                "function must return None."
            )
        elif not isinstance(returned, list):
            raise Failure(f"Expected a list in the execute return, found type '{type(returned)}'.")
        elif len(returned) != len(requests):
            raise Failure(
                "Number of InferenceResponse objects do not match the number of InferenceRequest "
                f"objects. InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size "
                f"is:{len(returned)}\n"
            )
        for response in returned:
            if response is not None and not isinstance(response, self._response):
                raise Failure(
                    "Expected an 'InferenceResponse' object in the execute function return list, found "
                    f"type '{type(response)}'."
                )
        for request, response in zip(requests, returned, strict=False):
            if response is not None and request._sender is not None:
                request._sender.admit(True, True, True)
        return [self._one(request, response) for request, response in zip(requests, returned, strict=False)]

    def _one(self, request: Any, response: Any) -> Outcome:
        if request._wants_again:
            if response is not None:
                raise Failure("A rescheduled request cannot have a response yet: return None in its place.")
            released: Failure = request.release()
            return released
        if response is None:
            request.get_response_sender()  # that somebody keeps, or that fails the request when it is dropped
            return None
        request._is_answered = True
        outcome: Outcome = response.outcome(request._item.outputs or self._backend.declared)
        if response._parameters is not None and not isinstance(outcome, Failure):
            request._item.send(outcome, True, response._parameters)
            return None
        return outcome

    def _awaited(self, coroutine: Any, requests: list[Any], items: list[Item]) -> Any:
        """Return what the coroutine returns; that of a decoupled model goes on by itself."""
        if not self._backend.is_decoupled:
            return self._loop.result(coroutine, tuple(items))

        def failed(failure: Failure) -> None:
            for request in requests:
                outcome = request.fail(failure.message, failure.code)
                if outcome is not None:
                    request._item.send(outcome, True)

        for request in requests:
            request.get_response_sender()
        self._loop.start(coroutine, tuple(items), failed)
        return None


class _WithoutExecute:
    """A model that loads, and fails what it is asked."""

    def __init__(self, file: str, model: Any) -> None:
        self._file = file
        self.finalize = getattr(model, "finalize", None)
        self.is_ready = getattr(model, "is_ready", None)

    def execute(self, requests: list[Any]) -> Any:
        raise Failure(f"Python model {self._file} does not implement `execute` method.")


def _loaded(setup: Setup, config: str) -> Any:
    """The initialised model. Raises Failure with what its code raised; SystemExit passes."""
    try:
        model = load_module(setup.root, setup.entry, setup.version).TritonPythonModel()
        if hasattr(model, "initialize"):
            model.initialize(_arguments(setup, config))
        return model
    except Failure:
        raise
    except Exception as error:
        raise Failure(reported(error).message, "load failed") from error


def _arguments(setup: Setup, config: str) -> Any:
    """Return what `initialize` gets: all values are text."""
    return {
        "model_config": config,
        "model_instance_kind": setup.device.upper(),
        "model_instance_name": setup.instance,
        "model_instance_device_id": str(setup.device_id),
        "model_repository": os.path.dirname(os.path.abspath(setup.root)),
        "model_version": setup.version,
        "model_name": setup.model,
    }


def check_numpy() -> None:
    """Raise Failure ("load failed") where numpy is missing."""
    try:
        import numpy  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise Failure(
            (
                f"The interpreter {sys.executable} has no numpy ({error}), and a Triton model gets "
                "its tensors as numpy arrays. Install numpy for that interpreter."
            ),
            "load failed",
        ) from error
