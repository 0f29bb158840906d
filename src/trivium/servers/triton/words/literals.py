"""Scalar values as the text format writes them: what a token means for a field of a given type.

The syntax is protobuf's, but for two places where Python's parser is laxer than the original's and we follow
the original: an escape that does not exist, and an enum's number that names nothing.
"""

import re
from collections.abc import Sequence

from google.protobuf import text_format
from google.protobuf.text_encoding import CUnescape

from trivium.codecs.near_names import near
from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.tokens import Token, TokenKind
from trivium.wires.v2.schema import ENUMS, is_block, is_enum

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_OCTAL = re.compile(r"(-?)0([0-9]+)")
_ESCAPE = re.compile(
    r"""\\(?: [abfnrtv\\'"] | x[0-9a-fA-F]{1,2} | u[0-9a-fA-F]{4} | U[0-9a-fA-F]{8}
         | [0-7]{1,2}(?![0-7]) | [0-3][0-7]{2} )""",
    re.VERBOSE,
)


class Unfit(Exception):
    """A token that is no value of the field: what was found, what is expected, the hint, and the value in it."""

    def __init__(self, found: str, expected: str, hint: str, value: str = "") -> None:
        super().__init__(found)
        self.found, self.expected, self.hint, self.value = found, expected, hint, value


def expectation(field: Field) -> str:
    """Return what a value of the field looks like, in words."""
    if is_block(field):
        return f"a block: {field.name} {{ ... }}"
    if is_enum(field):
        names = (name for name in ENUMS[field.type] if name != "TYPE_INVALID")
        return f"one of {', '.join(names)}"
    if field.type in _RANGES:
        return "an integer from {} to {}".format(*_RANGES[field.type])
    return {"string": "text in quotes", "bool": "true or false"}.get(field.type, "a number")


def value_of(field: Field, tokens: Sequence[Token]) -> object:
    """The value that the tokens (several only where strings stand side by side) give to the field.

    Raises Unfit.
    """
    if field.type == "string":
        return _text(field, tokens)
    token = tokens[0]
    if token.kind in (TokenKind.WORD, TokenKind.NUMBER):
        value = _enum(field, token.text) if is_enum(field) else _scalar(field, token.text)
        if value is not None:
            return value
    raise Unfit(str(token), expectation(field), *_mend(field, token))


def _scalar(field: Field, text: str) -> object:
    if field.type == "bool":
        return {"true": True, "True": True, "t": True, "1": True}.get(
            text, False if text in ("false", "False", "f", "0") else None
        )
    if field.type in ("float", "double"):
        try:
            return text_format.ParseFloat(text)
        except ValueError:
            return None
    number = _integer(text)
    low, high = _RANGES[field.type]
    return number if number is not None and low <= number <= high else None


def _integer(text: str) -> int | None:
    octal = _OCTAL.fullmatch(text)
    try:
        return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)
    except ValueError:
        return None


def _enum(field: Field, text: str) -> int | None:
    names = ENUMS[field.type]
    number = _integer(text) if text not in names else names[text]
    return number if number in names.values() else None


def _text(field: Field, tokens: Sequence[Token]) -> str:
    parts = []
    for token in tokens:
        if token.kind is not TokenKind.STRING:
            raise Unfit(str(token), expectation(field), *_mend(field, token))
        body = token.text[1:-1]
        bad = re.search(r"\\.?", _ESCAPE.sub("", body))
        if bad:
            raise Unfit(
                f"an escape that does not exist: {bad.group()}",
                r"\n, \t, \r, \\, \", \', an octal \000 to \377, \xHH, \uHHHH",
                "Write a backslash itself as two: \\\\.",
            )
        try:
            parts.append(CUnescape(body))
        except ValueError:
            raise Unfit(
                "an escape that is no character", "a Unicode character", "Correct the number."
            ) from None
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError:
        raise Unfit(
            "bytes that are not UTF-8", "UTF-8 text", "Escape characters, not bytes: \\uHHHH."
        ) from None


def _mend(field: Field, token: Token) -> tuple[str, str]:
    """Return the hint, and the value that it names, if it names one."""
    bare = token.text.strip("\"'")
    if token.kind is TokenKind.TORN:
        return "End the text with the quote it began with, on the same line.", ""
    if field.type == "string":
        if token.kind in (TokenKind.WORD, TokenKind.NUMBER):
            return f'Put it in quotes: {field.name}: "{bare}".', f'"{bare}"'
        return f'Write {field.name}: "...".', ""
    if token.kind is TokenKind.STRING and token.text[1:-1]:
        inner = Token(TokenKind.WORD, token.text[1:-1], token.line)
        try:
            value_of(field, [inner])
        except Unfit:
            pass
        else:
            return f"Write it without quotes: {field.name}: {inner.text}.", inner.text
    if is_enum(field):
        meant = near(bare.upper(), ENUMS[field.type], 0.5)
        hint = f"Did you mean {meant}?" if meant else f"Write one of the names, as {_example(field)}."
        return hint, meant
    return f"Write it as {_example(field)}.", ""


def _example(field: Field) -> str:
    if is_enum(field):
        return f"{field.name}: {list(ENUMS[field.type])[-1]}"
    return f"{field.name}: {({'bool': 'true', 'float': '0.5', 'double': '0.5'}).get(field.type, '1')}"
