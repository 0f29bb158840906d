"""Functions of DJL's workflows: user code in Python that gets an Input for each of its arguments.

What it may return: an Output, an Input, text, bytes, a value for JSON, None, or a list of Outputs, which the next step
gets as a list of Inputs. A class is made once, with its configuration, and then called. Source: spec sheet `djl`,
section 6.2, where functions are in Java.
"""

import inspect
import logging
import sys
import uuid
from typing import Any

from trivium_worker.dialects.djl.entry import function_of, load_entry
from trivium_worker.dialects.djl.handler import failure_of
from trivium_worker.dialects.djl.request import shown, single
from trivium_worker.dialects.djl.result import whole
from trivium_worker.runtime.adapter import Adapter, Setup
from trivium_worker.wire.values import Failure, Item, Listed, Outcome, Part, Raw, Whole

_JSON, _TEXT = "application/json", "text/plain"
_NO_CONTENT = 204
_FAILED = 424


FUNCTION = "workflow_function"
"""The setting that makes of a handler a function of a workflow; its value is what it is configured with."""


class DjlFunctionAdapter(Adapter):
    """One function. Constructing it imports user code, and makes the object where it is a class."""

    def __init__(self, setup: Setup) -> None:
        from djl_python.inputs import Input
        from djl_python.outputs import Output

        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
        self._types = (Output, Input)
        self._name = setup.function
        module = load_entry(setup.root, setup.entry)
        written: Any = function_of(module, setup.entry, self._name, True)
        function = written(setup.settings[FUNCTION]) if isinstance(written, type) else written
        if not callable(function):
            raise Failure(
                f"{self._name} in {setup.entry} makes objects that cannot be called.", "load failed"
            )
        if any(map(_is_asynchronous, (function, type(function).__call__))):
            text = f"{self._name} in {setup.entry} is an async function, which nobody would wait for."
            raise Failure(f"{text} Define it without async.", "load failed")
        self._function = function
        self._always = {
            "handler": self._name,
            "device_id": str(setup.device_id) if setup.device == "gpu" else "-1",
            "model_dir": setup.root,
        }

    def run(self, items: list[Item]) -> list[Outcome]:
        """Return what the function makes of each item."""
        return [self._answer(item) for item in items]

    def close(self) -> None:
        """A function has no call for the end."""

    def _answer(self, item: Item) -> Outcome:
        payload: Any = item.payload
        request_id = item.request_id or str(uuid.uuid4())
        try:
            given = payload.payloads if isinstance(payload, Listed) else [payload]
            return self._returned(self._function(*[self._input(item, one, request_id) for one in given]))
        except Exception as error:
            return failure_of(error)

    def _input(self, item: Item, payload: Whole, request_id: str) -> Any:
        """Return an argument: an Input, or of a list a list of them."""
        if isinstance(payload, Listed):
            return [self._input(item, one, request_id) for one in payload.payloads]
        return single(shown(item, payload, request_id), self._name, self._always)

    def _returned(self, value: Any) -> Raw | Listed:
        if isinstance(value, (list, tuple)) and value and all(isinstance(one, self._types) for one in value):
            return Listed([self._of_content(one) for one in value])
        if isinstance(value, self._types):
            return self._of_content(value)
        if value is None:
            return Raw([], status=_NO_CONTENT, reason="No content")
        if isinstance(value, (bytes, bytearray, memoryview)):
            return Raw([Part(bytes(value))])
        if isinstance(value, str):
            return Raw([Part(value.encode("utf-8"), _TEXT)])
        return Raw([Part(self._json(value), _JSON)])

    def _of_content(self, value: Any) -> Raw:
        output_type, _ = self._types
        if not isinstance(value, output_type):
            output = output_type()
            output.properties.update(self._without_ours(value.properties))
            output.content = value.content
            return whole(output)
        if value.stream_content is not None:
            raise Failure(
                f"{self._name} streams, and a function answers once. Return the whole.", "model failed"
            )
        answer = whole(value)
        value.execute_finalize()
        return answer

    def _without_ours(self, properties: dict[str, str]) -> dict[str, str]:
        return {
            key: text for key, text in properties.items() if key not in self._always and key != "requestId"
        }

    def _json(self, value: Any) -> bytes:
        from djl_python.outputs import as_json

        try:
            return bytes(as_json(value).encode("utf-8"))
        except TypeError:
            text = (
                f"Invalid output type: {type(value).__name__}. {self._name} must return an Output, text, bytes, a "
                "value for JSON, None, or a list of Outputs."
            )
            raise Failure(text, "model failed", _FAILED) from None


def _is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
