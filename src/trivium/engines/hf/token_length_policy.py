"""Decides from a `tokenizer.json` how much text a token can stand for, and whether tokenizing may be dear.

What is not known here is taken for the worst: a tokenizer of which nothing can be said is asked, and its texts are
tokenized where that can be ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trivium.codecs.byte_letters import BYTE_LETTERS
from trivium.codecs.text_growth_policy import growth

MOST_SHRINKING = 4
"""Canonical composition (NFC) makes a text at most so many times shorter, in bytes."""

MOST_GROWTH = 8
MOST_PARTS = 32
_BYTES = range(256)
_LONGER = frozenset({"Prepend", "ByteLevel"})
_CUTTING = frozenset({"ByteLevel", "Metaspace", "Digits"})  # "UnicodeScripts" loses blanks at the beginning


@dataclass(frozen=True, slots=True)
class TokenLength:
    """`most_bytes`: of text that one token stands for; None where a token may stand for a text of any length, or none
    for some. `may_be_dear`: may a short text take long? Nobody can guess what a regular expression costs, or a text
    that is made many times longer.
    """

    most_bytes: int | None
    may_be_dear: bool


UNKNOWN = TokenLength(None, may_be_dear=True)


def token_length(document: Mapping[str, object]) -> TokenLength:
    """Return what a tokenizer's document says."""
    normalizers = list(_parts(document.get("normalizer"), "normalizers"))
    cutters = list(_parts(document.get("pre_tokenizer"), "pretokenizers"))
    is_dear = (
        any(map(_has_pattern, (*normalizers, *cutters)))
        or growth(document.get("normalizer")) > MOST_GROWTH
        or len(normalizers) + len(cutters) > MOST_PARTS
    )
    shrinking = max(map(_shrinking, normalizers), default=1)
    added = _listed(document.get("added_tokens"))
    kinds = [part.get("type") for part in (*normalizers, *cutters)]
    keeps = all(map(_keeps_text, cutters)) and not any(map(_strips, added)) and _keeps_letters(kinds)
    grows = growth(document.get("normalizer")) > MOST_GROWTH
    if not keeps or shrinking > MOST_SHRINKING or (grows and any(token.get("normalized") for token in added)):
        return TokenLength(None, is_dear)
    longest = _longest(document.get("model"), "ByteLevel" in kinds)
    longest = longest and max([longest, *(_added_bytes(token, normalizers) for token in added)])
    return TokenLength(longest and longest * shrinking, is_dear)


def _parts(told: object, name: str) -> Iterator[Mapping[str, object]]:
    """Yield the parts of a sequence, or the one part."""
    if not isinstance(told, Mapping):
        return
    if told.get("type") != "Sequence":
        yield told
        return
    for part in _listed(told.get(name)):
        yield from _parts(part, name)


def _listed(told: object) -> list[Mapping[str, object]]:
    return [one for one in told if isinstance(one, Mapping)] if isinstance(told, list) else []


def _has_pattern(part: Mapping[str, object]) -> bool:
    pattern = part.get("pattern")
    return isinstance(pattern, Mapping) and "Regex" in pattern


def _shrinking(part: Mapping[str, object]) -> int:
    """Return how many times shorter a text may become; more than the most for any number of times."""
    kind = part.get("type")
    if kind in _LONGER:
        return 1
    if kind == "NFC":
        return MOST_SHRINKING
    if kind == "Replace":
        pattern, content = part.get("pattern"), part.get("content")
        found = pattern.get("String") if isinstance(pattern, Mapping) else None
        if (
            isinstance(found, str)
            and isinstance(content, str)
            and len(content.encode()) >= len(found.encode())
        ):
            return 1
    return MOST_SHRINKING + 1


def _keeps_text(part: Mapping[str, object]) -> bool:
    """Is every letter of a text in one of the pieces that it is cut into?"""
    if part.get("type") in ("Split", "Punctuation"):
        return part.get("behavior") in ("Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    return part.get("type") in _CUTTING


def _keeps_letters(kinds: Sequence[object]) -> bool:
    """Is no letter that stands for a byte replaced by one that stands for none?"""
    return "ByteLevel" not in kinds or "Replace" not in kinds[len(kinds) - kinds[::-1].index("ByteLevel") :]


def _added_bytes(token: Mapping[str, object], normalizers: Sequence[Mapping[str, object]]) -> int:
    """Return the bytes of an added token: of some the text is normalized, and looked for in what is normalized, too."""
    text = str(token.get("content", ""))
    size = len(text.encode())
    for part in normalizers if token.get("normalized") else ():
        match part:
            case {"type": "Replace", "pattern": {"String": str(found)}, "content": str(content)} if found:
                text = text.replace(found, content)
            case {"type": "Prepend", "prepend": str(before)}:
                text = before + text
            case {"type": "ByteLevel"}:
                text = "".join(BYTE_LETTERS[byte] for byte in text.encode())
        size = max(size, len(text.encode()))
    return size


def _strips(token: Mapping[str, object]) -> bool:
    """Return whether the token swallows the spaces around it."""
    return bool(token.get("lstrip") or token.get("rstrip"))


def _longest(model: object, is_byte_level: bool) -> int | None:
    """Return the bytes of the longest token of byte pair encoding, where there is a token for every byte."""
    if not isinstance(model, Mapping) or model.get("type") != "BPE":
        return None
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return None
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, Mapping) or not vocabulary:
        return None
    if is_byte_level:
        if not all(letter in vocabulary for letter in BYTE_LETTERS):
            return None
        return max(len(str(token)) for token in vocabulary)
    if not model.get("byte_fallback") or not all(f"<0x{byte:02X}>" in vocabulary for byte in _BYTES):
        return None
    return max(len(str(token).encode()) for token in vocabulary)
