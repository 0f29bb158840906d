"""What Triton's JSON reader says of a text that is no JSON, and at which byte.

Source: RFC 8259, and the texts and places observed of the original (spec sheet `triton`, section 4.5), which reads the
bare words NaN, Inf and Infinity, too. For short texts that were found faulty already: it goes byte by byte.
"""

import re

_BLANKS = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_DIGITS = re.compile(rb"[0-9]+")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_HEX = re.compile(rb"[0-9A-Fa-f]{4}")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
MAX_DEPTH = 200


class SyntaxFault(Exception):
    """`text` as the original has it, `offset` in bytes."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(f"{text} at {offset}")


def syntax_fault(text: bytes) -> str | None:
    """The fault and its place. None for JSON, and for what is nested too deeply to be looked at here."""
    try:
        at = _skip(text, 0)
        if at == len(text):
            raise SyntaxFault("The document is empty.", at)
        at = _skip(text, _value(text, at, 0))
        if at < len(text):
            raise SyntaxFault("The document root must not be followed by other values.", at)
    except SyntaxFault as fault:
        return str(fault)
    except RecursionError:
        return None
    return None


def _skip(text: bytes, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()


def _value(text: bytes, at: int, depth: int) -> int:
    """Behind the value that begins at `at`."""
    if depth > MAX_DEPTH:
        raise RecursionError
    first = text[at : at + 1]
    if first == b"{":
        return _object(text, at, depth)
    if first == b"[":
        return _array(text, at, depth)
    if first == b'"':
        return _string(text, at)
    if first in _WORDS:
        return _word(text, at, _WORDS[first])
    return _number(text, at)


def _object(text: bytes, at: int, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == b"}":
        return at + 1
    while True:
        if text[at : at + 1] != b'"':
            raise SyntaxFault("Missing a name for object member.", at)
        at = _skip(text, _string(text, at))
        if text[at : at + 1] != b":":
            raise SyntaxFault("Missing a colon after a name of object member.", at)
        at = _skip(text, _value(text, _skip(text, at + 1), depth + 1))
        follows = text[at : at + 1]
        if follows == b"}":
            return at + 1
        if follows != b",":
            raise SyntaxFault("Missing a comma or '}' after an object member.", at)
        at = _skip(text, at + 1)


def _array(text: bytes, at: int, depth: int) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == b"]":
        return at + 1
    while True:
        at = _skip(text, _value(text, at, depth + 1))
        follows = text[at : at + 1]
        if follows == b"]":
            return at + 1
        if follows != b",":
            raise SyntaxFault("Missing a comma or ']' after an array element.", at)
        at = _skip(text, at + 1)


def _string(text: bytes, at: int) -> int:
    at += 1
    while True:
        found = _PLAIN.match(text, at)
        assert found is not None
        at = found.end()
        stop = text[at : at + 1]
        if stop == b'"':
            return at + 1
        if stop == b"\\":
            at = _escape(text, at)
        elif stop in (b"", b"\0"):
            raise SyntaxFault("Missing a closing quotation mark in string.", at)
        else:
            raise SyntaxFault("Invalid encoding in string.", at)


def _escape(text: bytes, at: int) -> int:
    """Behind the escape at `at`, which is the place of its faults, too."""
    kind = text[at + 1 : at + 2]
    if kind and kind in b'"\\/bfnrt':
        return at + 2
    if kind != b"u":
        raise SyntaxFault("Invalid escape character in string.", at)
    code = _hex(text, at + 2, at)
    if not 0xD800 <= code <= 0xDFFF:
        return at + 6
    is_pair = code <= 0xDBFF and text[at + 6 : at + 8] == b"\\u"
    if not is_pair or not 0xDC00 <= _hex(text, at + 8, at) <= 0xDFFF:
        raise SyntaxFault("The surrogate pair in string is invalid.", at)
    return at + 12


def _hex(text: bytes, at: int, begin: int) -> int:
    found = _HEX.match(text, at)
    if found is None:
        raise SyntaxFault("Incorrect hex digit after \\u escape in string.", begin)
    return int(found[0], 16)


def _word(text: bytes, at: int, word: bytes) -> int:
    for i, letter in enumerate(word):
        if text[at + i : at + i + 1] != bytes((letter,)):
            raise SyntaxFault("Invalid value.", at + i)
    return at + len(word)


def _number(text: bytes, at: int) -> int:
    found = _NUMBER.match(text, at)
    if found is None:
        return _bare_word(text, at + (text[at : at + 1] == b"-"))
    begin, at = at, found.end()
    if text[at : at + 1] == b".":
        at = _digits(text, at + 1, "Miss fraction part in number.")
    if text[at : at + 1] in (b"e", b"E"):
        at += 1 + (text[at + 1 : at + 2] in (b"+", b"-"))
        at = _digits(text, at, "Miss exponent in number.")
    if float(text[begin:at]) in (float("inf"), float("-inf")):
        raise SyntaxFault("Number too big to be stored in double.", begin)
    return at


def _bare_word(text: bytes, at: int) -> int:
    first = text[at : at + 1]
    if first == b"N":
        return _word(text, at, b"NaN")
    if first != b"I":
        raise SyntaxFault("Invalid value.", at)
    at = _word(text, at, b"Inf")
    return _word(text, at, b"inity") if text[at : at + 1] == b"i" else at


def _digits(text: bytes, at: int, missing: str) -> int:
    found = _DIGITS.match(text, at)
    if found is None:
        raise SyntaxFault(missing, at)
    return found.end()
