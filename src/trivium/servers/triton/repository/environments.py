"""The interpreter that a Python model asks for: an environment's folder, a packed one, or its activating script.

Sheet "triton", section 8.8. A packed environment is unpacked once, into the server's scratch folder: it is run, so it
keeps its links and its rights, and is trusted as far as the model's own code. Must not know how a worker starts.
"""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from trivium.files import open_file
from trivium.servers.triton.repository.folder import TritonModelFolder
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.errors import said_by
from trivium.types.findings import Finding

ENVIRONMENT = "EXECUTION_ENV_PATH"
MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY"
MOST_BYTES, MOST_MEMBERS = 32 * 2**30, 10**6
"""Of a packed environment, unpacked: beyond what the largest ones have, and an end to what would fill the disk."""

_EXPECTED = "the absolute path of an environment: its folder, a tar archive of it, or its script bin/activate"


def interpreter(text: ConfigText, folder: TritonModelFolder, scratch: Path | None) -> str | Finding:
    """Return the interpreter of the configured environment: empty if none is named, or what is wrong. A packed one is
    unpacked below `scratch`; blocking.
    """
    if ENVIRONMENT not in text.config.parameters:
        return ""
    named = text.config.parameters[ENVIRONMENT].string_value
    path = Path(named.replace(MODEL_FOLDER, str(folder.path.absolute())))
    key = key_of(text, ENVIRONMENT)
    if not named or not path.is_absolute():
        hint = f"Begin it with / or with {MODEL_FOLDER}/."
        return text.fault(key, f"{named or 'an empty path'}, which is no absolute path", _EXPECTED, hint)
    if not path.exists():
        return text.fault(key, f"{path}, which is not there", _EXPECTED, "Correct the path, or remove it.")
    place = _folder_of(path, scratch)
    if isinstance(place, str):
        return text.fault(key, f"{path}, {place}", _EXPECTED, "Pack it anew with conda-pack, or unpack it.")
    for python in (place / "bin" / "python", place / "bin" / "python3"):
        if python.is_file() and os.access(python, os.X_OK):
            return str(python)
    found = f"{path}, which has no bin/python that may be run"
    return text.fault(key, found, _EXPECTED, "Name the folder of an environment.")


def key_of(text: ConfigText, parameter: str) -> str:
    """Return where the value of a parameter stands."""
    for block in text.blocks("ModelConfig.parameters"):
        if text.entries[f"{block}.key"].value == parameter:
            return f"{block}.value.string_value"
    return "parameters"


def _folder_of(path: Path, scratch: Path | None) -> Path | str:
    """The environment's folder, or what is wrong with what is there."""
    if path.is_dir():
        return path
    try:
        open_file(path).close()  # a named pipe would be waited for
        if not tarfile.is_tarfile(path):
            return (
                path.parent.parent
                if path.parent.name == "bin"
                else "which is neither archive nor bin/activate"
            )
        if scratch is None:
            return "which is an archive, and there is no scratch folder to unpack it in"
        return _unpacked(path, scratch)
    except (OSError, EOFError, tarfile.TarError) as error:
        return f"which cannot be unpacked: {said_by(error)}"


def _unpacked(archive: Path, scratch: Path) -> Path:
    about = archive.stat()
    told = f"{archive.resolve()}\0{about.st_size}\0{about.st_mtime_ns}"
    target = scratch / f"environment-{hashlib.sha256(os.fsencode(told)).hexdigest()[:32]}"
    if target.is_dir():
        return target
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="environment.", dir=scratch))
    try:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter=_bounded())
        folder.rename(target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if not target.is_dir():  # unless another thread was faster
            raise
    return target


def _bounded() -> Callable[[tarfile.TarInfo, str], tarfile.TarInfo | None]:
    """Lets through what does not lead out of the folder, as long as it is not too much. Raises OSError."""
    size = count = 0

    def admit(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        nonlocal size, count
        size, count = size + member.size, count + 1
        if size > MOST_BYTES or count > MOST_MEMBERS:
            raise OSError(f"it holds more than {MOST_BYTES} bytes or {MOST_MEMBERS} files")
        return tarfile.data_filter(member, folder)

    return admit
