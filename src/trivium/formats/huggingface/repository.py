"""The Hugging Face format: a folder with config.json and safetensors, a .gguf file, or a store of those -> specs.

Decides by names what is a model; what its files say, `checkpoint` reads. Such a model has no settings of its own: those
of its engine come from the server's options.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trivium.formats.checkpoint import names
from trivium.formats.checkpoint.checkpoint import (
    ENGINE,
    TASK_ENGINE,
    CheckpointReading,
    checked,
    form_of,
    names_in,
    read_checkpoint,
)
from trivium.formats.checkpoint.config import TaskChoice
from trivium.formats.each import read_each, unopened
from trivium.types import adapters
from trivium.types.errors import frameless
from trivium.types.findings import Finding, Severity
from trivium.types.model_tasks import ModelTask, task_named
from trivium.types.spec import (
    Batching,
    Defaults,
    Device,
    InstanceGroup,
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    StandingCall,
    TensorSpec,
)
from trivium.types.spoken import spoken
from trivium.types.text_engines import OPENS as TEXT_ENGINES
from trivium.types.text_engines import OPENVINO, TextEngine, choose_text_engine

_TRUST = "trust_remote_code"
_LORA = "enable_lora"
_HOW_TO_TRUST = f"serve it with --engine-parameters {ENGINE}.{_TRUST}=true"
_TASK = "task"
_HOW_TO_CHOOSE = f"set --engine-parameters {TASK_ENGINE}.{_TASK}"
TASK_ROWS = 16
"""Requests that share a call of a model that has no settings."""

_RULES = {
    "version": "rule for a folder without a version",
    "batching.batch_axis": "rule for generated text",
    "batching.max_rows": "rule for generated text: the engine joins requests, step by step",
    "batching.merge": "rule for generated text: the engine joins requests, step by step",
    "streams": "rule for generated text",
    "groups[0].name": "the model's name",
    "groups[0].minimum": "rule: one copy of the weights",
    "version_policy": "rule for a folder without a version",
    "functions": "the model's folder adapters, and the engine's options",
    "standing": "the model's folder adapters, and the engine's options",
    "limits.queue_items": "the server's default bound",
    "limits.run_deadline": "--run-timeout of the server",
    "limits.startup_deadline": "--startup-timeout of the server",
}


class HuggingFaceFormat:
    """Folders that `save_pretrained` writes, and GGUF files."""

    name = "huggingface"
    expects = (
        "a Hugging Face folder of a model of texts (config.json and .safetensors, or openvino_model.xml), a .gguf "
        "file, or a folder of those"
    )

    def claims(self, path: Path) -> bool:
        """Return whether a model is here by its names, or a store of at least one and of no other format's."""
        try:
            return bool(_models(path))
        except (OSError, ValueError):
            return False

    def hint(self, path: Path) -> str:
        """Say what a folder near to a model needs to be one: weights, or to be named in the cache of a hub."""
        try:
            if not path.is_dir() or names.is_marked(found := names_in(path), path.name):
                return ""
            if (path / "snapshots").is_dir():
                inner = next(path.glob(f"snapshots/*/{names.CONFIG}"), None)
                return f"This is an entry of a hub's cache: serve {inner.parent}." if inner else ""
        except (OSError, ValueError):
            return ""
        if names.CONFIG not in found:
            return _hint_of_adapter(path) if names.ADAPTER in found else ""
        return f"It has {names.CONFIG} and no weights: add {names.WEIGHTS}."

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Return one version, "1", of each model."""
        if path.name in ("", ".."):
            path = path.resolve()
        try:
            places = _models(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, frameless(error)),))
        return read_each(places, lambda place: [_spec(place, defaults)], _name_of)

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Return the spec with the inputs and outputs that the engine has for generated text."""
        source = Origin(f"the engine {spec.engine}", "")
        origin = {**spec.origin, **_sources("inputs", facts.inputs, source)}
        origin |= _sources("outputs", facts.outputs, source)
        return replace(spec, inputs=facts.inputs, outputs=facts.outputs, origin=origin)


def _hint_of_adapter(path: Path) -> str:
    try:
        return " ".join(map(str, read_checkpoint(path, False, "").findings))
    except OSError:
        return ""


def _models(path: Path) -> list[Path]:
    """List the models at a path: itself, or those of a store. Raises OSError."""
    if path.is_file():
        return [path] if path.name.lower().endswith(names.GGUF) else []
    if not path.is_dir():
        return []
    found = names_in(path)
    if names.is_marked(found, path.name):
        return []
    if names.is_folder(found, path.name):
        return [path]
    files = [path / name for name in names.gguf_files(found) if (path / name).is_file()]
    folders = _folders(path)
    if folders is None:
        return []
    if len(files) == 1 and not folders:
        return [path]
    return sorted([*files, *folders])


def _folders(path: Path) -> list[Path] | None:
    """List the folders of a store that hold a model; None where one of its folders is another format's."""
    models = []
    for entry in path.iterdir():
        if entry.name.startswith(".") or not entry.is_dir():
            continue
        inner = names_in(entry)
        if names.is_marked(inner, entry.name):
            return None
        if names.is_folder(inner, entry.name) or len(names.gguf_files(inner)) == 1:
            models.append(entry)
    return models


def _spec(place: Path, defaults: Defaults) -> ModelSpec:
    """Raises ConfigError and OSError."""
    is_file = place.is_file()
    folder = place.parent if is_file else place
    of_tasks = defaults.parameters_of(TASK_ENGINE)
    trusts = any(_trusts(one) for one in (*map(defaults.parameters_of, TEXT_ENGINES), of_tasks))
    tasks = TaskChoice(spoken(_HOW_TO_CHOOSE), task_named(of_tasks.get(_TASK, "")))
    entry = place.name if is_file else ""
    made = read_checkpoint(folder, trusts, spoken(_HOW_TO_TRUST), entry, tasks)
    is_task = tasks.asked is not None or made.task is not ModelTask.GENERATION
    if is_task and not is_file:
        return _task_spec(place, checked(made), of_tasks, defaults)
    name = _name_of(place)
    form = form_of(made.entry)
    chosen = choose_text_engine(defaults.text_engine, form, defaults.gpus, defaults.has_vllm)
    made = checked(made.opened_by(chosen.name))
    asked = defaults.parameters_of(chosen.name)
    option = Origin("--engine-parameters of the server", "")
    origin = {
        **{field: Origin(rule, "") for field, rule in _RULES.items()},
        **{field: Origin(str(place), "") for field in ("name", "root", "entry")},
        "engine": Origin(chosen.why, ""),
        "groups[0].device": _device_origin(chosen.name, defaults),
        **made.origin(),
        **{f"parameters[{one}]": option for one in asked},
    }
    standing = () if chosen.name == OPENVINO else _adapters(place, asked)
    takes_adapters = bool(standing) or asked.get(_LORA, "").strip().lower() in ("true", "1")
    return ModelSpec(
        name=name,
        version="1",
        is_versioned=False,
        root=folder,
        engine=chosen.name,
        entry=made.entry,
        groups=(InstanceGroup(name) if chosen.name == OPENVINO else _group(name, defaults),),
        limits=Limits(
            queue_items=defaults.queue_items,
            run_deadline=defaults.run_deadline,
            startup_deadline=defaults.startup_deadline,
        ),
        streams=True,
        parameters=asked,
        functions=adapters.FUNCTIONS if takes_adapters else (),
        standing=standing,
        details=made.details,
        origin=origin,
        reports=(*made.findings, *_not_as_named(place, chosen, defaults)),
    )


def _not_as_named(place: Path, chosen: TextEngine, defaults: Defaults) -> Iterator[Finding]:
    """Report that another engine serves a model than the operator named: it does not open these weights."""
    if defaults.text_engine and chosen.name != defaults.text_engine:
        found = spoken(f"--text-engine has no effect here, and {chosen.name} serves the model: {chosen.why}")
        yield Finding(Severity.NOTICE, str(place), None, "", found)


def _device_origin(engine: str, defaults: Defaults) -> Origin:
    if engine == OPENVINO:
        return Origin(f"rule: {OPENVINO} computes on the CPU", "")
    return Origin(f"a GPU where there is one: {defaults.gpus} here", "")


def _trusts(asked: Mapping[str, str]) -> bool:
    return asked.get(_TRUST, "").strip().lower() in ("true", "1")


def _task_spec(
    place: Path, made: CheckpointReading, asked: Mapping[str, str], defaults: Defaults
) -> ModelSpec:
    """Return the spec of a model that answers by whole calls."""
    name = _name_of(place)
    option = Origin("--engine-parameters of the server", "")
    told = made.origins.get("architecture", Origin(str(place / names.CONFIG), "architectures"))
    rule = Origin(f"rule: up to {TASK_ROWS} requests that wait share a call", "")
    origin = {
        **{field: Origin(rule, "") for field, rule in _RULES.items() if not field.startswith("batching")},
        **{field: Origin(str(place), "") for field in ("name", "root", "entry")},
        **dict.fromkeys(("batching", "batching.max_rows", "batching.merge"), rule),
        "engine": told,
        "groups[0].device": Origin(f"a GPU where there is one: {defaults.gpus} here", ""),
        **made.origin(),
        f"parameters[{_TASK}]": told,
        **{f"parameters[{one}]": option for one in asked},
    }
    return ModelSpec(
        name=name,
        version="1",
        is_versioned=False,
        root=place,
        engine=TASK_ENGINE,
        entry=made.entry,
        batching=Batching(False, TASK_ROWS, True),
        groups=(_group(name, defaults),),
        limits=Limits(
            queue_items=defaults.queue_items,
            run_deadline=defaults.run_deadline,
            startup_deadline=defaults.startup_deadline,
        ),
        streams=asked.get("enable_streaming", "false").lower() != "false",
        parameters={_TASK: made.task.value, **asked},
        details=made.details,
        origin=origin,
        reports=made.findings,
    )


def _adapters(place: Path, asked: Mapping[str, str]) -> tuple[StandingCall, ...]:
    """Return the adapters of a model: those in its folder, and those that the options of its engine name. Raises
    OSError.
    """
    inner = place / adapters.FOLDER
    is_off = asked.get(_LORA, "").strip().lower() in ("false", "0")
    here = adapters.in_folder(inner) if inner.is_dir() and not is_off else ()
    calls = {call.topic: call for call in here if (inner / call.topic / names.ADAPTER).is_file()}
    for name, folder in (adapters.adapter_folders(asked.get("adapters", "")) or {}).items():
        calls[name] = adapters.found(name, folder)
    return tuple(calls.values())


def _group(name: str, defaults: Defaults) -> InstanceGroup:
    if not defaults.gpus:
        return InstanceGroup(name)
    return InstanceGroup(name, device=Device.GPU, device_ids=tuple(range(defaults.gpus)))


def _name_of(place: Path) -> str:
    name = place.name
    return name[: -len(names.GGUF)] if name.lower().endswith(names.GGUF) and place.is_file() else name


def _sources(field: str, tensors: tuple[TensorSpec, ...], source: Origin) -> dict[str, Origin]:
    parts = ("name", "datatype", "dims")
    return {f"{field}[{i}].{part}": source for i in range(len(tensors)) for part in parts}


FORMAT = HuggingFaceFormat()
