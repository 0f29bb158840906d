"""The TorchServe format: an archive, a folder with MAR-INF, or a model store -> a spec per archive.

Decides the order of the steps: find, unpack, read both files, check them against the folder, translate. A model that
cannot be served is named with all its faults, and its neighbours load.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from trivium.dialects.torchserve.manifest import (
    BUILT_IN,
    MAX_BYTES,
    PLACE,
    HandlerRef,
    Manifest,
    handler_ref,
    read_manifest,
)
from trivium.dialects.torchserve.model_config import ModelConfig, read_model_config
from trivium.files import open_file
from trivium.formats.each import read_each, unopened
from trivium.formats.torchserve import translation
from trivium.formats.torchserve.folder import models, name_of, open_model
from trivium.formats.torchserve.language_model import LanguageModel
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
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
SERVED_BUILT_IN = "base_handler"
LLM_API = "llm_api"
Document = tuple[Manifest, ModelConfig]
"""What `ModelSpec.foreign` holds: both files as they were read."""


class TorchServeFormat:
    """Archives and model stores of TorchServe 0.12 (sheet "torchserve", section 3). `variables` are the server's
    environment, which sets up a language model.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables or {}

    name = DIALECT
    expects = (
        "a .mar file, a .tar.gz or folder with MAR-INF/MANIFEST.json in it, or a folder of nothing but those"
    )

    def claims(self, path: Path) -> bool:
        """A model, or a store of at least one."""
        try:
            return bool(models(path))
        except (OSError, ValueError):
            return False

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """A version per archive. Of two archives with one name and version the second is unreadable."""
        try:
            found = models(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, error),))
        known: set[tuple[str, str]] = set()

        def read_model(place: Path) -> list[ModelSpec]:
            spec = _read_model(place, self._variables, defaults)
            if (spec.name, spec.version) in known:
                raise ConfigError((_twice(spec, place),))
            known.add((spec.name, spec.version))
            return [spec]

        return read_each(found, read_model, name_of)

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Return the spec as it is, since a handler declares no tensors, but for a language model's."""
        return spec if spec.handler is not None else replace(spec, inputs=facts.inputs, outputs=facts.outputs)


def _read_model(place: Path, variables: Mapping[str, str], defaults: Defaults) -> ModelSpec:
    folder = open_model(place, defaults.scratch)
    manifest = _manifest(folder, place)
    config = _config(folder, place, manifest)
    ref = handler_ref(manifest.handler)
    name = manifest.name or name_of(place)
    if ref.name == LLM_API and not (folder / ref.file).is_file():
        return LanguageModel(name, folder, manifest, config, variables).spec(defaults)
    groups, notices = translation.groups(name, config, defaults)
    findings = (
        *manifest.findings,
        *config.findings,
        *_check_files(folder, manifest),
        *_check_handler(folder, manifest, ref),
        *notices,
    )
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise ConfigError(findings)
    entry = ref.file if (folder / ref.file).is_file() else SERVED_BUILT_IN
    origin = {
        **translation.origins(manifest, config, defaults, entry),
        "root": Origin(str(place), ""),
    }
    return ModelSpec(
        name=name,
        version=manifest.version,
        root=folder,
        engine=ENGINE,
        entry=entry,
        batching=translation.batching(config),
        scheduling=translation.scheduling(config),
        groups=groups,
        limits=translation.limits(config, defaults),
        version_policy=All(),
        handler=Handler(
            function=ref.function,
            path=tuple(dict.fromkeys((folder / PurePosixPath(ref.file).parent, folder))),
            directory=folder,
            environment=translation.ENVIRONMENT,
            settings=translation.settings(manifest, config),
        ),
        foreign=Foreign(DIALECT, (manifest, config)),
        origin=origin,
        reports=findings,
    )


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
    if manifest.requirements_file:
        found = (
            f"{manifest.requirements_file} is not installed (as in the original, unless it is told to): have its "
            "packages in the server's interpreter"
        )
        line = manifest.lines.get("model.requirementsFile")
        findings.append(Finding(Severity.NOTICE, manifest.file, line, "model.requirementsFile", found))
    return findings


def _check_handler(folder: Path, manifest: Manifest, ref: HandlerRef) -> list[Finding]:
    if (folder / ref.file).is_file() and manifest.handler:
        return []
    if not manifest.handler:
        hint = "Name it: torch-model-archiver --handler FILE."
        found = "no handler" if manifest.document else f"no {PLACE}, and so no handler"
        return [] if manifest.findings else [manifest.fault("model.handler", found, "a handler", hint)]
    if ref.name not in BUILT_IN:
        found = f"{manifest.handler}, of which the file {ref.file} is not there"
        return [manifest.fault("model.handler", found, _there(folder), "Pack the handler, too.")]
    if ref.name in (SERVED_BUILT_IN, LLM_API):
        return []
    found = f"{ref.name}, a handler that TorchServe brings along"
    hint = "It is not supported in this version: pack a handler of your own, for example one that extends BaseHandler."
    expected = f"a handler in the archive, {SERVED_BUILT_IN}, or {LLM_API} for a language model"
    return [manifest.fault("model.handler", found, expected, hint)]


def _there(folder: Path) -> str:
    names = sorted(entry.name for entry in folder.iterdir())[:20]
    return f"a file of the archive, which holds {', '.join(names) or 'nothing'}"


def _twice(spec: ModelSpec, place: Path) -> Finding:
    found = f"a second archive of model '{spec.name}', version {spec.version}"
    hint = "Give it another version, or remove one of them."
    return Finding(Severity.ERROR, str(place), None, "model.modelVersion", found, "one of each version", hint)


FORMAT = TorchServeFormat()


def made(variables: Mapping[str, str]) -> TorchServeFormat:
    """Make the format for a server with this environment."""
    return TorchServeFormat(variables)
