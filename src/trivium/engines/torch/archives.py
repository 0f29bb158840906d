"""Tells the kind of model file that an archive is, by what it holds, and whether reading it would run code.

PyTorch unpickles parts of the archives of torch.export, and falls back on doing so without bounds. What would lead it
there is looked for beforehand and refused: unknown members, pickled weights, example inputs that are not just tensors.
"""

import io
import json
import re
import zipfile
from enum import Enum
from pathlib import Path
from typing import Any


class ArchiveKind(Enum):
    """Names what wrote the file."""

    SCRIPT = "TorchScript"
    EXPORTED = "a program of torch.export"
    COMPILED = "a package of AOTInductor"


_CONFIGS = ("_weights_config.json", "_constants_config.json")
_EXAMPLES = "data/sample_inputs/"
_KNOWN = re.compile(
    r"data/weights/([^/]+_weights_config\.json|weight_\d+)|data/constants/([^/]+_constants_config\.json|tensor_\d+)"
    r"|data/sample_inputs/[^/]+\.pt|models/model\.json|archive_format|archive_version|byteorder|version|extra/.+"
    r"|\.data/(version|serialization_id)"
)
"""What an exported program may hold; `model` is the name under which it is written and asked for."""
_PLAIN = re.compile(r"(weight|tensor)_\d+")


def names_in(archive: zipfile.ZipFile) -> frozenset[str]:
    """The members, without the folder that all of them are in."""
    return frozenset(name.partition("/")[2] for name in archive.namelist())


def kind_of(names: frozenset[str]) -> ArchiveKind | None:
    """None for what is none of them."""
    if "constants.pkl" in names:
        return ArchiveKind.SCRIPT
    if any(name.startswith("data/aotinductor/") for name in names):
        return ArchiveKind.COMPILED
    if "models/model.json" in names:
        return ArchiveKind.EXPORTED
    return None


def unsafe(torch: Any, path: Path) -> str:
    """The first member of an exported program that is not plain data; empty if there is none. Raises what a damaged
    archive raises.
    """
    with zipfile.ZipFile(path) as archive:
        listed = archive.namelist()
        strange = sorted(name for name in names_in(archive) if not _KNOWN.fullmatch(name))
        if (
            strange
            or len(set(listed)) != len(listed)
            or len({name.partition("/")[0] for name in listed}) != 1
        ):
            return strange[0] if strange else "a member that is there twice"
        for info in archive.infolist():
            if (
                info.compress_type != zipfile.ZIP_STORED
            ):  # PyTorch packs nothing, and this may unpack to anything
                return info.filename
        for name in listed:
            if name.endswith(_CONFIGS):
                for entry, told in json.loads(archive.read(name)).get("config", {}).items():
                    if told.get("use_pickle") is not False or not _PLAIN.fullmatch(
                        str(told.get("path_name"))
                    ):
                        return str(entry)
            elif name.partition("/")[2].startswith(_EXAMPLES) and not _is_plain(torch, archive.read(name)):
                return name
    return ""


def _is_plain(torch: Any, data: bytes) -> bool:
    """Are example inputs tensors, and containers of them? PyTorch reads them in the same way first."""
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception:
        return False
    return True
