"""Ways to damage bytes, each at one place and by chance: what every target of the fuzzer shares. It knows no format."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Mutation = Callable[[bytearray, int, random.Random], None]
"""Changes the bytes in place, at or behind the place given, which is inside them."""

HUGE_DIGITS = (
    b"99999999999999999999999",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"9223372036854775808",
    b"4294967296",
    b"2147483648",
    b"65536",
    b"0x10",
    b"1e9",
    b"1e400",
    b"00000000003",
    b"9" * 5000,
)
"""What is put in place of a number that is written in digits."""

WIDTHS = (1, 2, 4, 8)
NESTS = ((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"}"), (b"(", b")"), (b"<", b">"))


def depth(chance: random.Random) -> int:
    """How deep something is nested: often about as deep as Python goes by itself."""
    return chance.choice((2, 7, 33, 65, 101, chance.randrange(880, 1010), chance.randrange(1, 1000), 5000))


def flip(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] ^= 1 << chance.randrange(8)


def set_byte(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))


def delete(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at : at + chance.choice((1, 2, 5, 50))]


def duplicate(data: bytearray, at: int, chance: random.Random) -> None:
    piece = data[at : at + chance.choice((1, 5, 30, 100))]
    data[at:at] = piece * chance.choice((1, 2, 30))


def repeat_often(data: bytearray, at: int, chance: random.Random) -> None:
    piece = data[at : at + chance.choice((1, 2, 3, 4, 16))]
    data[at:at] = piece * chance.choice((300, 1000, 4000))


def repeat_a_line(data: bytearray, at: int, chance: random.Random) -> None:
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at) + 1 or len(data)
    data[start:start] = data[start:end]


def swap(data: bytearray, at: int, chance: random.Random) -> None:
    size, other = chance.choice((1, 4, 20)), chance.randrange(len(data))
    piece, theirs = data[at : at + size], data[other : other + size]
    data[other : other + len(theirs)] = piece
    data[at : at + len(piece)] = theirs


def enlarge_a_number(data: bytearray, at: int, chance: random.Random) -> None:
    for place in range(at, len(data)):
        if data[place : place + 1].isdigit():
            data[place : place + 1] = chance.choice(HUGE_DIGITS)
            return


def tamper_with_a_length(data: bytearray, at: int, chance: random.Random) -> None:
    """Write an integer that somebody may take for a length or a count, or add a little to the one that is there."""
    width = chance.choice(WIDTHS)
    order = chance.choice(("little", "big"))
    at = max(0, min(at, len(data) - width))
    if chance.random() < 0.3:
        value = int.from_bytes(data[at : at + width], order) + chance.choice((-16, -2, -1, 1, 2, 16))
    else:
        bits = 8 * width
        values = (0, 1, 2, len(data), len(data) + 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2**bits - 1)
        value = chance.choice(values)
    data[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, order)


def rubbish(data: bytearray, at: int, chance: random.Random) -> None:
    data[at : at + 20] = chance.randbytes(chance.randrange(60))


def truncate(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at:]


def inserting(tokens: Sequence[bytes]) -> Mutation:
    """Put in one of these words, or put it in place of what is there."""

    def insert(data: bytearray, at: int, chance: random.Random) -> None:
        token = chance.choice(tokens)
        data[at : at + chance.choice((0, 0, len(token)))] = token

    return insert


def splicing(corpus: Sequence[bytes]) -> Mutation:
    """Go on as another entry of the corpus does, or take over a piece of it."""

    def splice(data: bytearray, at: int, chance: random.Random) -> None:
        other = chance.choice(corpus)
        start = chance.randrange(len(other) + 1)
        if chance.random() < 0.5:
            data[at:] = other[start:]
        else:
            data[at:at] = other[start : start + chance.choice((4, 30, 200))]

    return splice


def nesting(pairs: Sequence[tuple[bytes, bytes]]) -> Mutation:
    """Put a piece into many brackets, or leave those open that it is put into."""

    def nest(data: bytearray, at: int, chance: random.Random) -> None:
        opening, closing = chance.choice(pairs)
        count, end = depth(chance), at + chance.choice((0, 1, 2, 10))
        data[end:end] = closing * (count if chance.random() < 0.7 else 0)
        data[at:at] = opening * count

    return nest


GENERAL: tuple[Mutation, ...] = (
    flip, flip, set_byte, delete, duplicate, repeat_often, swap, enlarge_a_number, tamper_with_a_length,
    tamper_with_a_length, rubbish, truncate,
)  # fmt: skip


def apply(mutations: Sequence[Mutation], data: bytes, chance: random.Random, most: int) -> bytes:
    """Damage the bytes at some places; at most so many bytes come out."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        if not changed:
            break
        chance.choice(mutations)(changed, chance.randrange(len(changed)), chance)
    return bytes(changed[:most])


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """The same bytes as they may come from a socket."""
    match chance.randrange(4):
        case 0:
            return [data]
        case 1:
            size = chance.choice((1, 2, 7, 100)) if len(data) < 3000 else 1000
            return [data[at : at + size] for at in range(0, len(data), size)]
        case _:
            cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 6)))
            return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


# -- JSON --------------------------------------------------------------------------------------------------

JSON_VALUES = (
    b"null", b"true", b"0", b"-1", b"1.5", b"-0.0", b"1e400", b"NaN", b"-Infinity", b"2147483648",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"9" * 400,
    b"9" * 5000, b'""', b'"a"', b'"\\ud800"', b'"\\u0000"', b'"\\ud83d\\ude00"', b'"\xff"', b'"' + b"x" * 300 + b'"',
    b"[]", b"{}", b"[[]]", b"[[1],[2,3]]", b'{"a":1,"a":2}', b"[null]", b'["a",1]', b"tru", b"'a'", b"1,2", b"",
)  # fmt: skip
_MARK = "@fuzz@"


def _deep_json(chance: random.Random) -> bytes:
    opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}")))
    count = depth(chance)
    return opening * count + b"1" + closing * count


def json_changed(text: bytes, chance: random.Random) -> bytes:
    """The document with other values, keys or none in some of its places; text that is no JSON stays as it is."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    values = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        holder = [document]
        _change(holder, chance, f"{_MARK}{len(values)}")
        document = holder[0]
        values.append(_deep_json(chance) if chance.random() < 0.15 else chance.choice(JSON_VALUES))
    made = json.dumps(document).encode()
    for number, value in enumerate(values):
        made = made.replace(b'"%s%d"' % (_MARK.encode(), number), value)
    return made


def _change(holder: Any, chance: random.Random, mark: str) -> None:
    """Replace, remove, double or rename something somewhere below."""
    inner = holder
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(inner[key], dict | list) and inner[key] and chance.random() < 0.85:
            inner = inner[key]
            continue
        break
    match chance.randrange(6):
        case 0 if inner is not holder:
            del inner[key]
        case 1 if isinstance(inner, dict):
            inner[chance.choice((mark, str(key) + "x", "", "data", "parameters"))] = inner[key]
        case 2 if isinstance(inner, list) and inner is not holder:
            inner += [inner[key]] * chance.choice((1, 2, 40))
        case _:
            inner[key] = mark
