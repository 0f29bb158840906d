"""A configuration as the original completes it without looking into the model file.

Sheet "triton", section 2.4, steps A and B. Pure: returns a new message, and for each key that it filled the
rule that did, for people. Must not judge: the configuration was checked before.
"""

from collections.abc import Mapping

from trivium.servers.triton.words.backends import ENSEMBLE, Backend
from trivium.servers.triton.words.checks import KIND_AUTO, KIND_CPU, KIND_GPU
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.model_config import ModelConfigMessage, ModelInstanceGroup

Rules = Mapping[str, str]
IDLE_MICROSECONDS = 1_000_000


def normalise(
    config: ModelConfigMessage, model: str, backend: Backend, gpus: int
) -> tuple[ModelConfigMessage, Rules]:
    """`model` is the folder's name, `gpus` how many this machine has."""
    whole = new_config()
    whole.CopyFrom(config)
    rules: dict[str, str] = {}
    _fill_names(whole, model, backend, rules)
    if whole.version_policy.WhichOneof("policy_choice") is None:
        whole.version_policy.latest.num_versions = 1
        rules["version_policy"] = "default: the latest version"
    if backend is ENSEMBLE:
        whole.model_transaction_policy.decoupled = config.model_transaction_policy.decoupled
        return whole, rules
    optimization = whole.optimization
    for name, pinned in (
        ("input_pinned_memory", optimization.input_pinned_memory),
        ("output_pinned_memory", optimization.output_pinned_memory),
    ):
        if not optimization.HasField(name):
            pinned.enable = True
    fill_preferred(whole, rules)
    _fill_sequences(whole, rules)
    if not len(whole.instance_group):
        whole.instance_group.add().name = model
        rules["instance_group[0].name"] = "the model's name: there is no instance_group"
    for i, group in enumerate(whole.instance_group):
        key = f"instance_group[{i}]"
        if not group.name:
            group.name = f"{model}_{i}"
            rules[f"{key}.name"] = "the model's name and the group's index"
        _fill_group(group, key, backend, gpus, rules)
    return whole, rules


def fill_preferred(config: ModelConfigMessage, rules: dict[str, str]) -> None:
    """Prefer the greatest batch size where none is preferred."""
    if not config.HasField("dynamic_batching") or config.max_batch_size == 0:
        return
    if not config.dynamic_batching.preferred_batch_size:
        config.dynamic_batching.preferred_batch_size.append(config.max_batch_size)
        rules["dynamic_batching.preferred_batch_size"] = "default: max_batch_size"


def _fill_sequences(config: ModelConfigMessage, rules: dict[str, str]) -> None:
    batching = config.sequence_batching
    if not config.HasField("sequence_batching"):
        return
    if not batching.max_sequence_idle_microseconds:
        batching.max_sequence_idle_microseconds = IDLE_MICROSECONDS
        rules["sequence_batching.max_sequence_idle_microseconds"] = "default: one second"
    if batching.HasField("oldest") and not batching.oldest.preferred_batch_size and config.max_batch_size:
        batching.oldest.preferred_batch_size.append(config.max_batch_size)
        rules["sequence_batching.oldest.preferred_batch_size"] = "default: max_batch_size"


def _fill_names(config: ModelConfigMessage, model: str, backend: Backend, rules: dict[str, str]) -> None:
    if not config.name:
        config.name = model
        rules["name"] = "the folder's name"
    if not config.platform and backend.platform:
        config.platform = backend.platform
        rules["platform"] = f"platform of the backend {backend.name}"
    if not config.backend and backend is not ENSEMBLE:
        config.backend = backend.name
        rules["backend"] = (
            "recognised by the platform" if "platform" not in rules else "recognised by the file"
        )
    if not config.default_model_filename and backend.filename:
        config.default_model_filename = backend.filename
        rules["default_model_filename"] = f"default of the backend {backend.name}"


def _fill_group(
    group: ModelInstanceGroup, key: str, backend: Backend, gpus: int, rules: dict[str, str]
) -> None:
    if group.kind == KIND_AUTO:
        group.kind = KIND_GPU if gpus else KIND_CPU
        rules[f"{key}.kind"] = f"default: this machine has {gpus} GPUs"
    if group.count < 1:
        group.count = backend.cpu_instances if group.kind == KIND_CPU else 1
        rules[f"{key}.count"] = f"default of the backend {backend.name}"
    if group.kind == KIND_GPU and not group.gpus:
        group.gpus.extend(range(gpus))
        rules[f"{key}.gpus"] = "default: every GPU there is"
