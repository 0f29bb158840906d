"""Finds what somebody wrote behind a key in a line of a file, in the forms of all files that configure models."""

import re

_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^']*'|\[[^\[\]{}]*\]|[^\s,;{}\[\]]+)"""
_STEP = re.compile(r"\[[^\]]*\]$")
LONGEST_LINE = 10_000


def written_value(line: str, key: str, is_properties: bool) -> str | None:
    """Return the value behind the last part of a key; None where the line does not tell it: it has it twice, or not
    whole.
    """
    if len(line) > LONGEST_LINE:
        return None
    if is_properties:
        name, mark, value = line.strip().partition("=")
        whole = not value.rstrip().endswith("\\")
        return value.strip() if mark and whole and name.strip() == key else None
    last = _STEP.sub("", key.rpartition(".")[2])
    if not last:
        return None
    found = re.findall(rf"""(?<![\w."'])["']?{re.escape(last)}["']?\s*[:=]\s*{_VALUE}""", line)
    if len(found) != 1 or found[0][:1] in ("|", ">", "&", "*", "!"):
        return None
    value = str(found[0])
    return value[1:-1] if value[:1] in "\"'" and value[:1] == value[-1:] and len(value) > 1 else value
