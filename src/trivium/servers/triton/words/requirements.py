"""Required keys of a file: those without which a block means nothing, and how a dropped one is named.

Judges what was written, not what the message holds, so that it can speak about a file with other faults too.
"""

from collections.abc import Iterator, Mapping

from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.literals import expectation
from trivium.types.findings import Finding
from trivium.wires.v2.schema import MESSAGES, fields_of

_TENSOR = {
    "name": 'Add name: "..." as the model file calls it.',
    "data_type": "Add data_type: TYPE_..., the type of the elements.",
    "dims": "Add dims: [ ... ], with -1 for any size and without the batch dimension.",
}
_KEY = 'Add key: "...".'
_STEP = 'Add step [ { model_name: "..." model_version: -1 input_map { ... } output_map { ... } } ].'
_MAPPED = {
    "key": 'Add key: "..." with the name that the model has for the tensor.',
    "value": 'Add value: "..." with the name of the tensor in the ensemble.',
}

REQUIRED: Mapping[str, Mapping[str, str]] = {
    "ModelInput": _TENSOR,
    "ModelOutput": _TENSOR,
    "BatchInput": {
        "target_name": 'Add target_name: "..." as the model calls the input.',
        "data_type": "Add data_type: TYPE_INT32.",
        "source_input": 'Add source_input: "..." with the input that is meant.',
    },
    "BatchOutput": {
        "target_name": 'Add target_name: "..." with the name of the output.',
        "source_input": 'Add source_input: "..." with the input that it follows.',
    },
    "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator": {
        "name": 'Add name: "tensorrt", or another accelerator of the backend.'
    },
    "ModelVersionPolicy.Latest": {"num_versions": "Add num_versions: 1, or how many versions shall serve."},
    "ModelVersionPolicy.Specific": {"versions": "Add versions: [ ... ] with the numbers of the folders."},
    "ModelConfig.parameters": {"key": _KEY, "value": 'Add value: { string_value: "..." }.'},
    "ModelSequenceBatching.ControlInput": {
        "name": 'Add name: "..." as the model calls the input.',
        "control": "Add control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ].",
    },
    "ModelSequenceBatching.State": {
        "input_name": 'Add input_name: "..." as the model calls the input.',
        "output_name": 'Add output_name: "..." as the model calls the output.',
        "data_type": _TENSOR["data_type"],
        "dims": _TENSOR["dims"],
    },
    "ModelSequenceBatching.InitialState": {
        "data_type": "Add data_type: TYPE_..., as the state has it.",
        "dims": "Add dims: [ ... ], every size known.",
        "name": 'Add name: "...", for people.',
    },
    "ModelRateLimiter.Resource": {
        "name": 'Add name: "..." as the other models call it.',
        "count": "Add count: 1, or how much of it an instance needs.",
    },
    "ModelEnsembling": {"step": _STEP},
    "ModelEnsembling.Step": {
        "model_name": 'Add model_name: "..." with the folder of the model.',
        "input_map": 'Add input_map { key: "the model\'s name" value: "the ensemble\'s name" }.',
        "output_map": 'Add output_map { key: "the model\'s name" value: "the ensemble\'s name" }.',
    },
    "ModelEnsembling.Step.input_map": _MAPPED,
    "ModelEnsembling.Step.output_map": _MAPPED,
    "ModelDynamicBatching.priority_queue_policy": {
        "key": "Add key: 1, or the level that is meant.",
        "value": "Add value: { ... } with the rules of the level.",
    },
    "ModelWarmup.inputs": {
        "key": 'Add key: "..." with the name of an input.',
        "value": "Add value: { ... } with the data's type and dims.",
    },
    "ModelWarmup.Input": {
        "data_type": "Add data_type: TYPE_..., as the input has it.",
        "dims": "Add dims: [ ... ], every size known.",
    },
}
"""Block type -> field -> what to do where it is not there. Blocks that may be absent are required inside."""

_CHOICES = {
    "ModelVersionPolicy": ("latest", "all", "specific"),
    "ModelWarmup.Input": ("zero_data", "random_data", "input_data_file"),
    "ModelSequenceBatching.InitialState": ("zero_data", "data_file"),
}


def unspecified(text: ConfigText) -> Iterator[Finding]:
    """Yield an error per input or output without type or dimensions, in the file or afterwards: for a
    file that lacks them the very ones of `missing`.
    """
    for section, type_ in (("input", "ModelInput"), ("output", "ModelOutput")):
        for i, tensor in enumerate(getattr(text.config, section)):
            for name in ("data_type", "dims"):
                if not getattr(tensor, name):
                    found = f"no {name} in {section}[{i}]"
                    expected = _expected(type_, name)
                    yield text.fault(f"{section}[{i}].{name}", found, expected, _TENSOR[name])


def _expected(type_: str, name: str) -> str:
    return "a size for each dimension" if name == "dims" else expectation(_field(type_, name))


def missing(text: ConfigText) -> Iterator[Finding]:
    """Yield an error per missing required key of a block, at the block's line."""
    for type_, mends in REQUIRED.items():
        for block in text.blocks(type_):
            for name, hint in mends.items():
                if _lacks(text, f"{block}.{name}"):
                    yield text.fault(f"{block}.{name}", f"no {name} in {block}", _expected(type_, name), hint)
    for type_, names in _CHOICES.items():
        for block in text.blocks(type_):
            if not any(f"{block}.{name}" in text.entries for name in names):
                choices = ", ".join(names)
                yield text.fault(
                    block, f"none of {choices} in {block}", f"one of {choices}", f"Add {names[0]}."
                )


def _lacks(text: ConfigText, key: str) -> bool:
    entry = text.entries.get(key)
    if entry is None:
        return True
    is_empty = not (entry.value or entry.type or f"{key}[0]" in text.entries)
    return is_empty and not text.has_errors


def _field(type_: str, name: str) -> Field:
    if type_ in MESSAGES:
        return MESSAGES[type_][name]
    message, _, map_name = type_.rpartition(".")
    return fields_of(message, MESSAGES[message][map_name])[1][name]
