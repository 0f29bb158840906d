"""The models in the cache of huggingface_hub: the user's own, which other programs share."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivium.codecs.near_names import near
from trivium.fetchers.hub import check_installed
from trivium.fetchers.hub_policy import HubModel
from trivium.types.errors import Code, ServeError


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model of the cache, with the bytes that it takes up on the disk."""

    name: str
    size: int
    revisions: tuple[str, ...]
    """Names of what is there of it: branches and tags, or the beginning of a commit that has none."""

    used_at: float
    """When one of its files was last read, in seconds since the epoch, as far as the file system keeps that."""


def cache_folder() -> Path:
    """Return where the library keeps what it fetches."""
    check_installed()
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def cached_models() -> list[CachedModel]:
    """List the models of the cache, by name."""
    return sorted(
        (
            CachedModel(
                one.repo_id,
                one.size_on_disk,
                tuple(sorted(name for revision in one.revisions for name in _names(revision))),
                one.last_accessed,
            )
            for one in _repositories()
        ),
        key=lambda model: model.name,
    )


def remove(model: HubModel) -> int:
    """Remove a model from the cache, or one revision of it, and return the bytes that this freed. What several
    revisions share goes with the last of them. Raises NOT_FOUND.
    """
    found = list(_repositories())
    repository = next((one for one in found if one.repo_id == model.repository), None)
    if repository is None:
        meant = near(model.repository, [one.repo_id for one in found], 0.75)
        hint = f"Did you mean {meant}?" if meant else "`trivium list` says what is there."
        raise ServeError(Code.NOT_FOUND, f"{cache_folder()} has no model {model.repository}. {hint}")
    commits = {
        one.commit_hash
        for one in repository.revisions
        if not model.revision or model.revision in one.refs or one.commit_hash.startswith(model.revision)
    }
    if not commits and model.revision:
        names = ", ".join(sorted(name for one in repository.revisions for name in _names(one)))
        raise ServeError(
            Code.NOT_FOUND,
            f"The cache has no revision {model.revision!r} of {model.repository}; it has {names}.",
        )
    return _deleted(repository, commits)


def _deleted(repository: Any, commits: set[str]) -> int:
    """Delete revisions, and with the last of them what a fetch that was cut off has left."""
    from huggingface_hub import scan_cache_dir

    strategy = scan_cache_dir(cache_folder()).delete_revisions(*commits)
    strategy.execute()
    if len(commits) == len(repository.revisions):
        shutil.rmtree(repository.repo_path, ignore_errors=True)
    return int(strategy.expected_freed_size)


def _repositories() -> Iterable[Any]:
    check_installed()
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        return [one for one in scan_cache_dir(cache_folder()).repos if one.repo_type == "model"]
    except CacheNotFound:
        return []


def _names(revision: Any) -> list[str]:
    return sorted(revision.refs) or [revision.commit_hash[:8]]
