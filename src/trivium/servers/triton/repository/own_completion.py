"""A configuration as the model's own `auto_complete_config` leaves it, put in the place of the one that was read.

Sheet "triton", sections 2.4 (step C, Python backend) and 8.3. Decides which fields a model may change: rows, inputs,
outputs, dynamic batching, the transaction policy; all others stay. Must not run user code.
"""

import json
from dataclasses import replace

from google.protobuf import json_format

from trivium.servers.triton.repository import translation
from trivium.servers.triton.repository.labels import with_labels
from trivium.servers.triton.repository.normalisation import fill_preferred
from trivium.servers.triton.words.checks import check_completed
from trivium.servers.triton.words.config_faults import in_tritons_words
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import DIALECT, Document, config_json, document_of
from trivium.servers.triton.words.requirements import unspecified
from trivium.types.errors import ConfigError
from trivium.types.findings import Severity
from trivium.types.spec import Foreign, ModelSpec
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.model_config import ModelConfigMessage
from trivium.wires.v2.tensor_messages import ModelTensor

RULE = "auto_complete_config of the model"
_SECTIONS = ("max_batch_size", "input", "output", "dynamic_batching", "model_transaction_policy")
_TENSORS = ("input", "output")
_PARTS = ("name", "data_type", "dims", "optional")  # of an input or output: never a file's name


def complete_by_model(spec: ModelSpec, told: str) -> ModelSpec:
    """Return the spec of a Python model from its whole configuration as JSON. ConfigError where that cannot be."""
    document = document_of(spec)
    assert document is not None, "a spec of another format was given to the Triton format to finish"
    config = new_config()
    config.CopyFrom(document.text.config)
    text = replace(document.text, config=config)
    rules = _merge(config, _read(text, told))
    faults = list(unspecified(text))
    if not rules and not faults:
        return spec
    fill_preferred(config, rules)
    faults += [finding for finding in check_completed(text) if finding.severity is Severity.ERROR]
    if faults:
        whole = in_tritons_words(text, spec.name, spec.version, (*spec.reports, *faults))
        raise ConfigError(tuple(whole))
    return _respecified(spec, replace(document, text=text), rules)


def _read(text: ConfigText, told: str) -> ModelConfigMessage:
    """Return what the model may change of it, as a message; all else empty."""
    try:
        fields = json.loads(told)
        if not isinstance(fields, dict):
            raise ValueError("it is no object")
        chosen = {name: fields[name] for name in _SECTIONS if name in fields}
        return json_format.ParseDict(chosen, new_config())
    except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
        found = f"{RULE} returned what is no model configuration: {str(error)[:500]}"
        hint = "Return the object that was given to it, changed by its own methods."
        raise ConfigError((text.fault("", found, "a pb_utils.ModelConfig", hint),)) from error


def _merge(config: ModelConfigMessage, told: ModelConfigMessage) -> dict[str, str]:
    """Take over what differs; what was, by key."""
    rules: dict[str, str] = {}
    if config.max_batch_size != told.max_batch_size:
        config.max_batch_size = told.max_batch_size
        rules["max_batch_size"] = RULE
    for section in _TENSORS:
        ours = getattr(config, section)
        named = {block.name: block for block in ours}
        theirs = [_merged(named.get(block.name), block) for block in getattr(told, section)]
        if list(ours) != theirs:
            for i, block in enumerate(theirs):
                before = ours[i] if i < len(ours) else None
                for part in _PARTS:
                    if before is None or getattr(before, part, None) != getattr(block, part, None):
                        rules[f"{section}[{i}].{part}"] = RULE
            del ours[:]
            ours.extend(theirs)
    if told.HasField("dynamic_batching") and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.CopyFrom(told.dynamic_batching)
        rules["dynamic_batching"] = RULE
    decoupled = told.model_transaction_policy.decoupled
    if told.HasField("model_transaction_policy") and decoupled != config.model_transaction_policy.decoupled:
        config.model_transaction_policy.decoupled = decoupled
        rules["model_transaction_policy.decoupled"] = RULE
    return rules


def _merged(file: ModelTensor | None, told: ModelTensor) -> ModelTensor:
    """Return the tensor with the parts that a model may change; all else, such as label files and reshapes, as in
    the file.
    """
    mine, theirs = type(told)(), type(told)()
    mine.CopyFrom(told)
    if file is not None:
        theirs.CopyFrom(file)
    for field in told.DESCRIPTOR.fields:
        (theirs if field.name in _PARTS else mine).ClearField(field.name)
    mine.MergeFrom(theirs)
    return mine


def _respecified(spec: ModelSpec, document: Document, rules: dict[str, str]) -> ModelSpec:
    text = document.text
    folder = spec.root.parent
    origins = translation.origins(text, rules)
    whole = replace(
        spec,
        inputs=translation.tensors(iter(text.config.input)),
        outputs=with_labels(text, folder, translation.tensors(iter(text.config.output))),
        batching=translation.batching(text),
        scheduling=translation.scheduling(text, folder),
        streams=text.config.model_transaction_policy.decoupled,
        foreign=Foreign(DIALECT, document),
        origin={**spec.origin, **{field: where for field, where in origins.items() if where.file == RULE}},
    )
    assert spec.handler is not None
    settings = {**spec.handler.settings, "model_config": config_json(whole).decode()}
    return replace(whole, handler=replace(spec.handler, settings=settings))
