"""The answer to one request, made by user code or come from another model: tensors or an error, and parameters."""

import json
from collections.abc import Sequence
from typing import Any

from c_python_backend_utils.errors import TritonError, TritonModelException
from c_python_backend_utils.tensor import Tensor
from trivium_worker.wire.values import Scalar

_SCALARS = (bool, int, float, str)


class InferenceResponse:
    """Tensors, or an error in place of them. TypeError where an element is no Tensor or the error no TritonError."""

    __slots__ = ("_error", "_parameters", "_tensors")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: dict[str, Scalar] | None = None,
    ) -> None:
        tensors = list(output_tensors)
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"InferenceResponse: output_tensors holds a {type(tensor).__name__}; expected Tensor objects"
                )
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"InferenceResponse: error is a {type(error).__name__}; expected a TritonError")
        self._tensors = tensors
        self._error = error
        self._parameters = checked_parameters(parameters) if parameters else None

    def output_tensors(self) -> list[Tensor]:
        """The tensors, in order."""
        return self._tensors

    def has_error(self) -> bool:
        """Is it an error?"""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error, or None."""
        return self._error

    def parameters(self) -> str:
        """The parameters as JSON, "{}" if there are none."""
        return json.dumps(self._parameters or {})

    def outcome(self, wanted: Any) -> Any:
        """Return the outcome of the response: a failure, or those of the tensors whose names are among `wanted`."""
        if self._error is not None:
            return self._error.failure()
        return [tensor.on_wire() for tensor in self._tensors if tensor._name in wanted]


def checked_parameters(parameters: Any) -> "dict[str, Scalar]":
    """A copy. TritonModelException, in the original's words, where a name is no text, or a value no plain one; a float
    is taken, which the original refuses.
    """
    if not isinstance(parameters, dict):
        raise TritonModelException(f"Parameters are a {type(parameters).__name__}; expected a dict.")
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(name)}")
        if not isinstance(value, _SCALARS):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/str, found type {type(value)}"
            )
    return dict(parameters)
