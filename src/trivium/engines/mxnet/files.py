"""Finds the files of one MXNet model: a symbol file, and the parameters of the epoch that is asked for.

`<name>-symbol.json` and `<name>-0007.params`: seven epochs of training. Without a wish the last one counts, as in DJL.
"""

import re
from pathlib import Path

SYMBOL = "-symbol.json"
_EPOCH = re.compile(r"-(\d{4})\.params")


def epochs(root: Path, entry: str) -> dict[int, str]:
    """Return the parameter files of a symbol file, by their epochs. Raises OSError."""
    prefix = entry.removesuffix(SYMBOL)
    names = (each.name for each in root.iterdir() if each.name.startswith(prefix))
    found = ((name, _EPOCH.fullmatch(name.removeprefix(prefix))) for name in names)
    return {int(match[1]): name for name, match in found if match}


def params_file(root: Path, entry: str, epoch: int | None) -> str:
    """Return the name of the parameter file of an epoch, or of the last one; empty where there is none."""
    there = epochs(root, entry)
    if epoch is not None:
        return there.get(epoch, "")
    return there[max(there)] if there else ""
