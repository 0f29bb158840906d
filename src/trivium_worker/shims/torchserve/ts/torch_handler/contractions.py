"""Expands English contractions ("don't" is "do not"), as TorchServe's handlers for texts do.

Source: the table of TorchServe 0.12 by what it does to a text, which is less than what it lists: of two entries of
which one begins the other the shorter one is found first.
"""

import re

_NOT = "are could did does do had has have is may might must need ought should was were would"
_ENDINGS = {
    "'d": (" would", "he i it she that there they we you"),
    "'ll": (" will", "he how i it she they we what who you"),
    "'m": (" am", "i"),
    "'re": (" are", "they we what you"),
    "'s": (" is", "he how it she so that there what when where who why"),
    "'ve": (" have", "could i might must should so they to we what when where who why will would you"),
}
_ODD = {
    "ain't": "is not",
    "can't": "cannot",
    "'cause": "because",
    "how'd": "how did",
    "it'd": "it would",
    "let's": "let us",
    "ma'am": "madam",
    "o'clock": "of the clock",
    "sha'n't": "shall not",
    "shan't": "shall not",
    "so's": "so as",
    "where'd": "where did",
    "won't": "will not",
    "y'all": "you all",
}


def _table() -> "dict[str, str]":
    table = {f"{word}n't": f"{word} not" for word in _NOT.split()}
    for ending, (meaning, words) in _ENDINGS.items():
        table.update({word + ending: word + meaning for word in words.split()})
    table.update(_ODD)
    return table


CONTRACTION_MAP = _table()
_FOUND = re.compile("|".join(sorted(map(re.escape, CONTRACTION_MAP), key=len)), re.IGNORECASE)


def expand(text: str) -> str:
    """Return a text without contractions and apostrophes. What is expanded keeps its first letter as it was."""
    return _FOUND.sub(_expanded, text).replace("'", "")


def _expanded(found: "re.Match[str]") -> str:
    whole = found.group()
    meaning = CONTRACTION_MAP.get(whole.lower())
    return whole if meaning is None else whole[0] + meaning[1:]
