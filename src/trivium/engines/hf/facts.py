"""Says what a model's files tell, for a probe process: sizes, memory, and a request as tensors."""

from trivium.engines.hf.description import ModelDescription, describe
from trivium.engines.hf.options import DEFAULT_SLOTS, unknown
from trivium.types.datatype import DataType
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec

OUTPUTS = (TensorSpec("text_output", DataType.BYTES, (-1,)),)


def inputs(width: int) -> tuple[TensorSpec, ...]:
    """Return a request as a client of tensors sends it; `width` is that of an embedding."""
    return (
        TensorSpec("text_input", DataType.BYTES, (1,), optional=True),
        TensorSpec("stream", DataType.BOOL, (1,), optional=True),
        TensorSpec("sampling_parameters", DataType.BYTES, (1,), optional=True),
        TensorSpec("input_ids", DataType.INT64, (-1,), optional=True),
        TensorSpec("inputs_embeds", DataType.FP32, (-1, width), optional=True),
    )


def facts(spec: ModelSpec, is_gpu: bool) -> ModelFacts:
    """Raises as `Engine.facts` says."""
    told = describe(spec, is_gpu)
    return ModelFacts(inputs(told.width), OUTPUTS, False, (*unknown(spec.parameters), *notes(told)))


def notes(told: ModelDescription) -> tuple[str, ...]:
    """Return sentences for people, each with where it comes from."""
    chosen, need = told.chosen, told.need
    source = told.files.gguf or "config.json"
    slots = chosen.slots or DEFAULT_SLOTS
    known = "does not say" if told.known_context is None else f"knows {told.known_context}"
    return (
        f"architecture {told.architecture}, vocabulary of {told.vocabulary} tokens ({source})",
        f"slots {slots} ({_from(chosen.slots, 'the default, or as many as memory is free for')})",
        f"context of {told.context} tokens per slot ({_from(chosen.max_context, f'the default: the model {known}')})",
        f"data type {told.dtype} ({'the checkpoint and the processor' if chosen.dtype == 'auto' else 'parameter'})",
        f"memory of about {need.total(slots, told.context) / 1e9:.2f} GB: weights {need.weights / 1e9:.2f} GB, keys "
        f"and values {need.per_token} bytes for each token of each slot (an estimate)",
    )


def _from(value: object, default: str) -> str:
    return default if value is None else "parameter"
