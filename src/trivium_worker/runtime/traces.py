"""Shows what user code raised as its author reads it: the author's own line, what to do, and no frame of ours.

The worker's frames stand above those of user code, and below them in its shims: they say nothing to who wrote it.
"""

import contextlib
import os
import sys
import traceback
from typing import Any

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OURS = (_HOME + os.sep, os.path.join(os.path.dirname(_HOME), "trivium_handler") + os.sep)
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = ("site-packages", "dist-packages")
_SAME = (
    "accelerate aiohttp boto3 captum cloudpickle diffusers fastapi gguf joblib librosa lightgbm matplotlib nltk numpy "
    "onnx onnxruntime optimum pandas peft protobuf pydantic requests safetensors scipy sentencepiece skops soundfile "
    "spacy tensorflow tiktoken timm tokenizers torch torchaudio torchtext torchvision tqdm transformers xgboost"
)
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "faiss": "faiss-cpu",
    "opentelemetry": "opentelemetry-sdk",
    "pkg_resources": "setuptools",
    "sentence_transformers": "sentence-transformers",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    **{name: name for name in _SAME.split()},
}
"""Module -> the package that has it. Of other names nobody can say whose they are, and a guess may be a trap."""


def notes_of(error: BaseException) -> "list[str]":
    """Return what was added to an error to explain it; user code may have put anything there."""
    notes = getattr(error, "__notes__", None)
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def trace_of(error: BaseException) -> str:
    """Return the traceback of what user code raised, of its causes too, without frames of ours."""
    trace = traceback.TracebackException.from_exception(error)
    _leave_ours_out(trace)
    return "".join(trace.format()).rstrip()


def print_trace(error: BaseException) -> None:
    """Write the traceback, and what to do, to standard error, the model's log, if it is open."""
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{trace_of(error)}\n{advice_on(error)}".rstrip() + "\n")


def place_of(error: BaseException) -> str:
    """Return the last line of user code in an error's traceback, like "/models/m/model.py, line 3"; empty for none."""
    if isinstance(error, SyntaxError):
        written: Any = error.filename  # user code may make such an error itself, of anything
        if isinstance(written, str) and written and not is_ours(written):
            return f"{written}, line {error.lineno}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not is_ours(each.filename)]
    libraries = _libraries()
    own = [each for each in frames if not _is_library(each.filename, libraries)]
    where = (own or frames)[-1:]
    return f"{where[0].filename}, line {where[0].lineno}" if where else ""


def advice_on(error: BaseException) -> str:
    """Return what to do about an import that failed, as a sentence; empty for all else."""
    if not isinstance(error, ModuleNotFoundError) or not isinstance(error.name, str):
        return ""
    name = error.name.partition(".")[0]
    if name not in _PACKAGES:
        return (
            f"{error.name} is neither a file of the model's folder nor installed in the handler's Python, "
            f"{sys.executable}. Put the file there, or install the package that has it."
        )
    import shlex

    command = shlex.join([sys.executable, "-m", "pip", "install", _PACKAGES[name]])
    return f"The handler's Python lacks it. Install it with: {command}"


def _leave_ours_out(trace: Any) -> None:
    """Take our frames out of it and of all that it comes from, which may be a long chain."""
    waiting, seen = [trace], set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            kept = [frame for frame in one.stack if not is_ours(frame.filename)]
            one.stack = traceback.StackSummary.from_list(kept)
            waiting += (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))


def is_ours(path: str) -> bool:
    """Tell whether a frame of this file is the worker's, or of the machinery that imports modules."""
    return path.startswith((*_OURS, "<frozen "))


def _libraries() -> tuple[str, ...]:
    import sysconfig  # costs a worker's start too much

    paths = sysconfig.get_paths()
    return tuple({paths[name] + os.sep for name in _LIBRARIES if name in paths})


def _is_library(path: str, libraries: tuple[str, ...]) -> bool:
    return path.startswith((*libraries, "<")) or any(part in path.split(os.sep) for part in _INSTALLED)
