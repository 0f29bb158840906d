"""Says where the cache of the user who runs this lies, in which what can be made again is kept."""

import os
from collections.abc import Mapping
from pathlib import Path

from trivium_worker.wire.owned import judge_owner

__all__ = ["judge_owner", "user_cache"]


def user_cache(variables: Mapping[str, str], name: str) -> Path:
    """Return a folder of ours in the user's cache: below XDG_CACHE_HOME, else below the home. Without a home nobody can
    make it.
    """
    base = variables.get("XDG_CACHE_HOME", "")
    home = Path(base) if base.startswith("/") else Path(variables.get("HOME") or os.devnull) / ".cache"
    return home / "trivium" / name
