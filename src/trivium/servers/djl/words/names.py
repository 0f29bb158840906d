"""Names of DJL that no model of ours is configured by, and the nearest known name to one that is misspelt.

Source: spec sheet `djl`, sections 1.3, 1.4, 10 and 11.1. Such a name is a handler's own business and is never taken
for a slip of the pen. Pure.
"""

from collections.abc import Iterable, Sequence

from trivium.codecs.near_names import synonym
from trivium.servers.djl.words.language_model_keys import LMI_OPTIONS

OPTION = "option."

TRANSLATOR_ARGUMENTS = frozenset(
    [
        "addPrefixSpace",
        "addSpecialTokens",
        "aggregation_strategy",
        "applyRatio",
        "applySoftmax",
        "centerCrop",
        "centerFit",
        "dense",
        "denseActivation",
        "detail",
        "doLowerCase",
        "flag",
        "height",
        "includeTokenTypes",
        "int32",
        "layerNorm",
        "maskToken",
        "maxLength",
        "modelMaxLength",
        "model_name",
        "artifact_id",
        "nmsThreshold",
        "normalize",
        "optApplyRatio",
        "outputType",
        "pad",
        "padding",
        "padToMultipleOf",
        "pooling",
        "problem_type",
        "range",
        "reranking",
        "resize",
        "resizeShort",
        "sigmoid",
        "softmax",
        "sparse",
        "stride",
        "stripAccents",
        "synset",
        "synsetFileName",
        "synsetUrl",
        "threshold",
        "toTensor",
        "tokenizer",
        "tokenizerPath",
        "topK",
        "truncation",
        "width",
        "withOverflowingTokens",
    ]
)
"""Arguments of translators, as `translatorFactory` names them."""

SHEET = frozenset(key for key in LMI_OPTIONS if key.startswith(OPTION)) | TRANSLATOR_ARGUMENTS
"""All of them, as they stand in a file."""

_LONG = 9
_SHORT, _SHORTEST = 6, 4
_LONGEST = 64


def nearest(key: str, known: Iterable[str], settled: Iterable[str] = SHEET) -> str:
    """Return the known name that this key is a slip of, empty where it is one of them, one that is `settled`, or its
    writer's own.

    Capitals, underscores and a missing or needless `option.` do not count; otherwise a name of nine letters may
    have two slips, a shorter one a single one. One of less than six has no letter changed, since that is another word,
    and one of less than four has its own `option.`.
    """
    names = tuple(known)
    if key in names or key in settled or len(key) > _LONGEST:
        return ""
    if same := synonym(key, names):
        return same
    bare = _bare(key)
    letters = frozenset(bare)
    best, distance = "", 3
    for name in names:
        other = _bare(name)
        if len(other) < _SHORTEST and not _alike(key, name):
            continue
        most = 1 if len(other) < _LONG else 2
        if abs(len(bare) - len(other)) > most:
            continue
        if len(letters.symmetric_difference(other)) > 2 * most:
            continue
        found = _slips(bare, other)
        if len(other) < _SHORT and len(bare) == len(other) and sorted(bare) != sorted(other):
            continue
        if found <= most and (found, not _alike(key, name)) < (distance, not _alike(key, best)):
            best, distance = name, found
    return best


def _alike(key: str, name: str) -> bool:
    return key.lower().startswith(OPTION) == name.startswith(OPTION)


def _bare(key: str) -> str:
    return key.lower().removeprefix(OPTION).replace("_", "").replace("-", "")


def _slips(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the letters that were left out, put in, changed, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first):
        following = [i + 1]
        for j, b in enumerate(second):
            cost = min(row[j + 1] + 1, following[j] + 1, row[j] + (a != b))
            if before and j and a == second[j - 1] and first[i - 1] == b:
                cost = min(cost, before[j - 1] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]
