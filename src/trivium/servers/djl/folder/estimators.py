"""Judges a folder that DJL's scikit-learn handler serves: whether there is one file to open, and whether it is trusted.

The worker opens by the same rule; here nothing is opened, so that a pickle without the operator's word is refused
before anything of it runs. Source: the documentation of DJL Serving's scikit-learn handler.
"""

from trivium.codecs.near_names import near
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words.handlers import names_of
from trivium.servers.djl.words.served_code import formatters_of
from trivium.servers.djl.words.settings import DjlSettings
from trivium.types.findings import Change
from trivium_worker.estimators import FORMATS, OWN_LOADING, TRUST, EstimatorFiles, files_of

_FILE = "model.py"
_FORMAT, _TRUST = "option.model_format", f"option.{TRUST}"
_LOADER = "model_fn"


def is_opened(settings: DjlSettings, folder: DjlModelFolder) -> bool:
    """May the handler open this folder's model? Errors gather in the settings."""
    written = settings.text([_FORMAT]).value
    if written and written not in FORMATS:
        meant = near(written.lower(), FORMATS)
        hint = (
            f"Did you mean {meant}?"
            if meant
            else "Write one of them, or leave it out: the file's end says it."
        )
        mends = (Change(value=meant),) if meant else ()
        settings.fault(_FORMAT, f"{_FORMAT}={written}", ", ".join(FORMATS), hint, *mends)
        return False
    if _loads_itself(folder):
        return True
    files = files_of(folder.files, written)
    if len(files.names) != 1:
        _refuse_files(settings, folder, files, written)
        return False
    trust = settings.text([_TRUST]).value
    if not files.is_pickle or trust.lower() == "true":
        return True
    said = f"{_TRUST}={trust}" if trust else f"{_TRUST} is not true"
    settings.fault(
        _TRUST,
        f"{said}, and {folder.path / files.names[0]} is a pickle, which runs what its author wrote",
        "true, for a file that you trust, or a .skops",
        f"Save it anew: skops.io.dump(model, 'model.skops'). Or, if you trust the file, write {_TRUST}=true.",
        Change(value="true"),
    )
    return False


def _loads_itself(folder: DjlModelFolder) -> bool:
    """May model.py load the model by a function of its own? True where its text does not tell."""
    if _FILE not in folder.files:
        return False
    text = folder.text(_FILE)
    decorators = {decorator for decorator, _ in formatters_of(text).values()}
    names = names_of(text)
    return "init_handler" in decorators or names is None or (not decorators and _LOADER in names)


def _refuse_files(settings: DjlSettings, folder: DjlModelFolder, files: EstimatorFiles, written: str) -> None:
    ends = " or ".join(files.ends) if written else "one file in .skops, .joblib, .pkl or .cloudpkl"
    if files.names:
        found = f"{len(files.names)} files that may be the model: {', '.join(files.names)[:300]}"
        settings.fault(_FORMAT, found, ends, f"Leave one of them there. {OWN_LOADING}")
        return
    other = files_of(folder.files, "").names
    kind = f"in {' or '.join(files.ends)}" if written else "of an estimator"
    found = f"no file {kind} in {folder.path}"
    if written and other:
        found += f", but {', '.join(other)[:300]}"
        hint = f"Remove {_FORMAT}: the file's end says what it is."
        settings.fault(_FORMAT, found, f"a file of {_FORMAT}={written}", hint, Change())
    else:
        settings.fault(_FORMAT, found, ends, f"Add the model's file. {OWN_LOADING}")
