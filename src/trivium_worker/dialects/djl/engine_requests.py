"""Requests -> what the language model is asked, by an input formatter of user code if there is one.

It has one of two forms: it gets DJL's Input and returns a RequestInput, or it gets the document of the body and returns
another. Its annotations say which; without any, the runtime that the model was written for does.
"""

import inspect
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from trivium_worker.wire.values import Failure

_OWN = ("output_formatter", "stream", "details", "return_full_text")
"""Parameters that say how the answer is written: a function's matter where it writes that."""


class Question:
    """Holds what is asked: the `document` for the model, and the request as an output formatter sees it."""

    def __init__(self, document: dict[str, Any], request: Any) -> None:
        self.document = document
        self.request = request
        self.is_tgi = False

    @property
    def formatter(self) -> Any:
        """Return the formatter that the request itself asks for: a name, a function, or None."""
        parameters = self.document.get("parameters")
        nested = parameters.get("output_formatter") if isinstance(parameters, dict) else None
        return nested or self.document.get("output_formatter")

    @property
    def streams(self) -> bool:
        """Tell whether the request asks for its answer in pieces."""
        parameters = self.document.get("parameters")
        nested = parameters.get("stream") if isinstance(parameters, dict) else None
        return bool(self.document.get("stream") or nested)

    def of_tokens(self) -> dict[str, Any]:
        """Return the document without what says how the answer is written."""
        document = {key: value for key, value in self.document.items() if key not in _OWN}
        parameters = document.get("parameters")
        if isinstance(parameters, dict):
            document["parameters"] = {key: value for key, value in parameters.items() if key not in _OWN}
        return document


class LazyTokenizer:
    """The tokenizer of the model's weights, which is loaded when user code first uses it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._loaded: Any = None

    def _tokenizer(self) -> Any:
        if self._loaded is None:
            from transformers import AutoTokenizer

            self._loaded = AutoTokenizer.from_pretrained(self._folder, local_files_only=True)
        return self._loaded

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._tokenizer()(*arguments, **named)

    def __len__(self) -> int:
        return len(self._tokenizer())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._tokenizer(), name)


class InputForm:
    """Makes a question of each request, by user code's function if there is one."""

    def __init__(
        self, function: Callable[..., Any] | None, named: dict[str, Any], of_documents: bool
    ) -> None:
        self._function = function
        self._named = named
        self._of_documents = of_documents

    def asked(self, inputs: Any, number: int) -> Question:
        """Return the question. Raises what user code raises, Failure for what cannot be asked."""
        if self._function is not None and not self._of_documents:
            request = self._function(inputs, **self._named)
            return self._of_request(request, inputs, number)
        from djl_python.encode_decode import decode

        try:
            document = decode(inputs, inputs.get_property("Content-Type"))
        except ValueError as error:
            raise Failure(f"the request is no JSON: {error}", "model failed") from None
        if self._function is not None:
            document = self._function(document, **self._named)
        if not isinstance(document, dict):
            found = type(document).__name__
            raise Failure(
                f"expected is a dict with inputs, prompt or messages, and there is {found}", "model failed"
            )
        return self._completed(dict(document), self._request_of(document), inputs, number)

    def _of_request(self, request: Any, inputs: Any, number: int) -> Question:
        from djl_python.request_io import RequestInput

        if not isinstance(request, RequestInput):
            found = type(request).__name__
            raise Failure(
                f"it returned {found}; expected is a RequestInput, such as TextInput", "model failed"
            )
        text = getattr(request, "input_text", None)
        if isinstance(text, list) and text and all(isinstance(one, dict) for one in text):
            document: dict[str, Any] = {"messages": text, **request.parameters}
        else:
            only = text[0] if isinstance(text, list) and len(text) == 1 else text
            document = {"inputs": only, "parameters": dict(request.parameters)}
        if callable(request.output_formatter) or request.output_formatter:
            document.setdefault("output_formatter", request.output_formatter)
        return self._completed(document, request, inputs, number)

    def _request_of(self, document: dict[str, Any]) -> Any:
        from djl_python.request_io import TextInput

        known = "inputs" in document
        rest = {key: value for key, value in document.items() if key not in ("prompt", "messages")}
        parameters = document.get("parameters") if known else rest
        text = document.get("inputs", document.get("prompt", document.get("messages")))
        return TextInput(input_text=text, parameters=dict(parameters) if isinstance(parameters, dict) else {})

    def _completed(self, document: dict[str, Any], request: Any, inputs: Any, number: int) -> Question:
        if document.get("stream"):
            request.parameters.setdefault("stream", True)
        request.request_id = number
        request.client_request_id = inputs.get_property("requestId")
        request.tokenizer = self._named.get("tokenizer", getattr(request, "tokenizer", None))
        request.server_parameters = dict(request.parameters)
        return Question(document, request)


def input_form(
    function: Callable[..., Any] | None,
    is_asynchronous: bool,
    properties: dict[str, str],
    tokenizer: LazyTokenizer,
) -> InputForm:
    """Return the form of a function; `is_asynchronous` decides where its annotations do not."""
    if function is None:
        return InputForm(None, {"tokenizer": tokenizer}, True)
    of_documents = _takes_documents(function, is_asynchronous)
    named = {"tokenizer": tokenizer}
    if not of_documents:
        named |= _surroundings(properties)
    taken = inspect.signature(function).parameters.values()
    if not any(one.kind is one.VAR_KEYWORD for one in taken):
        names = {one.name for one in taken}
        named = {name: value for name, value in named.items() if name in names}
    return InputForm(function, named, of_documents)


def _takes_documents(function: Callable[..., Any], is_asynchronous: bool) -> bool:
    from djl_python.inputs import Input
    from djl_python.request_io import RequestInput

    signature = inspect.signature(function)
    first = next(iter(signature.parameters.values()), None)
    noted = first.annotation if first is not None else inspect.Parameter.empty
    made = signature.return_annotation
    if noted in (Input, "Input") or (isinstance(made, type) and issubclass(made, RequestInput)):
        return False
    if "RequestInput" in str(made) or "TextInput" in str(made):
        return False
    if noted is dict or str(noted).lower().startswith(("dict", "typing.dict")):
        return True
    return is_asynchronous


def _surroundings(properties: dict[str, str]) -> dict[str, Any]:
    """Return what DJL's service passes with a request: its configuration, and names that have no counterpart here."""
    configs = SimpleNamespace(**{key: value for key, value in properties.items() if key.isidentifier()})
    for name in ("rolling_batch", "output_formatter", "input_formatter", "model_id_or_path"):
        if not hasattr(configs, name):
            setattr(configs, name, None)
    nothing = (
        "model",
        "model_config",
        "peft_config",
        "rolling_batch",
        "image_placeholder_token",
        "hf_pipeline",
    )
    return {"configs": configs, "adapter_registry": {}, "is_rolling_batch": True, **dict.fromkeys(nothing)}


def as_body(document: dict[str, Any]) -> bytes:
    """Return a document as the body of a request. Failure, naming it, for a member that is no JSON."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise Failure(f"what is to be asked is no JSON: {error}", "model failed") from None
