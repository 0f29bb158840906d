"""Cuts a large JSON array, nested or flat, into groups of its elements, so that no single call reads it all.

A group is an array like the whole one, with some of its elements. What is cut need not be valid: whoever decodes the
groups finds that out, and is told here where brackets do not fit. Pure.
"""

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from trivium.codecs.json_slices import end_of_string

GROUP_BYTES = 2**18
"""Bytes of text in a group, unless a single element has more."""

_OPEN, _CLOSE, _COMMA, _QUOTE = 91, 93, 44, 34
_OPENS, _CLOSES = b"[{", b"]}"
_MARKS = re.compile(rb'"[^"\\]{0,255}"|[\[\]{},"]')
"""Strings that are plain and short, which one match passes over, and all that may mean something; a quote alone begins
another string.
"""


class Unbalanced(ValueError):
    """Brackets or quotes do not fit together."""


def groups(text: bytes) -> Iterator[bytes]:
    """Yield groups of the elements of the array that `text` is, white space around it aside. Raises Unbalanced."""
    text = text.strip(b" \t\r\n")
    if not (text.startswith(b"[") and text.endswith(b"]")) or len(text) < 2:
        raise Unbalanced("the text is no array")
    begin = 1
    for cut in _cuts(text):
        if cut - begin >= GROUP_BYTES or cut == len(text) - 1:
            yield b"[%b]" % text[begin:cut]
            begin = cut + 1


def _cuts(text: bytes) -> Iterator[int]:
    """Yield positions of commas between the array's own elements, few for each group, and that of its last bracket."""
    return _cuts_between_strings(text) if b'"' in text else _cuts_between_numbers(text)


def _cuts_between_numbers(text: bytes) -> Iterator[int]:
    depth, last = 0, len(text) - 1
    for start in range(0, len(text), GROUP_BYTES):
        window = np.frombuffer(text, np.uint8, min(GROUP_BYTES, len(text) - start), start)
        depths = depth + np.cumsum((window == _OPEN).astype(np.int32) - (window == _CLOSE))
        if (depths[:-1] < 1).any() or (start + len(window) <= last and depths[-1] < 1):
            raise Unbalanced("a bracket closes what was not opened")
        commas = np.flatnonzero((window == _COMMA) & (depths == 1))
        if len(commas):
            yield start + int(commas[-1])
        depth = int(depths[-1])
    if depth:
        raise Unbalanced("a bracket is not closed")
    yield last


def _cuts_between_strings(text: bytes) -> Iterator[int]:
    depth, last, said = 0, len(text) - 1, 0
    for at in _marks(text):
        mark = text[at]
        if mark in _OPENS:
            depth += 1
        elif mark in _CLOSES:
            depth -= 1
            if depth < 1 and at != last:
                raise Unbalanced("a bracket closes what was not opened")
        elif mark == _COMMA and depth == 1 and at - said >= GROUP_BYTES:
            said = at
            yield at
    if depth:
        raise Unbalanced("a bracket is not closed")
    yield last


def has_many_values(text: bytes, most: int) -> bool:
    """Return True for a JSON text with more than about so many values, strings of any length counted as one."""
    return next(islice(_marks(text), 2 * most, None), None) is not None


def _marks(text: bytes) -> Iterator[int]:
    """Yield positions of brackets, braces and commas, and of some strings. No call passes over a long string."""
    position = 0
    while position >= 0:
        start, position = position, -1
        for found in _MARKS.finditer(text, start):
            at = found.start()
            if text[at] == _QUOTE and found.end() == at + 1:
                position = end_of_string(text, at + 1)
                if position < 0:
                    raise Unbalanced("a string does not end")
                break
            yield at
