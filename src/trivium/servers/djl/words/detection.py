"""Recognises the engine of a folder by the names in it, where serving.properties does not say.

Source: spec sheet `djl`, section 2.5: the first rule that hits wins. Ours differs in one place: Python code goes
before a TorchScript file, since who adds a model.py wants it to run. Pure; judges names, opens nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trivium.servers.djl.words.engines import (
    ENGINES,
    ESTIMATORS,
    MXNET,
    PYTHON,
    SKLEARN_HANDLER,
    SYMBOL,
    DjlEngine,
)

FOREIGN_MARKS = ("config.pbtxt", "MAR-INF")
"""What makes a folder another format's, whatever else lies in it."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The engine of a folder, with the file that it opens; `rule` says by what it was recognised.

    `built_in` is the handler of DJL's own that the model needs, empty where it needs none.
    """

    engine: DjlEngine
    entry: str
    rule: str
    built_in: str = ""

    @property
    def is_served(self) -> bool:
        """Does one of our engines run it?"""
        return bool(self.engine.engine) and self.built_in in ("", SKLEARN_HANDLER)


def detect(names: Collection[str], prefixes: Sequence[str], has_model_id: bool = False) -> Detected | None:
    """Return the engine of a folder with these names, or None.

    `prefixes` are the names, besides `model`, that its files may begin with.
    """
    for engine in ENGINES:
        if entry := find_entry(names, prefixes, engine):
            return Detected(engine, entry, f"the file {entry}")
    for engine in ENGINES:
        for suffix, handler in engine.built_in.items():
            if entry := find_file(names, prefixes, (suffix,)):
                return Detected(engine, entry, f"the file {entry}", handler)
    for engine in ENGINES:
        if entry := find_named(names, engine):
            return Detected(engine, entry, f"the file {entry}")
    if has_model_id or "config.json" in names:
        rule = "option.model_id" if has_model_id else "the file config.json"
        return Detected(PYTHON, "", rule, "djl_python.huggingface")
    for prefix in (*prefixes, "model"):
        for name in sorted(names):
            middle = name.removeprefix(f"{prefix}-").removesuffix(".params")
            if len(middle) == 4 and middle.isdecimal() and name == f"{prefix}-{middle}.params":
                return Detected(MXNET, name, f"the file {name}")
    return None


def find_estimator(names: Collection[str], prefixes: Sequence[str]) -> str:
    """The file that DJL serves by its handler for scikit-learn, where no code of the folder's does; else empty."""
    return find_file(names, prefixes, ESTIMATORS)


def find_entry(names: Collection[str], prefixes: Sequence[str], engine: DjlEngine) -> str:
    """The first file of an engine that is named after the folder or `model`; else empty."""
    suffixes = [
        (suffix, [name for name in names if _is_whole(names, name, engine)]) for suffix in engine.suffixes
    ]
    return next((entry for suffix, whole in suffixes if (entry := find_file(whole, prefixes, (suffix,)))), "")


def find_named(names: Collection[str], engine: DjlEngine) -> str:
    """The first file that is an engine's by its whole name; else empty."""
    return next((name for name in engine.files if name in names and _is_whole(names, name, engine)), "")


def _is_whole(names: Collection[str], name: str, engine: DjlEngine) -> bool:
    """Is the file there that tells this one from others with such a name, if it needs one?"""
    stem, dot, suffix = name.rpartition(".")
    needed = engine.beside.get(dot + suffix)
    return needed is None or stem + needed in names


def find_file(names: Collection[str], prefixes: Sequence[str], suffixes: Sequence[str]) -> str:
    """The first of `<prefix><suffix>` and `model<suffix>` that is there, or the only file of a suffix that only one
    library gives; else empty.
    """
    for suffix in suffixes:
        for prefix in (*prefixes, "model"):
            if prefix + suffix in names:
                return prefix + suffix
        if suffix == SYMBOL:
            (found, *others) = [name for name in sorted(names) if name.endswith(suffix)] or [""]
            if not others:
                return found
    return ""
