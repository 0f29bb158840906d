"""Infers names as DJL does: a model's from its folder or archive, and a file's prefix.

Source: spec sheet `djl`, sections 2.2 and 2.3. Pure text; looks at no file.
"""

import re
from collections.abc import Iterable

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.z", ".tar")
"""What is unpacked. A .mar belongs to TorchServe."""

_ODD = re.compile(r"[^A-Za-z0-9_]")


def archive_suffix(name: str) -> str:
    """The suffix that makes a file an archive, in lower case; empty where there is none."""
    lower = name.lower()
    return next((suffix for suffix in ARCHIVES if lower.endswith(suffix) and len(lower) > len(suffix)), "")


def stem(name: str) -> str:
    """The name without an archive's suffix."""
    suffix = archive_suffix(name)
    return name[: len(name) - len(suffix)] if suffix else name


def inferred_name(name: str) -> str:
    """The model's name: whatever is no letter, digit or underscore becomes an underscore."""
    return _ODD.sub("_", stem(name))


def inner_folder(names: Iterable[str]) -> str:
    """The one folder that all members of an archive lie in, as the rule of the nested folder sees it; else empty.

    Hidden entries at the top do not count.
    """
    tops: dict[str, bool] = {}
    for name in names:
        path = name.strip("/")
        top, slash, _ = path.partition("/")
        if top and not top.startswith("."):
            tops[top] = tops.get(top, False) or bool(slash) or name.endswith("/")
    if len(tops) != 1:
        return ""
    (top, is_folder), *_ = tops.items()
    return top if is_folder else ""


def top_names(names: Iterable[str]) -> frozenset[str]:
    """Return what lies at the top of an archive, behind the nested folder if there is one."""
    members = tuple(names)
    folder = inner_folder(members)
    prefix = f"{folder}/" if folder else ""
    rest = (name[len(prefix) :] for name in members if name.startswith(prefix))
    return frozenset(top for name in rest if (top := name.partition("/")[0]))
