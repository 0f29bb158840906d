"""Recognises a TorchServe model on a disk: an archive, a folder with MAR-INF, or a model store of those.

Looks at names only, but for unpacking an archive. Source: spec sheet `torchserve`, sections 1 and 3.1.
"""

from pathlib import Path

from trivium.formats import archive
from trivium.servers.torchserve.words.manifest import PLACE
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity

_MAR = ".mar"
_OTHERS = (".tar.gz", ".tgz", ".tar", ".zip", ".model")
"""Suffixes of archives that are TorchServe's only if they hold a manifest."""


def is_model(path: Path) -> bool:
    """An archive, or a folder with a manifest. Raises OSError."""
    if path.is_dir():
        return (path / PLACE).is_file()
    name = path.name.lower()
    if name.endswith(_MAR):
        return path.is_file()
    return name.endswith(_OTHERS) and any(map(_is_manifest, archive.names(path)))


def models(path: Path) -> list[Path]:
    """Return the path itself, or the models of a store: a folder in which at least one archive or folder is one. Empty
    where it is neither. Raises OSError.
    """
    if is_model(path):
        return [path]
    if not path.is_dir():
        return []
    return [entry for entry in _shown(path) if _may_be(entry) and is_model(entry)]


def strays(path: Path) -> list[Path]:
    """Return what a store holds besides models, hidden entries aside: it is left alone, as in the original. Raises
    OSError.
    """
    if is_model(path) or not path.is_dir():
        return []
    return [entry for entry in _shown(path) if not (_may_be(entry) and is_model(entry))]


def _shown(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))


def _may_be(entry: Path) -> bool:
    return entry.is_dir() or entry.name.lower().endswith((_MAR, *_OTHERS))


def open_model(path: Path, scratch: Path | None) -> Path:
    """The folder of a model's files, unpacked if need be. Raises ConfigError and OSError."""
    if path.is_dir():
        return path
    if scratch is None:
        found, hint = "an archive, and no folder to unpack it in", "Serve the unpacked folder."
        raise ConfigError((Finding(Severity.ERROR, str(path), None, "", found, "a scratch folder", hint),))
    folder = archive.unpack(path, scratch)
    if (folder / PLACE).is_file():
        return folder
    inner = [entry for entry in folder.iterdir() if entry.is_dir()]
    # A tar.gz has its files below a folder of the model's name.
    return inner[0] if len(inner) == 1 and (inner[0] / PLACE).is_file() else folder


def name_of(path: Path) -> str:
    """A model's name where its manifest gives none: the file's, without its suffix, signs as underscores."""
    name = path.name
    for suffix in (_MAR, *_OTHERS):
        if path.is_file() and name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return "".join(sign if sign.isalnum() or sign == "_" else "_" for sign in name) or "model"


def _is_manifest(name: str) -> bool:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return parts in (PLACE.split("/"), [*parts[:1], *PLACE.split("/")])
