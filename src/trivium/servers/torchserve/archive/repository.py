"""The TorchServe format: an archive, a folder with MAR-INF, or a model store -> a spec per archive.

Decides the order of the steps: find, unpack, read both files, check them against the folder, translate. A model that
cannot be served is named with all its faults, and its neighbours load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from trivium.files import lies_within, open_file
from trivium.formats.each import read_each, unopened
from trivium.servers.torchserve.archive import sequences, translation
from trivium.servers.torchserve.archive.environment import check_requirements, own_environment
from trivium.servers.torchserve.archive.folder import models, name_of, open_model, strays
from trivium.servers.torchserve.archive.language_model import LanguageModel
from trivium.servers.torchserve.words import llm_api_file
from trivium.servers.torchserve.words.layers import (
    HANDLER,
    NO_RULES,
    REGISTERED,
    WORKERS,
    ServerRules,
    layered,
)
from trivium.servers.torchserve.words.manifest import (
    BUILT_IN,
    MAX_BYTES,
    PLACE,
    RUNTIMES,
    Manifest,
    handler_ref,
    read_manifest,
)
from trivium.servers.torchserve.words.model_config import ModelConfig, read_model_config
from trivium.servers.torchserve.words.vllm_handler import VLLM
from trivium.types.errors import ConfigError, frameless
from trivium.types.findings import Finding, Severity
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import (
    All,
    Defaults,
    Foreign,
    Handler,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
)

DIALECT = "torchserve"
ENGINE = "python-torchserve"
SERVED_BUILT_IN = (
    "base_handler",
    "image_classifier",
    "image_segmenter",
    "object_detector",
    "text_classifier",
    "densenet_handler",
)
LLM_API = "llm_api"
RUNTIME = "runtime"
CONFIGURATION = "config.properties"
_NAMED = 10
_LINE = 1024
Document = tuple[Manifest, ModelConfig]
"""What `ModelSpec.foreign` holds: both files as they were read."""

_WAYS_OUT = {
    "dali_image_classifier": "Name image_classifier, which takes the same pictures and needs no DALI.",
    "trt_llm_handler": f"Name {LLM_API}, with the model's own weights in place of an engine of TensorRT.",
}
"""Handler that TorchServe brings along and that is not served -> what to do."""


class TorchServeFormat:
    """Archives and model stores of TorchServe 0.12 (sheet "torchserve", section 3). `rules` are what a server's own
    configuration says of its models; `variables` are its environment, which sets up a language model.
    """

    def __init__(self, rules: ServerRules = NO_RULES, variables: Mapping[str, str] | None = None) -> None:
        self._rules = rules
        self._variables = variables or {}

    name = DIALECT
    expects = "a .mar file, a .tar.gz or folder with MAR-INF/MANIFEST.json in it, or a folder that holds such"

    def claims(self, path: Path) -> bool:
        """A model, or a store of at least one."""
        try:
            return bool(models(path))
        except (OSError, ValueError):
            return False

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """A version per archive. Of two archives with one name and version the second is unreadable."""
        return self.read_source(path, ModelSource(str(path)), defaults)

    def read_source(self, path: Path, source: ModelSource, defaults: Defaults) -> ReadResult:
        """Read with the parameters of a registration, `over`, and the server's rules under the files' values."""
        rules = self._rules
        if rules.gpus is not None:
            defaults = replace(defaults, gpus=min(defaults.gpus, rules.gpus))
        try:
            found, left = models(path), strays(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, frameless(error)),))
        known: set[tuple[str, str]] = set()

        def read_model(place: Path) -> list[ModelSpec]:
            if source.within and not lies_within(place, source.within):
                raise ConfigError((_elsewhere(place, source.within),))
            spec = _read_model(place, source, rules, self._variables, defaults)
            if (spec.name, spec.version) in known:
                raise ConfigError((_twice(spec, place),))
            known.add((spec.name, spec.version))
            return [spec]

        reading = read_each(found, read_model, name_of)
        if not left or not reading.specs:
            return reading
        first = replace(reading.specs[0], reports=(*reading.specs[0].reports, _left(path, left)))
        return replace(reading, specs=(first, *reading.specs[1:]))

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Return the spec as it is, since a handler declares no tensors, but for a language model's."""
        return spec if spec.handler is not None else replace(spec, inputs=facts.inputs, outputs=facts.outputs)


def _read_model(
    place: Path,
    source: ModelSource,
    rules: ServerRules,
    variables: Mapping[str, str],
    defaults: Defaults,
) -> ModelSpec:
    folder = open_model(place, defaults.scratch)
    manifest = _manifest(folder, place)
    name = manifest.name or name_of(place)
    under = {**rules.of_model(source.name or name, manifest.version), **source.under}
    config = layered(_config(folder, place, manifest), source.over, under)
    chosen = _handler(manifest, source, rules)
    ref = handler_ref(chosen.value)
    if ref.name in (LLM_API, VLLM) and not _is_own_code(folder / ref.file):
        if unknown := _check_source(source):
            raise ConfigError(tuple(unknown))
        model = LanguageModel(name, folder, manifest, config, variables, rules, is_vllm=ref.name == VLLM)
        return model.spec(defaults)
    findings = (
        *manifest.findings,
        *config.findings,
        *rules.notices(source.name or name, manifest.version),
        *_check_source(source),
        *_check_files(folder, manifest),
        *check_requirements(manifest, folder, defaults.installs),
        *_check_handler(folder, manifest, chosen),
    )
    documents = _Documents(place, folder, manifest, config, chosen, rules)
    return _handler_model(name, documents, findings, defaults)


@dataclass(frozen=True, slots=True)
class _Documents:
    """Holds what was read of one model: where it lies, its two files, its handler, and the rules of the server."""

    place: Path
    folder: Path
    manifest: Manifest
    config: ModelConfig
    chosen: SourceSetting
    rules: ServerRules


def _handler_model(
    name: str, read: _Documents, findings: tuple[Finding, ...], defaults: Defaults
) -> ModelSpec:
    """Return the spec of a model with a handler. Raises ConfigError with all findings where one is an error."""
    manifest, config, folder, rules = read.manifest, read.config, read.folder, read.rules
    ref = handler_ref(read.chosen.value)
    groups, notices = translation.groups(name, config, defaults)
    findings = (
        *findings,
        *notices,
        *sequences.check(config),
        *translation.check_async(config, rules),
        *translation.envelope_notices(config, rules),
    )
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise ConfigError(findings)
    origin = {
        **translation.origins(manifest, config, defaults, read.chosen.origin, rules),
        "root": Origin(str(read.place), ""),
    }
    return ModelSpec(
        name=name,
        version=manifest.version,
        root=folder,
        engine=ENGINE,
        entry=ref.file if (folder / ref.file).is_file() else ref.name,
        batching=translation.batching(config, rules),
        scheduling=translation.scheduling(config, rules),
        groups=groups,
        limits=translation.limits(config, defaults, rules),
        version_policy=All(),
        handler=Handler(
            python=rules.python,
            function=ref.function,
            path=tuple(dict.fromkeys((folder / PurePosixPath(ref.file).parent, folder))),
            directory=folder,
            environment=translation.environment(rules),
            settings=translation.settings(manifest, config, rules),
            own=own_environment(manifest, config, defaults.installs),
        ),
        foreign=Foreign(DIALECT, (manifest, config)),
        origin=origin,
        reports=findings,
        shown_root=None if folder == read.place else read.place,
    )


def _handler(manifest: Manifest, source: ModelSource, rules: ServerRules) -> SourceSetting:
    """Return the handler: the registration's, else the manifest's, else the server's default; empty for none."""
    if HANDLER in source.over:
        return source.over[HANDLER]
    if manifest.handler or rules.handler is None:
        line = manifest.lines.get("model.handler")
        return SourceSetting(manifest.handler, Origin(manifest.file, "model.handler", line))
    return rules.handler


def _manifest(folder: Path, place: Path) -> Manifest:
    """An archive without a manifest has an empty one; its handler is then to be named by whoever registers it. What
    is found is told of the archive, not of where it was unpacked.
    """
    shown, path = str(place / PLACE), folder / PLACE
    return read_manifest(shown, _head(path, MAX_BYTES)) if path.is_file() else Manifest(shown)


def _config(folder: Path, place: Path, manifest: Manifest) -> ModelConfig:
    path = folder / manifest.config_file
    if not manifest.config_file or not path.is_file():
        return ModelConfig()
    return read_model_config(str(place / manifest.config_file), _head(path, MAX_BYTES))


def _head(path: Path, most: int) -> bytes:
    with open_file(path) as file:
        return file.read(most + 1)


def _check_files(folder: Path, manifest: Manifest) -> list[Finding]:
    findings = []
    for key, name in (
        ("model.serializedFile", manifest.serialized_file),
        ("model.modelFile", manifest.model_file),
        ("model.configFile", manifest.config_file),
    ):
        if name and not (folder / name).exists():
            findings.append(
                manifest.fault(key, f"{name}, which is not there", _there(folder), "Pack it, too.")
            )
    return findings


def _check_source(source: ModelSource) -> list[Finding]:
    """Name what a source asks for that there is not in this dialect."""
    found = []
    known = (*REGISTERED, WORKERS, HANDLER, RUNTIME)
    for key, setting in source.over.items():
        place = setting.origin
        if key not in known:
            hint = f"Leave it out; there are {', '.join(known)}."
            found.append(Finding(Severity.ERROR, place.file, place.line, key, "no such parameter", "", hint))
        elif key == RUNTIME and setting.value.lower() not in RUNTIMES:
            hint = "Only Python runs here: give python, or leave it out."
            shown = repr(setting.value)[:80]
            found.append(
                Finding(Severity.ERROR, place.file, place.line, key, shown, " or ".join(RUNTIMES), hint)
            )
    if source.engine or source.devices:
        hint = "Leave it out; deviceIds in model-config.yaml chooses devices."
        shown = ", ".join((source.engine, *source.devices)).strip(", ")
        found.append(Finding(Severity.ERROR, source.uri, None, "", shown, "a name and parameters", hint))
    return found


def _check_handler(folder: Path, manifest: Manifest, chosen: SourceSetting) -> list[Finding]:
    ref, place = handler_ref(chosen.value), chosen.origin
    if chosen.value and (folder / ref.file).is_file() and _is_below(ref.file):
        return []
    if not chosen.value:
        hint = "Name it: torch-model-archiver --handler FILE."
        found = "no handler" if manifest.document else f"no {PLACE}, and so no handler"
        return [] if manifest.findings else [manifest.fault("model.handler", found, "a handler", hint)]

    def fault(found: str, expected: str, hint: str) -> list[Finding]:
        return [Finding(Severity.ERROR, place.file, place.line, place.key, found, expected, hint)]

    if ref.name not in BUILT_IN:
        found = f"{chosen.value}, of which the file {ref.file} is not there"
        return fault(found, _there(folder), "Pack the handler, too.")
    if ref.name in (*SERVED_BUILT_IN, LLM_API):
        return []
    return fault(
        f"{ref.name}, a handler that TorchServe brings along",
        f"a handler in the archive, one of {', '.join(SERVED_BUILT_IN)}, or {LLM_API} for a language model",
        f"It is not supported in this version. {_WAYS_OUT[ref.name]}",
    )


def _is_own_code(file: Path) -> bool:
    """Tell whether an archive has a handler of this name itself; the file that stands for ours is none."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.readline(_LINE).rstrip() != llm_api_file.FIRST_LINE.encode()


def _is_below(file: str) -> bool:
    """Tell whether a file is one of the folder's own."""
    path = PurePosixPath(file)
    return not path.is_absolute() and ".." not in path.parts


def _there(folder: Path) -> str:
    names = sorted(entry.name for entry in folder.iterdir())[:20]
    return f"a file of the archive, which holds {', '.join(names) or 'nothing'}"


def _left(store: Path, left: list[Path]) -> Finding:
    names = ", ".join(entry.name + ("/" if entry.is_dir() else "") for entry in left[:_NAMED])
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    hint = ""
    if any(entry.name == CONFIGURATION for entry in left):
        hint = f"{CONFIGURATION} is read by `trivium torchserve --ts-config {store / CONFIGURATION}`."
    found = f"no models of TorchServe, and left alone: {names}{more}"
    return Finding(Severity.NOTICE, str(store), None, "", found, "", hint)


def _elsewhere(place: Path, store: str) -> Finding:
    hint = "Put the model itself there, or have the operator allow its own place (allowed_urls=file://...)."
    return Finding(
        Severity.ERROR, str(place), None, "", "a link that leads elsewhere", f"a model in {store}", hint
    )


def _twice(spec: ModelSpec, place: Path) -> Finding:
    found = f"a second archive of model '{spec.name}', version {spec.version}"
    hint = "Give it another version, or remove one of them."
    return Finding(Severity.ERROR, str(place), None, "model.modelVersion", found, "one of each version", hint)


FORMAT = TorchServeFormat()


def made(variables: Mapping[str, str]) -> TorchServeFormat:
    """Make the format for a server with this environment."""
    return TorchServeFormat(variables=variables)
