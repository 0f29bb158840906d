"""Holds what a handler answers against the outputs that are declared for it: datatypes, and the batch dimension.

One comparison for each output; words are found for those alone that differ. What is declared is believed of other
engines, which read it from the model file.
"""

import logging

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import ModelSpec

log = logging.getLogger(__name__)


class AnswerRules:
    """Those of one model, prepared once. Unless they are `binding`, what differs is logged, once for each output."""

    def __init__(self, spec: ModelSpec, binding: bool) -> None:
        self._model = spec.name
        self._datatypes = {tensor.name: tensor.datatype for tensor in spec.outputs}
        self._has_axis = spec.batching.batch_axis
        self._is_binding = binding
        self._reported: set[str] = set()

    def fault(self, answer: Tensors, rows: int | None) -> ServeError | None:
        """Return what is wrong with an answer to a request of so many rows; a part may have any number (None)."""
        counts = self._has_axis and rows is not None
        for tensor in answer.items:
            declared = self._datatypes.get(tensor.name)
            if declared is not None and (
                tensor.datatype is not declared or (counts and (not tensor.shape or tensor.shape[0] != rows))
            ):
                if self._is_binding:
                    return self._fault(tensor, rows)
                if tensor.name not in self._reported:
                    self._reported.add(tensor.name)
                    told = self._fault(tensor, rows).message
                    log.warning("%s It is passed on as it is, and not said again.", told)
        return None

    def _fault(self, tensor: Tensor, rows: int | None) -> ServeError:
        declared, found = self._datatypes[tensor.name], tensor.datatype
        told: dict[str, object] = {"model": self._model, "output": tensor.name}
        if found is not declared:
            words = f"as {found.wire}; it is declared as {declared.wire}"
            told |= {"found": found.wire, "expected": declared.wire}
        else:
            words = f"with the shape {list(tensor.shape)} to a request of {rows} rows; the first dimension is the batch"
            told |= {"found": tensor.shape, "expected": rows}
        return ServeError(
            Code.MODEL_FAILED,
            f"Model '{self._model}' answered output '{tensor.name}' {words}. Correct the handler, or what is declared.",
            info=ErrorInfo.of(reasons.UNLIKE_ANSWER, **told),
        )


def answer_rules(spec: ModelSpec, binding: bool) -> AnswerRules | None:
    """Make the rules of a model whose answers are user code's; None for any other, and where nothing is declared."""
    return AnswerRules(spec, binding) if spec.handler is not None and spec.outputs else None
