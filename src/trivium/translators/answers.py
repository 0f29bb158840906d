"""Answers of translators as bodies."""

import json

import numpy as np

from trivium.translators.requests import JSON
from trivium.types.payload import Raw, RawPart


def json_answer(value: object) -> Raw:
    """Return the answer that is this JSON. Raises TypeError or ValueError for what JSON cannot hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    return Raw((RawPart(text.encode("utf-8", "replace"), JSON),))


def text_answer(text: str) -> Raw:
    """Return the answer that is this text."""
    return Raw((RawPart(text.encode("utf-8", "replace"), "text/plain"),))


def _plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__}")
