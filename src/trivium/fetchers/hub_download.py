"""A program that fetches one model from a hub into the user's cache, by huggingface_hub: a process can be ended.

It is asked in one line of JSON, and answers in lines: how much has come, and in the end where the model lies, or why it
does not. When its standard input ends, it ends, too. It prints nothing that is not in these lines, no token above all.
"""

import errno
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from trivium.fetchers import hub_policy
from trivium.fetchers.hub_policy import HubFile, HubModel
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.fetching import FetchBounds

CONNECTING = 10.0
"""Seconds in which a hub must answer the first question."""

_LOOKS = 0.3
_GRACE = 3.0
_MAIN = "main"
_INDEX = "model.safetensors.index.json"


class HubWish(NamedTuple):
    """Says what one run of the program is to fetch, within which bounds on bytes."""

    model: HubModel
    with_code: bool
    bounds: FetchBounds


class HubSnapshot(NamedTuple):
    """Says where a model lies in the cache: the folder of its revision, and the files in it that were chosen."""

    folder: str
    files: tuple[str, ...]
    note: str = ""


class _Ended(BaseException):
    """Nobody waits for it any more."""


_IS_ENDED = threading.Event()


def main() -> None:
    """Answer the one question of the standard input."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        found = _fetch(HubWish(HubModel(*asked["model"]), asked["code"], _bounds(asked)), answers)
        _say(answers, folder=found.folder, files=found.files, note=found.note)
    except ServeError as error:
        _say(answers, code=error.code.value, message=error.message)
    except Exception as error:
        words = f"{HubModel(*asked['model'])} could not be fetched: {_words(error)}. Try again."
        _say(answers, code=Code.LOAD_FAILED.value, message=words)


def _bounds(asked: dict[str, Any]) -> FetchBounds:
    return FetchBounds(size=asked["size"], is_named=asked["named"])


def _end_with_input() -> None:
    """Have the threads that fetch stop, which removes what they began; what does not listen ends with all."""
    while sys.stdin.read(1):
        pass
    _IS_ENDED.set()
    time.sleep(_GRACE)
    os._exit(1)


def _say(answers: TextIO, **words: object) -> None:
    answers.write(json.dumps(words) + "\n")
    answers.flush()


def _words(error: BaseException) -> str:
    """Return the first line of what a library said, and no token that it might quote."""
    said = str(error).strip().partition("\n")[0][:200] or type(error).__name__
    token = _token()
    return said.replace(token, "***") if token else said


def _token() -> str:
    from huggingface_hub import get_token

    return get_token() or ""


def _fetch(asked: HubWish, answers: TextIO) -> HubSnapshot:
    from huggingface_hub import constants

    model, cache = asked.model, constants.HF_HUB_CACHE
    if constants.HF_HUB_OFFLINE:
        kept = _kept(asked, cache)
        if kept is None:
            raise hub_policy.offline(model, cache)
        return kept
    try:
        return _download(asked, cache, answers)
    except ServeError:
        raise
    except Exception as error:
        refusal, is_unreachable = _translated(frameless(error), model, constants.ENDPOINT, cache)
        kept = _kept(asked, cache) if is_unreachable else None
        if kept is None:
            raise ServeError(refusal.code, refusal.message) from error
        note = f"{constants.ENDPOINT} cannot be reached ({_words(error)}): {model} is taken from the cache as it is"
        return kept._replace(note=note)


def _translated(error: Exception, model: HubModel, endpoint: str, cache: str) -> tuple[ServeError, bool]:
    """Return what a library's error means, and whether it means that nobody answered."""
    from huggingface_hub import errors

    has_token = bool(_token())
    chain = list(_chain(error))
    for one in chain:
        if isinstance(one, errors.GatedRepoError):
            return hub_policy.gated(model, endpoint, has_token), False
        if isinstance(one, errors.RepositoryNotFoundError):
            return hub_policy.unknown(model, endpoint, has_token), False
        if isinstance(one, errors.RevisionNotFoundError):
            return hub_policy.no_revision(model), False
        if isinstance(one, errors.HfHubHTTPError):
            return hub_policy.answered(model, endpoint, one.response.status_code), False
        if isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT):
            return hub_policy.full_disk(model, cache), False
    for one in reversed(chain):
        if type(one).__module__.partition(".")[0].startswith(("httpx", "httpcore", "requests")):
            return hub_policy.unreachable(model, endpoint, _words(one)), True
    words = f"{model} could not be fetched: {_words(error)}. Try again."
    return ServeError(Code.LOAD_FAILED, words), False


def _chain(error: BaseException | None) -> "list[BaseException]":
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _download(asked: HubWish, cache: str, answers: TextIO) -> HubSnapshot:
    from huggingface_hub import HfApi, snapshot_download

    model, api = asked.model, HfApi(library_name="trivium")
    revision = model.revision or _MAIN
    commit = api.model_info(model.repository, revision=revision, timeout=CONNECTING).sha or revision
    chosen = hub_policy.choose(_listed(api, model, commit), model, asked.with_code)
    lacking = _lacking(model, chosen, commit, cache)
    place = next(folder for folder in (Path(cache), *Path(cache).parents) if folder.exists())
    hub_policy.check_size(
        model, sum(file.size for file in lacking), shutil.disk_usage(place).free, cache, asked.bounds
    )
    names = tuple(file.path for file in chosen)
    watch = _Watch(Path(cache), model, sum(file.size for file in lacking), answers)
    with watch:
        folder = snapshot_download(
            model.repository,
            revision=revision,
            allow_patterns=[escape(name) for name in names],
            etag_timeout=CONNECTING,
            max_workers=4,
            tqdm_class=_stoppable(),
            library_name="trivium",
        )
    return HubSnapshot(folder, names)


def _listed(api: Any, model: HubModel, commit: str) -> list[HubFile]:
    found: list[HubFile] = []
    for entry in api.list_repo_tree(model.repository, revision=commit, recursive=True):
        hub_policy.check_count(len(found), model)
        size = getattr(entry, "size", None)  # a folder has none
        if size is not None:
            found.append(HubFile(entry.path, size))
    return found


def _lacking(model: HubModel, chosen: Sequence[HubFile], commit: str, cache: str) -> list[HubFile]:
    from huggingface_hub import try_to_load_from_cache

    return [
        file
        for file in chosen
        if not isinstance(
            try_to_load_from_cache(model.repository, file.path, cache_dir=cache, revision=commit), str
        )
    ]


def _kept(asked: HubWish, cache: str) -> HubSnapshot | None:
    """Return the model as the cache has it; None where that is not all of it."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    model = asked.model
    try:
        repositories = scan_cache_dir(cache).repos
    except CacheNotFound:
        return None
    wanted = model.revision or _MAIN
    for repository in repositories:
        if repository.repo_type != "model" or repository.repo_id != model.repository:
            continue
        for revision in repository.revisions:
            if wanted not in revision.refs and revision.commit_hash != wanted:
                continue
            root = Path(revision.snapshot_path)
            files = [
                HubFile(str(file.file_path.relative_to(root)), file.size_on_disk) for file in revision.files
            ]
            return _whole(asked, root, files)
    return None


def _whole(asked: HubWish, root: Path, files: Sequence[HubFile]) -> HubSnapshot | None:
    try:
        names = tuple(file.path for file in hub_policy.choose(files, asked.model, asked.with_code))
    except ServeError as error:
        if error.code is Code.NOT_FOUND:
            return None
        raise
    if _INDEX in names:
        with suppress(OSError, ValueError, AttributeError):
            weight_map = json.loads((root / _INDEX).read_bytes()).get("weight_map", {})
            if hub_policy.absent_shards(weight_map, names):
                return None
    return HubSnapshot(str(root), names)


def _stoppable() -> Any:
    """Return a bar of the library's that shows nothing, and raises in the thread that fetches once nobody waits."""
    silent: Any = import_module("huggingface_hub.utils").tqdm

    class Bar(silent):  # type: ignore[misc]
        def __init__(self, *words: Any, **fields: Any) -> None:
            super().__init__(*words, **{**fields, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            if _IS_ENDED.is_set():
                raise _Ended
            shown: bool | None = super().update(n)
            return shown

    return Bar


class _Watch:
    """Says how much has come, by the files that grow in the cache: that holds for every way of fetching."""

    def __init__(self, cache: Path, model: HubModel, total: int, answers: TextIO) -> None:
        self._blobs = cache / f"models--{model.repository.replace('/', '--')}" / "blobs"
        self._total, self._answers = total, answers
        self._before = self._size()
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        _say(self._answers, done=0, total=self._total)
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _run(self) -> None:
        told = 0
        while not self._is_done.wait(_LOOKS):
            done = min(max(self._size() - self._before, 0), self._total)
            if done != told:
                told = done
                _say(self._answers, done=done, total=self._total)

    def _size(self) -> int:
        size = 0
        with suppress(OSError):
            for entry in os.scandir(self._blobs):
                with suppress(OSError):
                    size += entry.stat().st_size
        return size


if __name__ == "__main__":
    main()
