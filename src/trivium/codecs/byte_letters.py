"""The letters that stand for bytes in byte-level vocabularies, after GPT-2. Pure."""

from collections.abc import Iterator, Mapping

_BYTES = range(256)
_LETTERS = tuple(
    chr(byte) if 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255 else "" for byte in _BYTES
)


def _byte_letters() -> Iterator[str]:
    """Yield the letter of each byte: one that cannot be seen has a letter from 256 on."""
    count = 0
    for letter in _LETTERS:
        if letter:
            yield letter
        else:
            yield chr(256 + count)
            count += 1


BYTE_LETTERS = tuple(_byte_letters())
BYTE_OF_LETTER: Mapping[str, int] = {letter: byte for byte, letter in enumerate(BYTE_LETTERS)}
