"""Chooses the engine that runs a folder and the file or module that it opens, or says why nothing here does.

Source: spec sheet `djl`, sections 2.5, 8.2 and 8.7. A key without whose effect the
model could not work is an error with a way out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from trivium.codecs.near_names import near
from trivium.formats.checkpoint.checkpoint import CheckpointReading
from trivium.servers.djl.folder.estimators import is_opened
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words.detection import Detected, detect, find_entry, find_estimator
from trivium.servers.djl.words.engines import (
    NAMES,
    PYTHON,
    SKLEARN_HANDLER,
    SPELLINGS,
    DjlEngine,
    served_names,
)
from trivium.servers.djl.words.handlers import HandlerKind, is_asynchronous, kind_of, names_of
from trivium.servers.djl.words.lmi_runtimes import HANDLERS
from trivium.servers.djl.words.naming import inferred_name
from trivium.servers.djl.words.served_code import formatters_of, services_of
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.findings import Change
from trivium.types.spec import Origin

_ENTRY = "option.entryPoint"
_FUNCTION = "option.handler"
_ASYNC = "option.async_mode"
_MODEL_ID = "option.model_id"
_REMOTE = ("http://", "https://")
_STORES = ("s3://", "djl://", "gs://", "hdfs://")
_PREFIX = ("option.modelName", "option.modeName")


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine and its entry. `function` is what to call in user code; is it an async function? The entry lies in
    `root`, where that is not the model's folder. Of a language model `parameters` are what its options say to the
    engine, and `checkpoint` its weights.
    """

    engine: Placed[DjlEngine]
    entry: Placed[str]
    function: Placed[str]
    is_asynchronous: Placed[bool]
    root: Placed[Path] | None = None
    parameters: Mapping[str, Placed[str]] = field(default_factory=dict)
    checkpoint: CheckpointReading | None = None


def choose(settings: DjlSettings, folder: DjlModelFolder) -> Choice | None:
    """The choice; None, and errors in `settings`, where there is none."""
    prefixes = _prefixes(settings, folder)
    engine = _engine(settings, folder, prefixes)
    if engine is None:
        return None
    function = settings.text([_FUNCTION], "handle")
    if engine.value.runs_handlers:
        entry = _entry_point(settings, folder, prefixes, function.value)
    else:
        entry = _model_file(settings, folder, prefixes, engine.value)
    if entry is None:
        return None
    has_mode = engine.value.runs_handlers
    mode = _mode(settings, folder, entry.value, function.value) if has_mode else Placed(False, engine.origin)
    return Choice(engine, entry, function, mode)


def _mode(settings: DjlSettings, folder: DjlModelFolder, entry: str, function: str) -> Placed[bool]:
    """Is the handler asynchronous: by the option, or, without it, by the text of its file?"""
    is_file = entry.endswith(".py")
    is_async = is_file and is_asynchronous(folder.text(entry), function)
    mode = settings.switch(_ASYNC, is_async)
    if is_async and not mode.value:
        found = f"{_ASYNC}=false, and {function} in {entry} is an async function"
        settings.fault(
            _ASYNC, found, "true, or a plain function", "Leave it out, or define the function without async."
        )
    if settings.text([_ASYNC]).value:
        return mode
    rule = (
        f"{function} in {entry} is {'an async' if is_async else 'a plain'} function"
        if is_file
        else "DJL's default"
    )
    return Placed(is_async, Origin(rule, ""))


def _prefixes(settings: DjlSettings, folder: DjlModelFolder) -> tuple[str, ...]:
    name = settings.text(_PREFIX).value
    return (name,) if name else folder.prefixes


def _engine(
    settings: DjlSettings, folder: DjlModelFolder, prefixes: tuple[str, ...]
) -> Placed[DjlEngine] | None:
    written = settings.text(["engine"])
    if written.value:
        engine, report = NAMES.get(written.value.lower(), (None, ""))
        if engine is None or not engine.engine:
            found_there = detect(folder.files, prefixes, False)
            mend = _way_out(engine, written.value, found_there.engine if found_there else None)
            settings.fault("engine", f"engine={written.value}", served_names(), *mend)
            return None
        if report:
            settings.notice("engine", f"engine={written.value} is served as {engine.name}: {report}")
        return Placed(engine, written.origin)
    has_model_id = bool(settings.text([_MODEL_ID]).value)
    detected = detect(folder.files, prefixes, has_model_id)
    if detected is None and settings.text([_ENTRY]).value:
        return Placed(PYTHON, Origin(f"the key {_ENTRY}", ""))
    if detected is None:
        there = ", ".join(sorted(folder.files | folder.folders)[:10]) or "nothing"
        found = f"no model file by which to choose an engine; the folder has {there}"
        hint = folder.misnamed() or "Add one, or set engine."
        settings.fault("engine", found, "model.py, model.pt or model.onnx", hint)
        return None
    if not detected.engine.engine:
        found = f"a model of the engine {detected.engine.name} ({detected.rule})"
        settings.fault("engine", found, served_names(), detected.engine.way_out)
        return None
    return Placed(detected.engine, Origin(detected.rule, ""))


def _model_file(
    settings: DjlSettings, folder: DjlModelFolder, prefixes: tuple[str, ...], engine: DjlEngine
) -> Placed[str] | None:
    file = find_entry(folder.files, prefixes, engine) or folder.inner_file(prefixes, engine.files)
    if file:
        return Placed(file, Origin(str(folder.path / file), ""))
    suffix = next(iter(engine.suffixes), "")
    named = [f"{prefix}{suffix}" for prefix in dict.fromkeys((*prefixes, "model"))] if suffix else []
    expected = " or ".join((*named, *engine.files))
    written = settings.text(_PREFIX).origin
    key = written.key or _PREFIX[0]
    hint = folder.misnamed((suffix,), key) if suffix else folder.misplaced(engine.files, key)
    hint = hint or "Add the model file."
    settings.fault(key, f"no model file in {folder.path}", expected, hint)
    return None


def _entry_point(
    settings: DjlSettings, folder: DjlModelFolder, prefixes: tuple[str, ...], function: str
) -> Placed[str] | None:
    _check_model_id(settings)
    written = settings.text([_ENTRY])
    entry = written if written.value else _default_entry(folder, prefixes, function)
    if entry is None:
        detected = detect(folder.files, prefixes, bool(settings.text([_MODEL_ID]).value))
        if detected is not None and detected.is_served and not detected.engine.runs_handlers:
            _refuse_engine(settings, folder, detected)
        else:
            _refuse_missing(settings, folder, detected.built_in if detected else "")
        return None
    if not _check_entry(settings, folder, entry.value):
        return None
    if _check_code(settings, folder, entry.value):
        _check_function(settings, folder, entry.value, function)
    return entry


def _default_entry(folder: DjlModelFolder, prefixes: tuple[str, ...], function: str) -> Placed[str] | None:
    """Return the file by the folder's name, then model.py; of several the first that holds a handler. An estimator of
    scikit-learn without one is DJL's own handler's.
    """
    names = [
        name
        for name in dict.fromkeys(f"{prefix}.py" for prefix in (*prefixes, "model"))
        if name in folder.files
    ]
    estimator = find_estimator(folder.files, prefixes)
    if estimator and not any(_defines(folder.text(name), function) for name in names):
        return Placed(SKLEARN_HANDLER, Origin(f"the file {estimator}", ""))
    if not names:
        return None
    holding = (name for name in names if kind_of(folder.text(name), function) is HandlerKind.DJL)
    name = next(holding, names[0])
    return Placed(name, Origin(f"the file {name}", ""))


def _defines(text: str, function: str) -> bool:
    """May this module have the function? True where its text does not tell."""
    names = names_of(text)
    return names is None or function in names


def _check_entry(settings: DjlSettings, folder: DjlModelFolder, entry: str) -> bool:
    if entry.startswith(_REMOTE):
        hint = "Download it into the folder, and name the file."
        settings.fault(
            _ENTRY, f"{entry} lies on the network, which is not supported in this version", "a file", hint
        )
        return False
    if entry == SKLEARN_HANDLER:
        return is_opened(settings, folder)
    if entry == "djl_python" or entry.startswith("djl_python."):
        _refuse_missing(settings, folder, entry)
        return False
    if not entry.endswith(".py"):
        return True
    path = PurePosixPath(entry)
    if path.is_absolute() or ".." in path.parts:
        hint = "Put the file into the folder, and give its path from there."
        settings.fault(_ENTRY, f"{entry}, which leads out of {folder.path}", "a file of the folder", hint)
        return False
    try:
        if (folder.path / entry).is_file():
            return True
    except (OSError, ValueError):
        pass
    files = sorted(name for name in folder.files if name.endswith(".py"))
    meant = near(PurePosixPath(entry).name, files, 0.0)
    hint = f"Did you mean {meant}?" if meant else "Add the file."
    mends = (Change(value=meant),) if meant else ()
    found = f"no file {entry} in {folder.path}"
    settings.fault(_ENTRY, found, "a file of the folder, or a module", hint, *mends)
    return False


def _check_code(settings: DjlSettings, folder: DjlModelFolder, entry: str) -> bool:
    """Refuse code that needs a service of DJL's own as it is loaded, or that only surrounds one; return whether the
    rest is worth a look.
    """
    file = folder.file_of(entry)
    text = folder.text(file) if file else ""
    for use in services_of(text):
        built = f"the class {use.subclass} builds on" if use.subclass else "the module calls"
        found = f"{built} {use.name}, a service of DJL's own, which is not supported in this version"
        settings.blame(str(folder.path / file), use.line, found, "a handler of the folder's own", use.way_out)
    formatters = formatters_of(text)
    names = names_of(text)
    if not formatters or names is None or "handle" in names:
        return True
    for name, (decorator, line) in formatters.items():
        found = (
            f"{name} is an @{decorator} around an engine of DJL's own, and the folder has no language model"
        )
        settings.blame(
            str(folder.path / file),
            line,
            found,
            "a handler, or a language model",
            "Name its weights by option.model_id, or write handle(inputs) there, which loads the model.",
        )
    return False


def _check_function(settings: DjlSettings, folder: DjlModelFolder, entry: str, function: str) -> None:
    """Refuse a function that the entry's text does not have. A module that is not in the folder is not looked for."""
    file = folder.file_of(entry)
    names = names_of(folder.text(file)) if file else None
    if names is None or function in names:
        return
    meant = near(function, sorted(names))
    hint = f"Did you mean {meant}?" if meant else f"Define {function}(inputs) there, or name the function."
    mends = (Change(value=meant),) if meant else ()
    found = f"{file} has no function {function}"
    settings.fault(_FUNCTION, found, "a function of that file", hint, *mends)


def _refuse_engine(settings: DjlSettings, folder: DjlModelFolder, detected: Detected) -> None:
    """Refuse to run what another engine opens as a handler."""
    name = detected.engine.name
    settings.fault(
        "engine",
        f"no Python file to run in {folder.path}, but {detected.entry}, a model for the engine {name}",
        "model.py, or the other engine",
        f"Write engine={name}, or name it in the model's URL: {inferred_name(folder.path.name)}::{name}=...",
    )


def _refuse_missing(settings: DjlSettings, folder: DjlModelFolder, built_in: str) -> None:
    if built_in:
        found = f"the model needs DJL's own handler {built_in}, which is not supported in this version"
        meant = near(built_in, (*HANDLERS, SKLEARN_HANDLER), 0.9)
        hint = f"Did you mean {meant}?" if meant else "Write a model.py with handle(inputs)."
        mends = (Change(value=meant),) if meant else ()
        settings.fault(_ENTRY, found, "a handler of the folder's own", hint, *mends)
    else:
        found = f"no Python file to run in {folder.path}"
        settings.fault(_ENTRY, found, "model.py", "Add it, or name another file in option.entryPoint.")


def _check_model_id(settings: DjlSettings) -> None:
    model_id = settings.text([_MODEL_ID]).value
    if model_id.startswith(_STORES):
        found = f"{_MODEL_ID}={model_id}: fetching models is not supported in this version"
        settings.fault(
            _MODEL_ID, found, "a local path, or a name for the handler", "Download it, and name the folder."
        )


def _way_out(engine: DjlEngine | None, name: str, there: DjlEngine | None) -> tuple[str, *tuple[Change, ...]]:
    """Return the hint, and the change that it names, if it names one: for a name of no engine the nearest, unless the
    folder has a model of another, which is `there`.
    """
    if engine is not None:
        return (engine.way_out,)
    meant = near(name, [one for one in SPELLINGS if NAMES[one.lower()][0].engine])
    if there is not None and there.engine and (not meant or NAMES[meant.lower()][0] is not there):
        return (f"The folder has a model of {there.name}: write that.", Change(value=there.name))
    return (f"Did you mean {meant}?", Change(value=meant)) if meant else ("Write one of them.",)
