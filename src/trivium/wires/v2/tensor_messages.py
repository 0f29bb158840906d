"""The typed face of a configuration's inputs and outputs. See `model_config`."""

from collections.abc import MutableSequence

from google.protobuf.message import Message


class Reshape(Message):
    """The shape that the backend sees; empty for a scalar."""

    shape: MutableSequence[int]


class ModelTensor(Message):
    """A ModelInput or a ModelOutput, whose served fields are alike."""

    name: str
    data_type: int
    dims: MutableSequence[int]
    reshape: Reshape


class ModelInput(ModelTensor):
    """An input."""

    format: int
    allow_ragged_batch: bool
    optional: bool


class ModelOutput(ModelTensor):
    """An output."""

    label_filename: str


class BatchInputMessage(Message):
    """Inputs that are made of how requests lie in a batch."""

    kind: int
    target_name: MutableSequence[str]
    data_type: int
    source_input: MutableSequence[str]


class BatchOutputMessage(Message):
    """Outputs that are divided as an input was put together."""

    target_name: MutableSequence[str]
    kind: int
    source_input: MutableSequence[str]
