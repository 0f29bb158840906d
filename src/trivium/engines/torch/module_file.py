"""Opens a model file of one of the kinds that are served, and says what another file is that looks like one.

A file that holds only a pickle is never read: reading it may run any code, and it has no graph to run anyway.
"""

import importlib
import zipfile
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from trivium.engines.torch.archives import ArchiveKind, kind_of, names_in, unsafe
from trivium.engines.torch.programs import ExportedProgram, of_compiled, of_exported, of_script
from trivium.machine.extras import lacking
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

_EXPORT = (
    "Write the model with torch.jit.trace(model, example).save(...) or torch.export.save(...), or serve it with a "
    "handler in Python."
)
_Key = tuple[Path, int, int, str]


def library() -> Any:
    """Import torch when it is first needed. UNSUPPORTED with the install command where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise lacking("PyTorch models", error, "torch") from error
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
        self._shared: WeakValueDictionary[_Key, ExportedProgram] = WeakValueDictionary()
        self._lock = Lock()

    def load(self, torch: Any, spec: ModelSpec, device: Any, is_shared: bool) -> ExportedProgram:
        """The model on its device, for inference. LOAD_FAILED with what the file is instead."""
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


def look_into(torch: Any, spec: ModelSpec, path: Path) -> tuple[ArchiveKind, frozenset[str]]:
    """Return what kind of file it is, and what its archive holds, without the folder that all of it is in. LOAD_FAILED
    for a file that is none, with what it is.
    """
    if not path.is_file():
        raise _missing(spec, path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = names_in(archive)
        kind = kind_of(names)
        odd = unsafe(torch, path) if kind is ArchiveKind.EXPORTED else ""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, AttributeError) as error:
        found = "it is no archive, as model files are, but perhaps a pickle"
        raise _no_module(spec, path, found) from error
    if odd:
        found = (
            f"it is {ArchiveKind.EXPORTED.value} in which '{odd}' is no plain data, uncompressed, as PyTorch "
            "writes it, and reading that could run any code, or fill the memory"
        )
        raise _no_module(spec, path, found)
    if kind is not None:
        return kind, names
    if any("exported_program" in name for name in names):
        found = f"it is {ArchiveKind.EXPORTED.value}, in the form before PyTorch 2.8, which holds pickles"
        raise _no_module(spec, path, found)
    if "data.pkl" in names:
        raise _no_module(
            spec,
            path,
            "it is a pickle written by torch.save: it has no graph, and reading it could run any code",
        )
    raise _no_module(spec, path, "the archive holds no model")


def _load(torch: Any, spec: ModelSpec, path: Path, device: Any) -> ExportedProgram:
    kind, _ = look_into(torch, spec, path)
    try:
        if kind is ArchiveKind.EXPORTED:
            return _exported(torch, path, device)
        if kind is ArchiveKind.COMPILED:
            return _compiled(torch, spec, path, device)
        module = torch.jit.load(str(path), map_location=device)
    except ServeError:
        raise
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': PyTorch {torch.__version__} cannot open {path}: {said_by(error)}",
        ) from error
    if not hasattr(module, "forward"):
        raise _no_module(spec, path, "its module has no method forward")
    module.eval()
    return of_script(module)


def _exported(torch: Any, path: Path, device: Any) -> ExportedProgram:
    program = torch.export.load(str(path))
    if device.type != "cpu":
        program = torch.export.passes.move_to_device_pass(program, str(device))
    return of_exported(program, program.module())


def _compiled(torch: Any, spec: ModelSpec, path: Path, device: Any) -> ExportedProgram:
    """Refuse what was compiled for another device, since it cannot run on this one."""
    load = importlib.import_module("torch._inductor").aoti_load_package
    package = load(str(path)) if device.type == "cpu" else load(str(path), device_index=device.index)
    made_for = str(package.get_metadata().get("AOTI_DEVICE_KEY", device.type))
    if made_for != device.type:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': {path} was compiled for {made_for}, and its instance is to run on {device.type}. "
            f"Compile it anew, or give it instances of the other kind.",
        )
    return of_compiled(torch, package)


def _missing(spec: ModelSpec, path: Path) -> ServeError:
    return ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': there is no file {path}.")


def _no_module(spec: ModelSpec, path: Path, found: str) -> ServeError:
    return ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': {path} is no model that PyTorch can run here: {found}. {_EXPORT}",
    )
