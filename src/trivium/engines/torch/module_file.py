"""Opens a TorchScript file, and says what another file is that looks like one.

A file that holds only a pickle is never read: reading it may run any code, and it has no graph to run anyway.
"""

import zipfile
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

_EXPORT = (
    "Export the model with torch.jit.trace(model, example).save(...), or serve it with a handler in Python."
)
_Key = tuple[Path, int, int, str]


def library() -> Any:
    """torch, imported when it is first needed. UNSUPPORTED with the install command where it lacks."""
    try:
        import torch
    except ImportError as error:
        raise ServeError(
            Code.UNSUPPORTED,
            "TorchScript models need PyTorch, which is not installed. Install it with: pip install 'trivium[torch]'",
        ) from error
    return torch


def device_of(torch: Any, spec: ModelSpec, placement: Placement) -> Any:
    """The torch device of a placement. LOAD_FAILED where there is no such GPU."""
    if placement.device is Device.CPU:
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if placement.device_id >= count:
        has = f"sees {count} GPUs" if count else "has no CUDA, or sees no GPU"
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': instance {placement.name} is to run on GPU {placement.device_id}, but this PyTorch "
            f"{has}. Install a PyTorch for CUDA, name another GPU, or use KIND_CPU.",
        )
    return torch.device("cuda", placement.device_id)


class ModuleFiles:
    """Loads modules; those opened to be shared are one per file and device, as long as anybody uses them."""

    def __init__(self) -> None:
        self._shared: WeakValueDictionary[_Key, Any] = WeakValueDictionary()
        self._lock = Lock()

    def load(self, torch: Any, spec: ModelSpec, device: Any, is_shared: bool) -> Any:
        """The module on its device, for inference. LOAD_FAILED with what the file is instead."""
        path = spec.root / spec.entry
        if not is_shared:
            return _load(torch, spec, path, device)
        with self._lock:  # the second instance waits for the first one's weights
            try:
                status = path.stat()
            except OSError as error:
                raise _missing(spec, path) from error
            key = path, status.st_mtime_ns, status.st_size, str(device)
            module = self._shared.get(key)
            if module is None:
                module = self._shared[key] = _load(torch, spec, path, device)
            return module


def members(spec: ModelSpec, path: Path) -> frozenset[str]:
    """What the archive of a TorchScript file holds, without the folder that all of it is in. LOAD_FAILED for a file
    that is none, with what it is.
    """
    if not path.is_file():
        raise _missing(spec, path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = frozenset(name.partition("/")[2] for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise _no_module(
            spec, path, "it is no archive, as TorchScript files are, but perhaps a pickle"
        ) from error
    if "constants.pkl" in names:
        return names
    if any(name.startswith("models/") or "exported_program" in name for name in names):
        raise _no_module(spec, path, "it is a program written by torch.export, which is not served yet")
    if "data.pkl" in names:
        raise _no_module(
            spec,
            path,
            "it is a pickle written by torch.save: it has no graph, and reading it could run any code",
        )
    raise _no_module(spec, path, "the archive holds no TorchScript code")


def _load(torch: Any, spec: ModelSpec, path: Path, device: Any) -> Any:
    members(spec, path)
    try:
        module = torch.jit.load(str(path), map_location=device)
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': PyTorch {torch.__version__} cannot open {path}: {error}",
        ) from error
    if not hasattr(module, "forward"):
        raise _no_module(spec, path, "its module has no method forward")
    module.eval()
    return module


def _missing(spec: ModelSpec, path: Path) -> ServeError:
    return ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")


def _no_module(spec: ModelSpec, path: Path, found: str) -> ServeError:
    return ServeError(
        Code.LOAD_FAILED, f"Model '{spec.name}': {path} is not a TorchScript module: {found}. {_EXPORT}"
    )
