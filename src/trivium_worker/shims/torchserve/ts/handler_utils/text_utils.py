"""Splits English texts into words, and words into runs of several, as handlers for texts do.

Source: `get_tokenizer` and `ngrams_iterator` of TorchServe 0.12, which are torchtext's.
"""

import re
from collections.abc import Callable, Iterator, Sequence

_SPACED = re.compile(r"[.,()!?]")
_BLANK = re.compile(r"[;:]|<br />")
_ENTITIES = "&([a-z0-9]+|#[0-9]{1,6}|#x[0-9a-f]{1,6});"
_ENTITY, _MARKUP = re.compile(_ENTITIES), re.compile(f"<.*?>|{_ENTITIES}")


def without_markup(text: str) -> str:
    """Return a text without entities and tags; a tag ends in the line where it begins."""
    return "\n".join(map(_without_markup, text.split("\n")))


def _without_markup(line: str) -> str:
    """Return one line of it. No tag ends behind its last `>`, and looking for an end from each `<` there would take for
    ever.
    """
    tagged, end, rest = line.rpartition(">")
    return _MARKUP.sub("", tagged + end) + _ENTITY.sub("", rest)


def basic_english(text: str) -> list[str]:
    """Return the words of a text in lower case; an apostrophe and a mark of punctuation is a word of its own."""
    text = text.lower().replace("'", " '  ").replace('"', "")
    return _SPACED.sub(r" \g<0> ", _BLANK.sub(" ", text)).split()


def get_tokenizer(
    tokenizer: str | Callable[[str], list[str]] | None, language: str = "en"
) -> Callable[[str], list[str]]:
    """Return what splits a text: `basic_english`, a function of one's own, or (None) at blanks. ValueError for any
    other name.
    """
    if tokenizer is None:
        return str.split
    if callable(tokenizer):
        return tokenizer
    if tokenizer != "basic_english" or language != "en":
        raise ValueError(
            f"get_tokenizer: found {tokenizer!r} for {language!r}, expected 'basic_english' for 'en', or a function"
        )
    return basic_english


def ngrams_iterator(token_list: Sequence[str], ngrams: int) -> Iterator[str]:
    """Yield the words, then each pair of words that follow one another, and so on up to so many."""
    yield from token_list
    for count in range(2, ngrams + 1):
        for start in range(len(token_list) - count + 1):
            yield " ".join(token_list[start : start + count])
