"""The inputs that tell a model about a request's place in its sequence; made here, never sent by clients. Pure.

Sheet "triton", section 7.7.
"""

from collections.abc import Sequence

import numpy as np

from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Tensor, Tensors
from trivium.types.schedules import Control, Signal

_MOST = {
    DataType.UINT64: 2**64 - 1,
    DataType.INT64: 2**63 - 1,
    DataType.UINT32: 2**32 - 1,
    DataType.INT32: 2**31 - 1,
}


class Controls:
    """Makes the control inputs of one model. One element each, with a batch dimension where the model has one."""

    def __init__(self, model: str, controls: Sequence[Control], batch_axis: bool) -> None:
        self._model = model
        self._controls = tuple(controls)
        self.are_some = bool(self._controls)
        self._shape = (1, 1) if batch_axis else (1,)
        self._no = {control: self._tensor(control, control.no) for control in controls}
        self._yes = {
            control: self._tensor(control, control.yes)
            for control in controls
            if control.signal is not Signal.ID
        }

    def of(self, ref: SequenceRef) -> tuple[Tensor, ...]:
        """The inputs for a request. Raises INVALID for an id that the model's control cannot hold."""
        is_so = {Signal.START: ref.starts, Signal.END: ref.ends, Signal.READY: True}
        return tuple(
            self._id(control, ref.id)
            if control.signal is Signal.ID
            else (self._yes if is_so[control.signal] else self._no)[control]
            for control in self._controls
        )

    def off(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The inputs of a request without those that were added."""
        return tensors[: len(tensors) - len(self._controls)]

    def idle(self, like: Infer) -> Infer:
        """A request for a row without one: zeros in the shapes of another request's inputs."""
        payload = like.payload
        assert isinstance(payload, Tensors)
        own = self.off(payload.items)
        zeros = tuple(Tensor(t.name, t.datatype, t.shape, _zeros(t.datatype, t.shape)) for t in own)
        return Infer(
            model=like.model, version=like.version, payload=Tensors(zeros + tuple(self._no.values()))
        )

    def _id(self, control: Control, identity: int | str) -> Tensor:
        if control.datatype is DataType.BYTES:
            return self._tensor(control, str(identity).encode())
        most = _MOST[control.datatype]
        if isinstance(identity, str) or not 0 <= identity <= most:
            raise ServeError(
                Code.INVALID,
                f"Model '{self._model}' takes the ids of its sequences as {control.datatype.wire}; {identity!r} is "
                f"none. Send a number from 1 to {most}.",
            )
        return self._tensor(control, identity)

    def _tensor(self, control: Control, value: int | float | bool | bytes) -> Tensor:
        array = np.empty(self._shape, control.datatype.dtype)
        array[...] = value
        return Tensor(control.name, control.datatype, self._shape, array)


def _zeros(datatype: DataType, shape: tuple[int, ...]) -> Array:
    array = np.zeros(shape, datatype.dtype)
    if datatype is DataType.BYTES:
        array.fill(b"")
    return array
