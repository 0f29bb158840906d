"""A folder of decoys: a module for each of many names, which leaves a mark, and then breaks whoever has imported it."""

from collections.abc import Sequence
from pathlib import Path

_LIBRARY = (
    *("random", "json", "logging", "asyncio", "socket", "ssl", "hashlib", "tempfile", "shutil", "pathlib"),
    *("typing", "dataclasses", "inspect", "email", "http", "urllib", "zipfile", "tarfile", "csv", "queue"),
    *(
        "threading",
        "subprocess",
        "select",
        "signal",
        "uuid",
        "venv",
        "ensurepip",
        "pickle",
        "datetime",
        "platform",
    ),
    *("string", "secrets", "contextlib", "warnings", "sitecustomize", "usercustomize"),
)
_DEPENDENCIES = (
    *("numpy", "onnxruntime", "click", "msgspec", "uvloop", "httptools", "yaml", "rich", "psutil", "pip"),
    *("torch", "transformers", "triton", "tokenizers", "PIL", "google", "onnx", "pynvml"),
)
_OURS = ("trivium", "trivium_worker")
NAMES = (*_LIBRARY, *_DEPENDENCIES, *_OURS)
"""Of the standard library, of what the server and its models depend on, and of the server itself."""

_TEXT = """
import sys
with open({marks!r}, "a") as marks:
    marks.write({name!r} + ", imported by " + " ".join(sys.orig_argv)[:300] + "\\n")
raise ImportError("the module of the current folder")
"""


def decoys(folder: Path, marks: Path, names: Sequence[str] = NAMES) -> Path:
    """Write them into a folder, every other one as a package; who imports one is written into the file `marks`."""
    folder.mkdir(exist_ok=True)
    for i, name in enumerate(names):
        path = folder / name / "__init__.py" if i % 2 else folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_TEXT.format(marks=str(marks), name=name))
    return folder
