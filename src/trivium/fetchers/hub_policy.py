"""Decides how models of a hub are named, which of a model's files are fetched, and what does not fit.

Pure: names and sizes in, a choice or a refusal out. Weights are safetensors, or one file in GGUF; beside them come
JSON, chat templates and a tokenizer's files, and Python files where code is trusted. Nothing that is unpickled is
fetched.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds
from trivium.types.registered_names import unfit_name
from trivium.types.spoken import spoken

SCHEME = "hf"
FORM = "ORG/MODEL[:FILE][@REVISION]"
MOST_FILES = 10_000
"""Files that a repository is listed to: one with more is no model's."""

_PART = r"\w(?:[\w.-]{0,94}\w)?"
_NAME = re.compile(rf"({_PART}/{_PART})(?::([\w.+-]{{1,200}}))?(?:@([\w][\w./+-]{{0,199}}))?", re.ASCII)
_LIKE_A_FILE = re.compile(
    r"\.(?:gguf|onnx|pt|pth|bin|mar|zip|tar|gz|tgz|z|properties|safetensors|json|ya?ml|py|pbtxt)$",
    re.IGNORECASE,
)
_INDEX = "model.safetensors.index.json"
_WHOLE = "model.safetensors"
_WEIGHTS, _GGUF, _PROJECTOR = ".safetensors", ".gguf", "mmproj"
_USUAL_QUANTISATION = "Q4_K_M"
_PIECE = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_BESIDE = (".json", ".jinja")
_TOKENIZERS = frozenset({"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"})
_TEXTS = re.compile(
    r"(?:vocab|merges|added_tokens|special_tokens|bpe\.codes|tokenizer)[\w.-]*\.txt", re.IGNORECASE
)
_OF_PICKLES = re.compile(r"\.(?:bin|pt|pth|h5|msgpack)\.index\.json$", re.IGNORECASE)
_PICKLED = re.compile(r"\.(?:bin|pt|pth|ckpt|pkl|h5|msgpack)$", re.IGNORECASE)
_NAMED = 8
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class HubFile(NamedTuple):
    """A file of a repository, with its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class HubModel:
    """Names a model of a hub: its repository, like `ORG/MODEL`; a revision, empty for the newest; and which of several
    GGUF files is meant, by a part of its name, empty where that is left open.
    """

    repository: str
    revision: str = ""
    file: str = ""

    @property
    def title(self) -> str:
        """Return the name without the owner's."""
        return self.repository.partition("/")[2]

    def __str__(self) -> str:
        file, revision = self.file and f":{self.file}", self.revision and f"@{self.revision}"
        return f"{self.repository}{file}{revision}"


def read_name(text: str) -> HubModel | None:
    """Return the model that a name is of; None for what is no such name, by the hub's own rules."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    repository, file, revision = found[1], found[2] or "", found[3] or ""
    if "--" in repository or ".." in repository or repository.endswith(".git") or len(repository) > 96:
        return None
    if ".." in revision or "//" in revision or revision.endswith(("/", ".", ".lock")) or "/." in revision:
        return None
    return HubModel(repository, revision, file)


def looks_like_a_name(text: str) -> bool:
    """Tell whether somebody who wrote this where a path may stand, and where there is none, means a model of a hub."""
    found = read_name(text)
    return found is not None and not _LIKE_A_FILE.search(found.repository)


def hub_uri(name: str, revision: str = "") -> str:
    """Return the URI of a model that a name means, with or without the scheme, in this revision where it names none;
    empty for what is no such name.
    """
    found = read_name(name.removeprefix(f"{SCHEME}://"))
    if found is None:
        return ""
    found = read_name(str(replace(found, revision=found.revision or revision)))
    return f"{SCHEME}://{found}" if found else ""


def read_uri(uri: str) -> HubModel:
    """Return the model of a URI. Raises INVALID."""
    scheme, _, name = uri.partition("://")
    found = read_name(name)
    if scheme.lower() != SCHEME or found is None:
        raise ServeError(
            Code.INVALID,
            f"{uri[:300]!r} names no model of the Hugging Face hub. Expected is {SCHEME}://{FORM}: letters, digits, "
            "'-', '_' and '.', and a revision without '..'.",
        )
    return found


def choose(files: Sequence[HubFile], model: HubModel, with_code: bool) -> list[HubFile]:
    """Return what of a repository is fetched. Raises NOT_FOUND where no weights are there that can be, INVALID where
    several files are and it is open which is meant.
    """
    safe = [file for file in files if _is_safe(file.path)]
    weights = [] if model.file else _safetensors(safe)
    weights = weights or _quantised(safe, model)
    if not weights:
        raise _weightless(files, model)
    beside = [file for file in safe if _is_beside(file.path) or (with_code and file.path.endswith(".py"))]
    return [*weights, *beside]


def _is_safe(path: str) -> bool:
    return "\\" not in path and not any(map(unfit_name, path.split("/")))


def _safetensors(files: Sequence[HubFile]) -> list[HubFile]:
    """Return the weights at the top; of those that are there twice, in two layouts, the layout of transformers."""
    found = [file for file in files if file.path.endswith(_WEIGHTS) and "/" not in file.path]
    names = {file.path for file in files}
    if _WHOLE in names or _INDEX in names:
        found = [file for file in found if file.path.startswith("model")]
    return found


def _quantised(files: Sequence[HubFile], model: HubModel) -> list[HubFile]:
    """Return the one model in GGUF that is meant, which may lie in pieces."""
    found = [
        file
        for file in files
        if file.path.lower().endswith(_GGUF)
        and "/" not in file.path
        and not file.path.lower().startswith(_PROJECTOR)
    ]
    wanted = model.file or (_USUAL_QUANTISATION if len(_stems(found)) > 1 else "")
    meant = [file for file in found if wanted.lower() in file.path.lower()]
    exact = [file for file in meant if file.path.lower() in (wanted.lower(), f"{wanted.lower()}{_GGUF}")]
    meant = exact or meant
    if found and len(_stems(meant)) != 1:
        names = sorted(file.path for file in found)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        how = (
            f"'{wanted}' is in the name of {len(_stems(meant)) or 'none'} of them"
            if model.file
            else "none is named"
        )
        raise ServeError(
            Code.INVALID,
            f"{model.repository} has {len(names)} models in GGUF, and {how}: {', '.join(names[:_NAMED])}{more}. Name "
            f"one by a part of its name that no other has, like {model.repository}:{_part(names[0])}.",
        )
    return meant


def _stems(files: Sequence[HubFile]) -> set[str]:
    return {_PIECE.sub("", file.path) for file in files}


def _part(name: str) -> str:
    return name.removesuffix(_GGUF).rpartition(".")[2].rpartition("-")[2] or name


def _is_beside(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if "/" in folder or name.startswith("."):
        return False
    if name.endswith(_BESIDE):
        return not _OF_PICKLES.search(name)
    return not folder and (name in _TOKENIZERS or bool(_TEXTS.fullmatch(name)))


def _weightless(files: Sequence[HubFile], model: HubModel) -> ServeError:
    pickled = sorted(file.path for file in files if _PICKLED.search(file.path))
    found = f"; its weights are pickled ({', '.join(pickled[:3])}), which is never fetched" if pickled else ""
    return ServeError(
        Code.NOT_FOUND,
        f"{model} has no weights that are fetched, safetensors or GGUF{found}. Name a repository that has them: many "
        "models have a twin in safetensors.",
    )


def in_bytes(size: float) -> str:
    """Return a number of bytes as one reads it."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} {_UNITS[-1]}"


def check_count(count: int, model: HubModel) -> None:
    """Refuse a repository that lists more files than a model has, before all of them are listed."""
    if count > MOST_FILES:
        raise ServeError(
            Code.TOO_LARGE,
            f"{model} lists more than {MOST_FILES} files, which is no model's repository. Nothing was fetched. Name "
            "another one.",
        )


def check_size(model: HubModel, lacking: int, free: int, folder: str, bounds: FetchBounds) -> None:
    """Refuse what does not fit, before any of it is fetched: `lacking` bytes, where so many are `free`. The bound on
    bytes is for what others may ask for: who names a model in the server's own command means all of it.
    """
    if lacking > free:
        raise ServeError(
            Code.TOO_LARGE,
            f"{model}: {in_bytes(lacking)} are to be fetched, and {in_bytes(free)} are free in {folder}. Nothing was "
            "fetched. Make room (`trivium list` says what is there, `trivium rm NAME` removes it), or set HF_HOME to "
            "another disk.",
        )
    if not bounds.is_named and lacking > bounds.size:
        raise ServeError(
            Code.TOO_LARGE,
            spoken(
                f"{model}: {in_bytes(lacking)} are to be fetched, and --fetch-bytes allows {in_bytes(bounds.size)}. "
                "Nothing was fetched. Raise it, or fetch the model first: trivium pull "
            )
            + f"{model}.",
        )


def absent_shards(weight_map: Mapping[str, object], names: Collection[str]) -> list[str]:
    """Return the files of an index of weights that are not there."""
    return sorted({str(name) for name in weight_map.values()} - set(names))


def full_disk(model: HubModel, folder: str) -> ServeError:
    """Say that the disk became full on the way."""
    return ServeError(
        Code.LOAD_FAILED,
        f"{model} could not be fetched: the disk of {folder} is full. Files that were whole stay. Make room (`trivium "
        "rm NAME` removes a model), or set HF_HOME to another disk, and try again.",
    )


def gated(model: HubModel, endpoint: str, has_token: bool) -> ServeError:
    """Say that the owner of a model gives access to those alone who ask for it."""
    why = "the token that is set has no access to it" if has_token else "no token is set"
    how = (
        "Ask for access there with the token's account, or set HF_TOKEN to another token."
        if has_token
        else "Ask for access there, make a token, and set HF_TOKEN to it."
    )
    return ServeError(
        Code.FORBIDDEN,
        f"{model} is gated at {endpoint}/{model.repository}: its owner lets in who asks, and {why}. {how}",
    )


def unknown(model: HubModel, endpoint: str, has_token: bool) -> ServeError:
    """Say that there is no such repository, or none that who asks may see: a hub does not tell these apart."""
    how = (
        "or use a token that may read it (HF_TOKEN)"
        if has_token
        else "or set HF_TOKEN to a token that may read it, where it is private"
    )
    return ServeError(
        Code.NOT_FOUND,
        f"{endpoint} has no model {model.repository}, or does not show it. Correct the name, {how}.",
    )


def no_revision(model: HubModel) -> ServeError:
    """Say that there is no such branch, tag or commit."""
    return ServeError(
        Code.NOT_FOUND,
        f"{model.repository} has no revision {model.revision or 'main'!r}. Name a branch, a tag or a commit behind the "
        "@, or leave it out for the newest.",
    )


def unreachable(model: HubModel, endpoint: str, why: str) -> ServeError:
    """Say that nobody answered, and that the cache does not have the model either."""
    return ServeError(
        Code.LOAD_FAILED,
        f"{model} could not be fetched: {endpoint} cannot be reached ({why}), and the cache does not have the model. "
        f"See to the network (HTTPS_PROXY, HF_ENDPOINT); or, where there is none, run `trivium pull {model}` on a "
        "machine that has one, and copy its cache (HF_HOME), or name the path of a folder.",
    )


def offline(model: HubModel, folder: str) -> ServeError:
    """Say that the hub is not to be asked, and that the cache does not have the model."""
    return ServeError(
        Code.LOAD_FAILED,
        f"{model} is not in the cache {folder}, or not whole, and HF_HUB_OFFLINE says that the hub is not asked. Run "
        f"`trivium pull {model}` without it, or name the path of a folder.",
    )


def answered(model: HubModel, endpoint: str, status: int) -> ServeError:
    """Say that the hub answered, and that it was no model."""
    how = (
        "Wait a while: it has been asked too often." if status == 429 else "Try again, or see to that server."
    )
    if status in (401, 403):
        how = "Set HF_TOKEN to a token that may read it."
    return ServeError(
        Code.LOAD_FAILED, f"{model} could not be fetched: {endpoint} answered with status {status}. {how}"
    )
