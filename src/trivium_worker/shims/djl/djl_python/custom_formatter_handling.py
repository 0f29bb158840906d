"""Functions of a folder's model.py around a model that is no language model: those with a decorator, or SageMaker's.

Source: the documentation of DJL Serving's scikit-learn handler. Decorated functions go before SageMaker's.
"""

import inspect
import os
from collections.abc import Callable
from typing import Any

from djl_python.inputs import Input
from djl_python.service_loader import find_decorated_function, load_model_service
from trivium_worker.runtime.traces import place_of

_FILE = "model.py"
_DECORATED = {
    "init_handler": "is_init_handler",
    "input_formatter": "is_input_formatter",
    "prediction_handler": "is_prediction_handler",
    "output_formatter": "is_output_formatter",
}
_SAGEMAKER = {
    "init_handler": ("model_fn", ("model_dir",)),
    "input_formatter": ("input_fn", ("request_body", "content_type")),
    "prediction_handler": ("predict_fn", ("input_data", "model")),
    "output_formatter": ("output_fn", ("prediction", "accept")),
}


class CustomFormatterError(Exception):
    """A function of the folder's, or its file, has failed: with which words, and where."""

    def __init__(self, message: str, original_exception: Exception) -> None:
        super().__init__(message)
        self.original_exception = original_exception
        self.__cause__ = original_exception


class CustomFormatterHandler:
    """Has up to four functions of a model.py, which load the model, read a request, predict, and write the answer."""

    def __init__(self) -> None:
        self.init_handler: Callable[..., Any] | None = None
        self.input_formatter: Callable[..., Any] | None = None
        self.prediction_handler: Callable[..., Any] | None = None
        self.output_formatter: Callable[..., Any] | None = None
        self.is_sagemaker_script = False

    def load_formatters(self, model_dir: str, namespace: str | None = None) -> None:
        """Run the folder's model.py, if it has one, and take its functions. CustomFormatterError where it fails."""
        if not os.path.exists(os.path.join(model_dir, _FILE)):
            return
        try:
            module = load_model_service(model_dir, _FILE, -1, namespace).module
        except Exception as error:
            raise _failed("could not be loaded", _FILE, error) from error
        found = {name: find_decorated_function(module, mark) for name, mark in _DECORATED.items()}
        if not any(found.values()):
            found = {name: _of_sagemaker(module, *each) for name, each in _SAGEMAKER.items()}
            self.is_sagemaker_script = any(found.values())
        for name, function in found.items():
            setattr(self, name, function)

    def apply_init_handler(self, model_dir: str, **kwargs: Any) -> Any:
        """Return the model that the folder's own function loads; None where it has none."""
        return self._applied(self.init_handler, model_dir, **kwargs)

    def apply_input_formatter(self, decoded_payload: Input, **kwargs: Any) -> Any:
        """Return what the folder's own function reads in a request; the request itself where it has none."""
        if self.input_formatter is None:
            return decoded_payload
        if self.is_sagemaker_script:
            body = bytes(decoded_payload.get_as_bytes() or b"")
            return self._applied(self.input_formatter, body, kwargs.get("content_type"))
        return self._applied(self.input_formatter, decoded_payload, **kwargs)

    def apply_prediction_handler(self, X: Any, model: Any, **kwargs: Any) -> Any:
        """Return what the folder's own function predicts; None where it has none."""
        return self._applied(self.prediction_handler, X, model, **kwargs)

    def apply_output_formatter(self, output: Any, **kwargs: Any) -> Any:
        """Return what the folder's own function makes of a prediction; the prediction itself where it has none."""
        if self.output_formatter is None:
            return output
        if self.is_sagemaker_script:
            return self._applied(self.output_formatter, output, kwargs.get("accept"))
        return self._applied(self.output_formatter, output)

    def _applied(self, function: Callable[..., Any] | None, *arguments: Any, **named: Any) -> Any:
        if function is None:
            return None
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise _failed("failed", getattr(function, "__name__", str(function)), error) from error


def _of_sagemaker(module: Any, name: str, parameters: tuple[str, ...]) -> Callable[..., Any] | None:
    """Return a function by SageMaker's name, which is called with as many arguments as there are parameters, whatever
    it calls them. TypeError for one that cannot be.
    """
    function = getattr(module, name, None)
    if function is None:
        return None
    asked = f"{name}({', '.join(parameters)})"
    if not callable(function):
        raise TypeError(f"{name} in {_FILE} is no function. Define {asked}, or remove it.")
    found: Callable[..., Any] = function
    try:
        inspect.signature(found).bind(*parameters)
    except ValueError:
        return found  # it does not tell
    except TypeError as error:
        raise TypeError(f"{name} in {_FILE} cannot be called as {asked}: {error}. Define it so.") from None
    return found


def _failed(how: str, what: str, error: Exception) -> CustomFormatterError:
    place = place_of(error)
    where = f" ({place})" if place else ""
    return CustomFormatterError(f"{what} {how}: {type(error).__name__}: {error}{where}", error)
