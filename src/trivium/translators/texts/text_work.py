"""Texts as work of a helper process, and encodings as its result: JSON, and numbers of 64 bits behind it."""

from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trivium.codecs.text_bounds import LONG, byte_size
from trivium.machine.helper_process import Unopened, WorkOpener
from trivium.translators.arguments import TokenizerArguments
from trivium.translators.texts.tokenizer import Text, TextTokenizer
from trivium.types.errors import Code, ServeError

if TYPE_CHECKING:
    from tokenizers import Encoding

_COLUMNS = 7
_SIZE = 8
_NONE = -1


class EncodedRow:
    """One row's encoding, that came as numbers. Implements `TokenRow`."""

    def __init__(self, numbers: "array[int]", tokens: list[str]) -> None:
        self._numbers = numbers
        self.tokens = tokens
        self.ids = self._column(0).tolist()
        self.attention_mask, self.type_ids = self._column(1), self._column(2)

    @property
    def special_tokens_mask(self) -> Sequence[int]:
        """See `TokenRow`."""
        return self._column(3)

    @cached_property
    def sequence_ids(self) -> Sequence[int | None]:
        """See `TokenRow`."""
        return [None if place == _NONE else place for place in self._column(4)]

    @cached_property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """See `TokenRow`."""
        return list(zip(self._column(5), self._column(6), strict=True))

    def _column(self, place: int) -> "array[int]":
        count = len(self._numbers) // _COLUMNS
        return self._numbers[place * count : (place + 1) * count]


class TextWorkArguments(msgspec.Struct, frozen=True):
    """Holds what a `TextWork` is opened with: where its tokenizer is, and by which fingerprint it is known."""

    folder: str
    tokenizer: TokenizerArguments
    fingerprint: str


class _Job(msgspec.Struct, frozen=True, gc=False):
    """Holds texts, each once, and their places for each row."""

    texts: list[str]
    rows: list[list[int]]


class _Told(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Holds the tokens of each row, whose numbers follow, or the error's code and words."""

    tokens: list[list[str]] = []
    code: Code | None = None
    message: str = ""


_read_job = msgspec.json.Decoder(_Job).decode
_read_told = msgspec.json.Decoder(_Told).decode


class TextWork:
    """Encodes texts in a helper process: bytes in, bytes out."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, work: bytes) -> bytes:
        """Do a piece of work that `as_work` wrote."""
        job = _read_job(work)
        rows = [_text_of([job.texts[place] for place in row]) for row in job.rows]
        try:
            encodings = self._tokenizer.encode(rows)
        except ServeError as error:
            return _message(_Told(code=error.code, message=error.message))
        return _message(_Told([one.tokens for one in encodings]), *map(_numbers, encodings))


def text_work(folder: Path, arguments: TokenizerArguments, tokenizer: TextTokenizer) -> WorkOpener:
    """Return what opens a `TextWork` elsewhere; `tokenizer` is the one that was made of these arguments here."""
    told = TextWorkArguments(str(folder), arguments, tokenizer.fingerprint())
    return WorkOpener(f"{__name__}:{open_text_work.__name__}", msgspec.json.encode(told).decode())


def open_text_work(arguments: str) -> TextWork:
    """Return the work of a helper process from the JSON of `TextWorkArguments`."""
    told = msgspec.json.decode(arguments, type=TextWorkArguments)
    try:
        tokenizer = TextTokenizer(Path(told.folder), told.tokenizer)
    except ServeError as error:
        raise Unopened(f"the model's tokenizer can no longer be opened: {error.message}") from error
    if tokenizer.fingerprint() != told.fingerprint:
        raise Unopened(
            "the model's tokenizer is another one than that which was loaded. Load the model again"
        )
    return TextWork(tokenizer)


def is_long(rows: Sequence[Text]) -> bool:
    """Return whether rows have so much text that it is to be encoded where that can be ended."""
    letters = sum(len(row) if isinstance(row, str) else len(row[0]) + len(row[1]) for row in rows)
    if letters * 4 <= LONG or letters > LONG:
        return letters > LONG
    return sum(map(byte_size, chain.from_iterable(map(_parts, rows)))) > LONG


def as_work(rows: Sequence[Text]) -> bytes:
    """Return rows as a piece of work. A text that stands in many of them is written once."""
    places: dict[str, int] = {}
    numbered = [[places.setdefault(text, len(places)) for text in _parts(row)] for row in rows]
    return msgspec.json.encode(_Job(list(places), numbered))


def from_work(told: bytes) -> list[EncodedRow]:
    """Return the encodings that a piece of work made. Raises the error that it made instead."""
    view = memoryview(told)
    end = _SIZE + int.from_bytes(view[:_SIZE], "little")
    read = _read_told(view[_SIZE:end])
    if read.code is not None:
        raise ServeError(read.code, read.message)
    numbers = array("q")
    numbers.frombytes(view[end:])
    each = len(numbers) // len(read.tokens)
    return [EncodedRow(numbers[i * each : (i + 1) * each], tokens) for i, tokens in enumerate(read.tokens)]


def _message(told: _Told, *numbers: bytes) -> bytes:
    head = msgspec.json.encode(told)
    return b"".join((len(head).to_bytes(_SIZE, "little"), head, *numbers))


def _numbers(encoding: "Encoding") -> bytes:
    """Return the columns of a row, one after the other, as `EncodedRow` reads them."""
    offsets = encoding.offsets
    columns = (
        encoding.ids,
        encoding.attention_mask,
        encoding.type_ids,
        encoding.special_tokens_mask,
        (_NONE if place is None else place for place in encoding.sequence_ids),
        (start for start, _ in offsets),
        (end for _, end in offsets),
    )
    found = array("q")
    for column in columns:
        found.extend(column)
    return found.tobytes()


def _parts(row: Text) -> tuple[str, ...]:
    return (row,) if isinstance(row, str) else row


def _text_of(parts: Sequence[str]) -> Text:
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])
