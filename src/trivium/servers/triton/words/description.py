"""A model described in Triton's words: the configuration document and the platform.

Prints from the document that the model was read from, or from the spec where it was read otherwise. Must not
decide anything about how a model runs.
"""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
from google.protobuf.message import Message

from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.backends import BACKENDS
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.datatypes import number_of
from trivium.types.spec import Device, Join, ModelSpec, TensorSpec
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.model_config import Blocks, ModelConfigMessage
from trivium.wires.v2.schema import ENUMS, MESSAGES
from trivium.wires.v2.tensor_messages import ModelTensor

DIALECT = "triton"


@dataclass(frozen=True, slots=True)
class Document:
    """The contents of `Foreign` for this dialect: the file with its configuration as completed so far, and how many
    rows a model that turns out to batch may have (the server's default when the file was read).
    """

    text: ConfigText
    default_rows: int


def document_of(spec: ModelSpec) -> Document | None:
    """The document that a Triton folder was read from; None for models of other formats."""
    if spec.foreign is None or spec.foreign.dialect != DIALECT:
        return None
    assert isinstance(spec.foreign.document, Document)
    return spec.foreign.document


def config_json(spec: ModelSpec) -> bytes:
    """The configuration as the original prints it (sheet "triton", section 3.2): every field that is not a
    message, unset messages absent, enums by name, 64-bit integers as numbers, keys in the original's order.
    """
    return msgspec.json.encode(_block("ModelConfig", _config(spec)))


def config_bytes(spec: ModelSpec) -> bytes:
    """The configuration as a serialised `inference.ModelConfigMessage`."""
    return _config(spec).SerializeToString()


def platform_of(spec: ModelSpec) -> str:
    """The `platform` of a model's metadata: the configuration's, or its backend where that is empty."""
    config = _config(spec)
    return config.platform or config.backend


def _config(spec: ModelSpec) -> ModelConfigMessage:
    document = document_of(spec)
    if document is None:
        return _config_of(spec)
    config = document.text.config
    if spec.streams and not config.model_transaction_policy.decoupled:  # an ensemble, by one of its members
        whole = new_config()
        whole.CopyFrom(config)
        whole.model_transaction_policy.decoupled = True
        return whole
    return config


def _config_of(spec: ModelSpec) -> ModelConfigMessage:
    config = new_config()
    config.name = spec.name
    row = next((backend for backend in BACKENDS if backend.engine_name == spec.engine), None)
    config.platform, config.backend = (row.platform, row.name) if row else ("", spec.engine)
    config.version_policy.latest.num_versions = 1
    config.optimization.input_pinned_memory.enable = True
    config.optimization.output_pinned_memory.enable = True
    if spec.batching.batch_axis:
        config.max_batch_size = spec.batching.max_rows
    fill_tensors(config.input, tuple(_as_the_file_has_it(spec, one) for one in spec.inputs))
    for made, tensor in zip(config.input, spec.inputs, strict=True):
        made.optional = tensor.optional
    fill_tensors(config.output, tuple(_as_the_file_has_it(spec, one) for one in spec.outputs))
    if spec.batching.merge and spec.batching.batch_axis:
        config.dynamic_batching.preferred_batch_size.extend(spec.dynamic.preferred_rows)
        config.dynamic_batching.max_queue_delay_microseconds = round(spec.dynamic.max_delay * 1e6)
    for group in spec.groups:
        block = config.instance_group.add()
        kind = "KIND_GPU" if group.device is Device.GPU else "KIND_CPU"
        block.name = group.name
        block.count = group.minimum // (len(group.device_ids) or 1)
        block.kind = ENUMS["ModelInstanceGroup.Kind"][kind]
        block.gpus.extend(group.device_ids)
    config.default_model_filename = spec.entry
    for name, value in spec.parameters.items():
        config.parameters[name].string_value = value
    return config


def _as_the_file_has_it(spec: ModelSpec, tensor: TensorSpec) -> TensorSpec:
    """Return a tensor in a form that a configuration has: dims are never empty, and what gets a first dimension of one
    when it is run is reshaped to that.
    """
    if tensor.open or spec.batching.batch_axis:
        return tensor
    if spec.batching.join is not Join.ROWS and tensor.dims:
        return replace(tensor, inner=(1, *tensor.dims))
    return replace(tensor, dims=tensor.dims or (1,))


def fill_tensors(blocks: Blocks[ModelTensor], tensors: tuple[TensorSpec, ...]) -> None:
    """Add a block per input or output."""
    for tensor in tensors:
        block = blocks.add()
        block.name = tensor.name
        if not tensor.open:  # else the field stays TYPE_INVALID, which is its default
            block.data_type = number_of(tensor.datatype)
        block.dims.extend(tensor.dims)
        if tensor.inner is not None:
            block.reshape.SetInParent()
            block.reshape.shape.extend(tensor.inner)


def _block(type_: str, message: Message) -> dict[str, object]:
    printed: dict[str, object] = {}
    for name, field in MESSAGES[type_].items():
        has_presence = bool(field.oneof) or (field.type in MESSAGES and not field.is_list)
        if not has_presence or message.HasField(name):
            printed[name] = _value(field, getattr(message, name))
    return printed


def _value(field: Field, value: Any) -> object:
    if field.map_key:
        return {str(key): _single(field, value[key]) for key in value}
    if field.repeated:
        return [_single(field, each) for each in value]
    return _single(field, value)


def _single(field: Field, value: Any) -> object:
    if field.type in MESSAGES:
        return _block(field.type, value)
    if field.type in ENUMS:
        names = {number: name for name, number in ENUMS[field.type].items()}
        return names[value]
    return value
