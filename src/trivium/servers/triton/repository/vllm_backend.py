"""Models of Triton's vLLM backend: `model.json` in the version's folder names the weights and the engine's arguments.

Where vLLM is not installed the engine of our own serves them, and what means nothing to it is reported. Source: the
README and the model.py of the backend. What an argument may be, the engine says.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trivium.fetchers.hub_policy import hub_uri
from trivium.files import open_file
from trivium.formats.checkpoint.checkpoint import form_of, read_checkpoint
from trivium.servers.triton.repository.environments import key_of
from trivium.servers.triton.repository.folder import TritonModelFolder
from trivium.servers.triton.repository.vllm_arguments import at_hf, texts_of
from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.checks import KIND_GPU, KIND_MODEL
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import document_of, fill_tensors
from trivium.types import adapters
from trivium.types.errors import ServeError, said_by
from trivium.types.findings import Finding, Severity
from trivium.types.spec import (
    Batching,
    Defaults,
    Device,
    InstanceGroup,
    ModelFacts,
    ModelSpec,
    Origin,
    StandingCall,
)
from trivium.types.text_engines import VLLM, TextEngine, choose_text_engine
from trivium.wires.v2.descriptor import new_config

BACKEND = "vllm"
ARGUMENTS, ADAPTERS = "model.json", "multi_lora.json"
_MOST = 2**20
_DEVICES = "GPU_DEVICE_IDS"
_TRUST = "trust_remote_code"


@dataclass(frozen=True, slots=True)
class VllmFolder:
    """Describes one version's folder: `root` and `entry` of the weights, who serves them, by which parameters, each
    with where it was found, and what is wrong.
    """

    root: Path
    entry: str = ""
    engine: TextEngine = field(default_factory=lambda: TextEngine(VLLM, ""))
    parameters: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Origin] = field(default_factory=dict)
    standing: tuple[StandingCall, ...] = ()
    takes_adapters: bool = False
    findings: tuple[Finding, ...] = ()
    world: int = 1


def check(
    text: ConfigText, folder: TritonModelFolder, backend: Backend, defaults: Defaults
) -> Iterator[Finding]:
    """Find what is wrong with the folders of such a model, and what there is to know."""
    if backend.name != BACKEND:
        return
    if text.config.max_batch_size:
        yield text.notice(
            "max_batch_size", "max_batch_size is 0 for this backend: the engine batches by itself"
        )
    for version, names in folder.versions.items():
        if ARGUMENTS not in names:
            continue
        read = _read(folder.path / version, defaults)
        yield from read.findings
        for i, group in enumerate(text.config.instance_group):
            if group.kind == KIND_GPU and read.world > 1 and read.engine.name == VLLM:
                yield text.fault(
                    f"instance_group[{i}].kind",
                    f"KIND_GPU, which is one GPU, and {version}/{ARGUMENTS} splits the model over {read.world}",
                    "KIND_MODEL",
                    "Write kind: KIND_MODEL, and which GPUs by the parameter GPU_DEVICE_IDS.",
                )
        yield from _devices(text, read, defaults)


def _devices(text: ConfigText, read: VllmFolder, defaults: Defaults) -> Iterator[Finding]:
    """Hold the GPUs that a parameter names against those that are there and needed."""
    if _DEVICES not in text.config.parameters:
        return
    written, ids = text.config.parameters[_DEVICES].string_value, _ids(text)
    found, expected = f"{_DEVICES} {written[:80]!r}", f"{read.world} different GPUs of {defaults.gpus}"
    if ids is None or len(set(ids)) != len(ids) or any(one >= defaults.gpus for one in ids):
        hint = "Write numbers of GPUs that are there, each once, with commas between, as in 0,1."
        yield text.fault(key_of(text, _DEVICES), found, expected, hint)
    elif len(ids) != read.world:
        hint = f"Name as many as tensor_parallel_size times pipeline_parallel_size in {ARGUMENTS}."
        yield text.fault(key_of(text, _DEVICES), found, expected, hint)


def _ids(text: ConfigText) -> tuple[int, ...] | None:
    """Return the GPUs that a parameter names; nothing where there is none, None where they are no numbers."""
    if _DEVICES not in text.config.parameters:
        return ()
    parts = [one.strip() for one in text.config.parameters[_DEVICES].string_value.split(",")]
    if not all(one.isascii() and one.isdigit() and len(one) < 5 for one in parts):
        return None
    return tuple(map(int, parts))


def specified(spec: ModelSpec, text: ConfigText, backend: Backend, defaults: Defaults) -> ModelSpec:
    """Return the spec of a version as its folder says; that of another backend as it is."""
    if backend.name != BACKEND:
        return spec
    read = _read(spec.root, defaults)
    groups = tuple(
        _group(group, text.config.instance_group[i].kind == KIND_MODEL, _ids(text) or (), read, defaults)
        for i, group in enumerate(spec.groups)
    )
    place = Origin(str(spec.root / ARGUMENTS), "model")
    kept = {key: one for key, one in spec.origin.items() if not key.startswith("parameters[")}
    engine = Origin(read.engine.why, "")
    return replace(
        spec,
        root=read.root,
        engine=read.engine.name,
        entry=read.entry,
        batching=Batching(),
        streams=True,
        groups=groups,
        parameters=read.parameters,
        functions=adapters.FUNCTIONS if read.takes_adapters else (),
        standing=read.standing,
        origin={**kept, **read.origin, "root": place, "entry": place, "engine": engine},
    )


def _group(
    group: InstanceGroup, is_of_model: bool, named: tuple[int, ...], read: VllmFolder, defaults: Defaults
) -> InstanceGroup:
    """Return where instances go: those of the kind MODEL to the GPUs that are named, or the first ones, if any are."""
    if not is_of_model or not defaults.gpus:
        return group
    world = read.world if read.engine.name == VLLM else 1
    ids = named or tuple(range(min(world, defaults.gpus)))
    return replace(group, device=Device.GPU, device_ids=ids[: max(1, world)], span=world)


def finished(spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
    """Return the spec with inputs and outputs of models that generate, in its configuration, too."""
    document = document_of(spec)
    assert document is not None, "it is of this format"
    config = new_config()
    config.CopyFrom(document.text.config)
    config.max_batch_size = 0
    config.model_transaction_policy.decoupled = True
    for blocks, tensors in ((config.input, facts.inputs), (config.output, facts.outputs)):
        known = {block.name for block in blocks}
        fill_tensors(blocks, tuple(one for one in tensors if one.name not in known))
    assert spec.foreign is not None, "it has the document"
    whole = replace(document, text=replace(document.text, config=config))
    foreign = replace(spec.foreign, document=whole)
    return replace(spec, inputs=facts.inputs, outputs=facts.outputs, foreign=foreign)


def is_of_backend(spec: ModelSpec) -> bool:
    """Is it a model of this backend?"""
    document = document_of(spec)
    return document is not None and document.text.config.backend == BACKEND


# -- one version's folder --


def _read(folder: Path, defaults: Defaults) -> VllmFolder:
    place = folder / ARGUMENTS
    told = _object(place)
    if isinstance(told, Finding):
        return VllmFolder(folder, findings=(told,))
    root = _weights(place, told, defaults)
    if isinstance(root, Finding):
        return VllmFolder(folder, findings=(root,))
    trusts = str(told.get(_TRUST, "false")).lower() == "true"
    try:
        made = read_checkpoint(root, trusts, f'write "{_TRUST}": true to {place}')
    except OSError as error:
        return VllmFolder(
            folder, findings=(_fault(place, "model", said_by(error), "a folder of weights", ""),)
        )
    asked = VLLM if defaults.has_vllm else defaults.text_engine
    engine = choose_text_engine(asked, form_of(made.entry), defaults.gpus, defaults.has_vllm)
    findings = list(made.opened_by(engine.name).findings)
    standing, takes = _adapters(folder, told, findings)
    texts = texts_of(told)
    if engine.name != VLLM:
        texts, more = at_hf(place, texts, engine)
        findings += more
    origin = {f"parameters[{name}]": Origin(str(place), key) for name, (key, _) in texts.items()}
    return VllmFolder(
        *(root, made.entry, engine),
        {name: text for name, (_, text) in texts.items()},
        origin | made.origin(),
        *(standing, takes, tuple(findings)),
        world=_size(told, "tensor_parallel_size") * _size(told, "pipeline_parallel_size"),
    )


def _size(told: Mapping[str, object], name: str) -> int:
    value = told.get(name, 1)
    return value if type(value) is int and value > 0 else 1


def _object(place: Path) -> Mapping[str, object] | Finding:
    try:
        with open_file(place) as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise ValueError(f"has more than {_MOST} bytes")
        told = json.loads(content)
    except OSError as error:
        return _fault(place, "", said_by(error), "a file of JSON", "Let the server's user read it.")
    except (ValueError, RecursionError) as error:
        return _fault(place, "", f"no JSON: {error}", "an object of arguments", "Correct it.")
    if not isinstance(told, dict):
        return _fault(place, "", "no object", "an object of arguments", 'Write {"model": "/a/folder"}.')
    return told


def _weights(place: Path, told: Mapping[str, object], defaults: Defaults) -> Path | Finding:
    """Return the folder of the weights: a path from the version's folder on, or to where a name's were fetched."""
    named = told.get("model")
    expected = "the path of a folder with config.json and safetensors"
    if not isinstance(named, str) or not named.strip():
        found = "no model" if named is None else f"the model {str(named)[:80]!r}"
        return _fault(place, "model", found, expected, 'Write "model": "/a/folder".')
    revision = told.get("revision")
    try:
        path = place.parent / named
        if path.is_dir():
            return path
        uri = named if "://" in named else hub_uri(named, revision if isinstance(revision, str) else "")
        trusts = str(told.get(_TRUST, "false")).lower() == "true"
        fetched = defaults.elsewhere(uri, trusts) if uri else None
    except ServeError as error:
        return _fault(
            place,
            "model",
            f"{named[:200]}: {error.message}",
            expected,
            "Or download it, and name the folder.",
        )
    except (OSError, ValueError):
        fetched = None
    if fetched is not None:
        return fetched
    hint = (
        f"Download it where the network is: hf download {named} --local-dir FOLDER, and name that folder. Or allow "
        "the hub: --fetch-from hf."
        if hub_uri(named)
        else "Correct the path; it begins with / or at the version's folder."
    )
    return _fault(place, "model", f"the model {named[:200]}, and there is no such folder", expected, hint)


def _adapters(
    folder: Path, told: Mapping[str, object], findings: list[Finding]
) -> tuple[tuple[StandingCall, ...], bool]:
    """Return the adapters that are there from the start, as their own file names them, and whether any may be."""
    if str(told.get("enable_lora", "false")).lower() != "true":
        return (), False
    place = folder / ADAPTERS
    named = _object(place)
    if isinstance(named, Finding):
        hint = (
            f'Write {{"NAME": "/folder/of/the/adapter"}} to {place}, or remove enable_lora from {ARGUMENTS}.'
        )
        findings.append(replace(named, hint=hint))
        return (), True
    wrong = [name for name, path in named.items() if not isinstance(path, str) or not name]
    for name in wrong:
        findings.append(
            _fault(place, name, f"{name[:80]!r} is no path", "the folder of an adapter", "Correct it.")
        )
    good = [(name, str(folder / str(path))) for name, path in named.items() if name not in wrong]
    return tuple(adapters.found(name, path) for name, path in good), True


def _fault(place: Path, key: str, found: str, expected: str, hint: str) -> Finding:
    return Finding(Severity.ERROR, str(place), None, key, found, expected, hint)
