"""The head of a GGUF file: the architecture and context that its metadata names.

Source: the format's description, versions 2 and 3, little-endian. Only the first part of a file is needed: metadata
comes first, and the words of the tokenizer behind what is asked for. Never raises for what somebody wrote. Pure.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trivium.types.findings import Finding, Severity

HEAD_BYTES = 2**20
MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_KEYS, _MOST_TENSORS, _LONGEST_KEY = 2**16, 2**20, 2**16 - 1
_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The number of a type -> its form for `struct`."""

_TEXT, _ARRAY = 8, 9
_NOT_CAUSAL = frozenset(
    {"t5", "t5encoder", "bert", "nomic-bert", "jina-bert-v2", "clip", "whisper", "wavtokenizer-dec"}
)
_AGAIN = "It is cut off, or no such file: copy it anew."


@dataclass(frozen=True, slots=True)
class GgufHead:
    """Holds what the metadata says as far as the head goes; `context` is 0 where it does not."""

    architecture: str = ""
    context: int = 0
    context_key: str = ""
    name: str = ""
    findings: tuple[Finding, ...] = ()


class _Cut(Exception):
    """The bytes end within a value."""


class _Wrong(Exception):
    """The bytes are no metadata; says what is there."""


@dataclass(slots=True)
class _Reader:
    data: bytes
    at: int = 0
    values: dict[str, object] = field(default_factory=dict)

    def number(self, form: str) -> int | float | bool:
        size = struct.calcsize(f"<{form}")
        (value,) = struct.unpack(f"<{form}", self.take(size))
        assert isinstance(value, int | float)
        return value

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise _Cut
        taken, self.at = self.data[self.at : end], end
        return taken

    def count(self, most: int, what: str) -> int:
        value = int(self.number("Q"))
        if value > most:
            raise _Wrong(f"{value} {what}")
        return value

    def text(self) -> str:
        return self.take(int(self.number("Q"))).decode("utf-8", "replace")

    def value(self, kind: int) -> object:
        if kind in _FORMS:
            return self.number(_FORMS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            raise _Wrong(f"a value of type {kind}")
        inner, count = int(self.number("I")), int(self.number("Q"))
        if inner in _FORMS:
            self.take(count * struct.calcsize(f"<{_FORMS[inner]}"))
        elif inner == _TEXT:
            for _ in range(count):
                self.take(int(self.number("Q")))
        else:
            raise _Wrong(f"a list of values of type {inner}")
        return None

    def pairs(self, count: int) -> Iterator[tuple[str, object]]:
        for _ in range(count):
            length = self.count(_LONGEST_KEY, "bytes of a key")
            key = self.take(length).decode("utf-8", "replace")
            yield key, self.value(int(self.number("I")))


def read_head(file: str, head: bytes, size: int) -> GgufHead:
    """Read the first `HEAD_BYTES` of a file of `size` bytes, or all of it."""
    reader = _Reader(head)
    try:
        if reader.take(len(MAGIC)) != MAGIC:
            raise _Wrong(f"a file that begins with {head[:4]!r}")
        version = int(reader.number("I"))
        if version not in _VERSIONS:
            raise _Wrong(f"version {version} of the format")
        reader.count(_MOST_TENSORS, "tensors")
        for key, value in reader.pairs(reader.count(_MOST_KEYS, "keys")):
            reader.values[key] = value
    except _Cut:
        if len(head) >= size:
            return _refused(file, f"{size} bytes that end within the metadata", _AGAIN)
    except _Wrong as error:
        return _refused(file, str(error), _AGAIN)
    return _head(file, reader.values)


def _head(file: str, values: Mapping[str, object]) -> GgufHead:
    architecture, name = values.get("general.architecture"), values.get("general.name")
    if not isinstance(architecture, str) or not architecture.isprintable() or not architecture:
        found = "no general.architecture in its metadata"
        return _refused(file, found, "Convert the model anew, with llama.cpp's convert_hf_to_gguf.py.")
    if architecture in _NOT_CAUSAL:
        found = f"general.architecture {architecture}, which is no causal language model"
        return _refused(file, found, "Serve a causal language model, like one of the architecture llama.")
    key = f"{architecture}.context_length"
    context = values.get(key)
    is_given = type(context) is int and 0 < context < 2**31
    return GgufHead(
        architecture,
        context if is_given and isinstance(context, int) else 0,
        key if is_given else "",
        name if isinstance(name, str) and name.isprintable() else "",
    )


def _refused(file: str, found: str, hint: str) -> GgufHead:
    expected = "a causal language model in GGUF, version 2 or 3"
    return GgufHead(findings=(Finding(Severity.ERROR, file, None, "", found[:200], expected, hint),))
