"""Cuts a large JSON array into small flat ones, so that no single call has to read all of it.

Whoever calls knows that the text is valid JSON: what is cut need not be checked again. Arrays within the array are
flattened, row-major, as the v2 protocol reads them. Pure.
"""

from collections.abc import Iterator

SLICE_BYTES = 2**18
"""Bytes of text in a slice, or those of one string that is longer."""

_QUOTE, _BACKSLASH = b'"', b"\\"
_STRUCTURE = b"[] \t\r\n"


def flat_slices(text: bytes, has_strings: bool) -> Iterator[bytes]:
    """Yield arrays without arrays in them, whose elements one after another are those of `text`."""
    at, size = 0, len(text)
    while at < size:
        if at + SLICE_BYTES >= size:
            end = -1
        elif has_strings:
            end = _comma_behind(text, at, at + SLICE_BYTES)
        else:
            end = text.find(b",", at + SLICE_BYTES)
        end = size if end < 0 else end
        part = text[at:end]
        part = _flat_strings(part) if has_strings else _single_commas(part.translate(None, _STRUCTURE))
        yield b"[%b]" % part.strip(b",")
        at = end + 1


def _single_commas(part: bytes) -> bytes:
    while b",," in part:  # where there was an empty array
        part = part.replace(b",,", b",")
    return part


def _comma_behind(text: bytes, begin: int, at: int) -> int:
    """Find the first comma, not before `at`, that separates elements; -1 for none. `begin` is in no string."""
    position = begin
    while True:
        quote = text.find(_QUOTE, position)
        comma = text.find(b",", max(position, at), quote if quote >= 0 else len(text))
        if comma >= 0 or quote < 0:
            return comma
        position = end_of_string(text, quote + 1)


def end_of_string(text: bytes, position: int) -> int:
    """Find the end of the string that `position` is in: behind its closing quote; -1 where there is none."""
    while (quote := text.find(_QUOTE, position)) >= 0:
        before = text[position:quote]
        if (len(before) - len(before.rstrip(_BACKSLASH))) % 2 == 0:
            return quote + 1
        position = quote + 1
    return -1


def _flat_strings(part: bytes) -> bytes:
    pieces: list[bytes] = []
    position = 0
    while (quote := part.find(_QUOTE, position)) >= 0:
        between = part[position:quote].translate(None, _STRUCTURE)
        position = end_of_string(part, quote + 1)
        pieces.append(_single_commas(between))
        pieces.append(part[quote:position])
    pieces.append(_single_commas(part[position:].translate(None, _STRUCTURE)))
    return b"".join(pieces)
