"""A DJL workflow as it lies on disk -> a spec with a graph, and the sources of the models and functions that it brings.

The definition is judged by `servers/djl/words/workflows`; this adds what takes the disk: where it lies, and whether its
functions are there. Source: spec sheet `djl`, sections 2.2 and 6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trivium.codecs.near_names import near
from trivium.files import open_file
from trivium.servers.djl.folder.folder import DjlModelFolder, open_folder
from trivium.servers.djl.words.handlers import counts_of
from trivium.servers.djl.words.judging import KNOWN
from trivium.servers.djl.words.model_urls import DEFINITIONS
from trivium.servers.djl.words.naming import inferred_name
from trivium.servers.djl.words.workflow_documents import FILES, MAX_BYTES, MODEL_DIR, WorkflowText, read_text
from trivium.servers.djl.words.workflows import Workflow, read_workflow
from trivium.types.errors import ConfigError
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import (
    All,
    Defaults,
    Foreign,
    InstanceGroup,
    Isolation,
    Limits,
    ModelSpec,
    Origin,
)

DIALECT = "djl"
AS_MODEL = "trivium_as_model"
"""Setting of a source by which a folder is read as a model though it is a workflow."""

FUNCTION, CONFIG = "trivium_function", "trivium_function_config"
"""Settings of a source by which a definition is read as a function beside it: module:attr, and JSON."""


@dataclass(frozen=True, slots=True)
class WorkflowMembers:
    """Lists what a workflow brings with it."""

    sources: tuple[ModelSource, ...]


def definition_of(path: Path) -> Path | None:
    """Return the file that defines a workflow: the path itself, or a file of that folder; None where there is none.
    Raises OSError and ValueError.
    """
    if path.name.lower().endswith(DEFINITIONS):
        return path if path.is_file() else None
    if not path.is_dir():
        return None
    return next((path / name for name in FILES if (path / name).is_file()), None)


def name_of(path: Path) -> str:
    """Return the name of a workflow whose definition does not say it: that of its file, or of the folder where the
    file is called as all are.
    """
    is_file = path.name.lower().endswith(DEFINITIONS) and path.name not in FILES
    return inferred_name(path.stem if is_file else path.parent.name if path.name in FILES else path.name)


def read_definition(file: Path, source: ModelSource, defaults: Defaults) -> ModelSpec:
    """Return the workflow that a file defines, as `source` asks for it. Raises ConfigError and OSError."""
    folder = file.parent.absolute()
    place = str(folder)
    if source.is_remote and source.uri.partition("?")[0].lower().endswith(DEFINITIONS):
        place = source.uri.partition("?")[0].rpartition("/")[0]
    parameters = {key: setting.value for key, setting in source.over.items()} | {MODEL_DIR: place}
    with open_file(file) as opened:
        data = opened.read(MAX_BYTES + 1)
    text = read_text(str(file), data, parameters)
    _check_wishes(text, source)
    named = "" if source.is_named_after_uri else source.name
    default = source.name or name_of(file)
    workflow = read_workflow(text, named, source.version, default)
    if source.version not in ("", workflow.version):
        found = f"version {source.version} is asked for, and the definition has its own"
        text.notice(("version",), found, f"It is served as {workflow.version}.")
    _check_functions(text, workflow, open_folder(folder))
    if text.has_faults:
        raise ConfigError(tuple(text.findings))
    return _spec(text, workflow, file, defaults)


def _spec(text: WorkflowText, workflow: Workflow, file: Path, defaults: Defaults) -> ModelSpec:
    folder = file.parent
    return ModelSpec(
        name=workflow.name,
        version=workflow.version or "1",
        is_versioned=bool(workflow.version),
        in_turns=True,
        version_policy=All(),
        root=folder,
        engine="workflow",
        entry=file.name,
        scheduling=workflow.graph,
        groups=(InstanceGroup(workflow.name, isolation=Isolation.INLINE),),
        limits=Limits(queue_items=defaults.queue_items),
        standing=workflow.standing,
        foreign=Foreign(DIALECT, WorkflowMembers(tuple(_members(workflow, file)))),
        origin={
            "name": Origin("the name of the file or folder", ""),
            "version": Origin("rule for a definition without a version", ""),
            **workflow.origins,
            "root": Origin(str(folder), ""),
            "engine": Origin(str(file), ""),
            "limits.queue_items": Origin("the server's default bound", ""),
        },
        reports=tuple(text.findings),
    )


def _members(workflow: Workflow, file: Path) -> Iterator[ModelSource]:
    """Yield the sources of the models, and of the functions: the definition itself, with settings that name them."""
    for source in workflow.models.values():
        yield replace(source, over={**source.over, **_mark(source)})
    for member, function in workflow.functions.items():
        settings = {FUNCTION: function.code, CONFIG: function.config}
        over = {key: SourceSetting(value, function.origin) for key, value in settings.items()}
        yield ModelSource(str(file), member, workflow.version, over=over)


def _mark(source: ModelSource) -> dict[str, SourceSetting]:
    """Return the setting by which the folder of a workflow is read as a model; nothing for all others."""
    try:
        is_workflow = not source.is_remote and definition_of(Path(source.uri)) is not None
    except (OSError, ValueError):
        return {}
    return {AS_MODEL: SourceSetting("true", Origin("a member of a workflow", ""))} if is_workflow else {}


def _check_wishes(text: WorkflowText, source: ModelSource) -> None:
    """Note what is asked for and cannot be had: the models of a workflow have their own settings."""
    hint = "Write it into the definition, at a model."
    for word, wish in (("engine", source.engine), ("devices", ";".join(source.devices))):
        if wish:
            text.fault((), f"{word} {wish} is asked for, of a workflow", f"no {word}", hint)
    for key in source.over:
        if key in text.used:
            continue
        if key in KNOWN:
            text.fault((), f"{key} is asked for, of a workflow", "settings of its models", hint)
        else:
            text.notice((), f"{key} has no effect: {{{key}}} does not stand in the definition"[:200])


# -- functions ---------------------------------------------------------------------------------------------


def entry_of(code: str) -> tuple[str, str]:
    """Return module and name of a function."""
    module, _, name = code.partition(":")
    return module, name


def _check_functions(text: WorkflowText, workflow: Workflow, folder: DjlModelFolder) -> None:
    """Note functions that are not in their files, or are called with another number of arguments than they take."""
    for member, function in workflow.functions.items():
        local = member.rpartition(":")[2]
        place = ("functions", local)
        module, name = entry_of(function.code)
        file = folder.file_of(module)
        if not file:
            _check_module(text, place, module, folder)
            continue
        counts = counts_of(folder.text(file), name)
        for count in sorted(function.calls):
            if counts is not None and not counts.fits(count):
                found = f"{local} is called with {count} arguments, and {name} in {file} takes {counts}"
                text.fault(place, found, f"{counts} arguments", "Correct the expression, or the function.")


def _check_module(text: WorkflowText, place: tuple[str, str], module: str, folder: DjlModelFolder) -> None:
    """Refuse a module that looks like a file of the folder, and is none; another may be installed."""
    there = sorted(name.removesuffix(".py") for name in folder.files if name.endswith(".py"))
    meant = near(module, there)
    if meant or module.endswith(".py"):
        hint = f"Did you mean {meant}?" if meant else "Leave out the .py."
        text.fault(place, f"no module {module} in {folder.path}", "a module of the folder", hint)


def as_handler(source: ModelSource) -> tuple[ModelSource, SourceSetting]:
    """Return what a function's source asks for in the words of a handler, and the function's configuration."""
    code = source.over[FUNCTION]
    module, name = entry_of(code.value)
    wishes = {"engine": "Python", "option.entryPoint": module, "option.handler": name, "batch_size": "1"}
    rest = {key: value for key, value in source.over.items() if key not in (FUNCTION, CONFIG)}
    over = rest | {key: SourceSetting(value, code.origin) for key, value in wishes.items()}
    return replace(source, over=over), source.over.get(CONFIG, SourceSetting("{}", code.origin))


def members_of(spec: ModelSpec) -> Sequence[ModelSource]:
    """Return what a workflow brings with it; nothing for any other model."""
    document = None if spec.foreign is None else spec.foreign.document
    return document.sources if isinstance(document, WorkflowMembers) else ()
