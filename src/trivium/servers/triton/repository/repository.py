"""The Triton format: a model repository, or one model folder of it -> a spec per version.

Decides the order of the steps: look, read, check, complete, translate. A model that cannot be served is named
with all its faults, and its neighbours load.
"""

from dataclasses import replace
from pathlib import Path

from trivium.codecs.near_names import near
from trivium.codecs.visible_text import visible
from trivium.files import open_file
from trivium.formats.each import read_each, unopened
from trivium.servers.triton.repository import (
    backend_words,
    contents,
    forests,
    limits,
    metrics,
    open_tensors,
    python_backend,
    sequences,
    translation,
    vllm_backend,
)
from trivium.servers.triton.repository.completion import complete
from trivium.servers.triton.repository.folder import (
    CONFIG,
    TritonModelFolder,
    child_folders,
    is_model,
    open_folder,
)
from trivium.servers.triton.repository.labels import with_labels
from trivium.servers.triton.repository.normalisation import Rules, normalise
from trivium.servers.triton.repository.override import lay_out
from trivium.servers.triton.words.backends import Backend, choose_backend, without_engine
from trivium.servers.triton.words.batch_shapes import check_batch_shapes
from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.config_faults import in_tritons_words
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import DIALECT, Document
from trivium.servers.triton.words.reader import MAX_BYTES, read_config
from trivium.servers.triton.words.requirements import unspecified
from trivium.types.batch_shapes import BatchShapes
from trivium.types.errors import ConfigError, frameless
from trivium.types.findings import Finding, Severity
from trivium.types.operations import Load
from trivium.types.spec import Defaults, Foreign, ModelFacts, ModelSpec, ReadResult


class TritonFormat:
    """Model repositories of the Triton Inference Server (sheet "triton", sections 2 and 3)."""

    name = "triton"
    expects = "a model folder with config.pbtxt or 1/model.onnx in it, or a folder of such folders"

    def claims(self, path: Path) -> bool:
        """A model folder, or a folder one of whose folders is one."""
        try:
            return is_model(path) or (path.is_dir() and any(map(is_model, child_folders(path))))
        except OSError:
            return False

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Every version of every model; hidden folders and plain files of a repository are none of it."""
        if path.name in ("", ".."):
            path = path.resolve()
        try:
            folders = [path] if is_model(path) else child_folders(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, frameless(error)),))

        def read_model(folder: Path) -> list[ModelSpec]:
            return _read_model(open_folder(folder, defaults.config_name), defaults)

        return read_each(folders, read_model, lambda folder: folder.name)

    def places(self, path: Path) -> dict[str, Path]:
        """See `types.interfaces.Places`: each model has a folder."""
        folders = [path] if is_model(path) else child_folders(path)
        return {visible(folder.name): folder for folder in folders}

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Complete the spec by the rules of the original's ONNX Runtime backend; ConfigError names both sides."""
        if vllm_backend.is_of_backend(spec):
            return vllm_backend.finished(spec, facts)
        return complete(spec, facts)

    def override(self, load: Load, source: Path, into: Path) -> Path:
        """See `types.interfaces.Overrides`."""
        return lay_out(load, source, into)


def _read_model(folder: TritonModelFolder, defaults: Defaults) -> list[ModelSpec]:
    if not folder.looks_like_model:
        raise ConfigError((_no_model(folder),))
    if folder.has_config:
        with open_file(folder.config) as file:
            text = read_config(str(folder.config), file.read(MAX_BYTES + 1))
    else:
        text = ConfigText(str(folder.path), exists=False)
    findings = check(text, defaults.gpus)
    findings += contents.check_name(text, folder)
    findings += contents.check_choice(text, folder)
    if not defaults.completes and not text.has_errors:
        findings += contents.check_unaided(text, folder)
    findings += contents.check_versions(text, folder)
    backend: Backend | Finding | None = None
    if not text.has_errors:
        backend = choose_backend(text, folder.name, folder.first_files)
        if isinstance(backend, Backend) and (
            none := without_engine(text, backend, folder.name, _tried(text, folder))
        ):
            raise ConfigError((none,))
        if isinstance(backend, Backend):
            findings += contents.check_paths(text)
            findings += limits.check(text)
            findings += metrics.check(text)
            findings += forests.check(text, backend)
            findings += backend_words.check(text, backend)
            findings += contents.check_files(text, folder, backend)
            findings += contents.check_completeness(text, backend, defaults.completes)
            findings += python_backend.check(text, folder, backend, defaults)
            findings += vllm_backend.check(text, folder, backend, defaults)
            if python_backend.completes_itself(text, folder, backend, defaults):
                later = list(unspecified(text))  # the model may say it yet
                findings = [finding for finding in findings if finding not in later]
            findings = open_tensors.allowed(text, backend, findings)
            findings += check_batch_shapes(text, backend)
            findings += sequences.check(text, backend)
            findings += sequences.check_more(text, backend)
        else:
            findings.append(backend)
    if not isinstance(backend, Backend) or any(finding.severity is Severity.ERROR for finding in findings):
        raise ConfigError(tuple(in_tritons_words(text, folder.name, _tried(text, folder), findings)))
    config, rules = normalise(text.config, folder.name, backend, defaults.gpus)
    document = Document(replace(text, config=config, findings=tuple(findings)), defaults.max_rows)
    return _specs(folder, backend, document, rules, defaults)


def _tried(text: ConfigText, folder: TritonModelFolder) -> str:
    """Return the version that is named where a model cannot be read."""
    return (contents.wanted_versions(contents.version_policy(text), folder) or ["1"])[-1]


def _specs(
    folder: TritonModelFolder, backend: Backend, document: Document, rules: Rules, defaults: Defaults
) -> list[ModelSpec]:
    text = document.text
    entry = text.config.default_model_filename
    first = ModelSpec(
        name=folder.name,
        version="",
        root=folder.path,
        engine=backend.engine_name,
        entry=entry,
        inputs=translation.tensors(iter(text.config.input), backend.leaves_open),
        outputs=with_labels(
            text, folder.path, translation.tensors(iter(text.config.output), backend.leaves_open)
        ),
        batching=translation.batching(text),
        scheduling=translation.scheduling(text, folder.path),
        groups=translation.groups(text),
        limits=limits.limits(text, defaults),
        in_order=sequences.in_order(text.config),
        caches=text.config.response_cache.enable,
        streams=text.config.model_transaction_policy.decoupled,
        warmups=translation.warmups(text, folder.path),
        version_policy=contents.version_policy(text),
        metrics=metrics.metrics(text),
        parameters=backend_words.translated(
            backend, forests.translated(text, backend, translation.parameters(text))
        ),
        foreign=Foreign(DIALECT, document),
        reports=text.findings,
        batch_shapes=translation.batch_shapes(text) if backend.tells_shapes else BatchShapes(),
    )
    places = {"version": "the folder's name"}
    handler, handler_origins = python_backend.handler(text, folder, first, defaults)
    versions = [
        replace(
            first,
            version=version,
            root=folder.path / version,
            handler=handler,
            origin={
                **translation.origins(text, {**rules, **places, "root": str(folder.path / version)}),
                **limits.origins(text),
                **forests.origins(text, backend),
                **backend_words.origins(text, backend),
                **handler_origins,
            },
        )
        for version in folder.versions
        if not entry or (folder.path / version / entry).exists()
    ]
    return [vllm_backend.specified(each, text, backend, defaults) for each in versions]


def _no_model(folder: TritonModelFolder) -> Finding:
    meant = near(CONFIG, folder.names)
    there = ", ".join(folder.names) or "nothing"
    found = f"neither {CONFIG} nor a version folder with a known model file; the folder has {there}"
    expected = f"{CONFIG}, or 1/model.onnx"
    hint = f"Rename {meant} to {CONFIG}." if meant else "Add one of them, or move the folder elsewhere."
    return Finding(Severity.ERROR, str(folder.path), None, "", found, expected, hint)


FORMAT = TritonFormat()
