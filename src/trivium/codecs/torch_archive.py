"""Reads the extra files of an archive that PyTorch wrote: texts that lie in it next to the model, by name.

`torch.jit.save` and `torch.export.save` put them there (`_extra_files`, `extra_files`): class names, sizes of pictures
and the like. Nothing of the archive is run, and no more than `MOST_BYTES` are read.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path

FOLDER = "extra/"
"""Where they lie, below the one folder that all of an archive is in."""

MOST_BYTES = 16 * 2**20
"""Of the extra files of one model, all together, as they are once unpacked."""


def names_of(text: str) -> tuple[str, ...]:
    """Return the names that a text lists with commas between them, each once, in its order."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def extra_texts(path: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the extra files of these names as text; one that is not there is empty, as PyTorch itself has it.
    ValueError for one that is no text in UTF-8, or where they are too large; OSError, and whatever `zipfile` and its
    decompressors raise for an archive that is broken or encrypted.
    """
    texts, left = dict.fromkeys(names, ""), MOST_BYTES
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = _name(member)
            if name not in texts:
                continue
            with archive.open(member) as file:
                data = file.read(left + 1)
            left -= len(data)
            if left < 0:
                raise ValueError(f"the extra files have more than {MOST_BYTES} bytes; name fewer of them")
            try:
                texts[name] = data.decode()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"the extra file {name} is no text in UTF-8 (byte {error.start}); name only texts"
                ) from error
    return texts


def _name(member: zipfile.ZipInfo) -> str:
    """Empty for what is no extra file."""
    within = member.filename.partition("/")[2]
    return within.removeprefix(FOLDER) if within.startswith(FOLDER) else ""
