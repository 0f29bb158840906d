"""The kinds of values that settings take: how each is read from text, and what it expects, in words.

Pure. A kind that only one server knows is a `Form`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from trivium.types.errors import ServeError
from trivium.types.listeners import BindAddress

LARGEST = 2**31 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DIGITS = re.compile(r"[0-9]{1,10}")
_SIZE = re.compile(r"([0-9]{1,12}) ?([KMGT])(?:i?B)?", re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?(ms|[smhd])", re.IGNORECASE)
_SECONDS_OF: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUTH: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Reads values of one kind. `form` names it briefly, where a usage and a manual say less than `expected`; `refusal`
    is a server's own sentence for a value that cannot be, with {name} and {text} in it.
    """

    form: str = ""
    refusal: str = ""
    types: ClassVar[tuple[type, ...]] = ()
    """Types of values that a source gives otherwise than as text, like TOML's."""

    template: ClassVar[str] = ""
    """What is expected, with fields of the kind in it."""

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        return self.template.format(self)

    @property
    def in_manual(self) -> str:
        """Return what a value may be, for a table."""
        return self.form or self.expected

    def read(self, value: object) -> Any:
        """Return what a text means, or a value of the source's own type.

        Raises ValueError or ServeError for what is none; their text is what there is to say beyond `expected`.
        """
        if not isinstance(value, str) and type(value) not in self.types:
            raise ValueError
        return self._read(str(value))

    def refuses(self, value: object) -> bool:
        """Tell whether a value cannot be."""
        try:
            self.read(value)
        except (ValueError, ServeError):
            return True
        return False

    def _read(self, text: str) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Takes any text."""

    template = "text"

    def _read(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Truth(Kind):
    """Takes one of the words for yes and no, in any case."""

    words: Mapping[str, bool] = field(default_factory=lambda: _TRUTH, hash=False)
    template = "true or false"
    types = (bool, int)

    def _read(self, text: str) -> bool:
        if text.lower() not in self.words:
            raise ValueError
        return self.words[text.lower()]


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """Takes a whole number within two bounds, or one of the words that stand for one."""

    least: int = 0
    most: int = LARGEST
    words: tuple[str, ...] = ()
    types = (int,)

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        return " or ".join((f"a whole number from {self.least} to {self.most}", *self.words))

    def _read(self, text: str) -> int | str:
        if text.lower() in self.words:
            return text.lower()
        if not _WHOLE.fullmatch(text.strip()) or not self.least <= int(text) <= self.most:
            raise ValueError
        return int(text)


@dataclass(frozen=True, slots=True)
class Integer(Kind):
    """Takes a whole number of 32 bits, with one of the signs in front or none. One beyond the bounds is read as None:
    it is a number, but counts as not given.
    """

    least: int = -LARGEST
    most: int = LARGEST
    signs: str = "+-"
    template = "a whole number"

    def _read(self, text: str) -> int | None:
        digits = text[1:] if text[:1] in self.signs else text
        if not _DIGITS.fullmatch(digits) or int(digits) > LARGEST:
            raise ValueError
        return int(text) if self.least <= int(text) <= self.most else None


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """Takes a number within two bounds, which may have a fraction."""

    least: float = 0
    most: float = LARGEST
    template = "a number from {0.least} to {0.most}"
    types = (int, float)

    def _read(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError as error:
            raise ValueError from error
        if not self.least <= number <= self.most:  # never so for NaN
            raise ValueError
        return number


@dataclass(frozen=True, slots=True)
class Size(Whole):
    """Takes a number of bytes within two bounds, also with a unit: K, M, G and T are powers of 1024."""

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        return f"{super(Size, self).expected}, or with a unit like 64M or 1G"

    def _read(self, text: str) -> int | str:
        parts = _SIZE.fullmatch(text.strip())
        if parts is None:
            return Whole._read(self, text)
        return Whole._read(self, str(int(parts[1]) * 1024 ** ("KMGT".index(parts[2].upper()) + 1)))


def in_units(count: int) -> str:
    """Return a number of bytes as a `Size` is written: `256M` where that is the same."""
    for unit, power in (("G", 3), ("M", 2), ("K", 1)):
        if count and count % 1024**power == 0:
            return f"{count // 1024**power}{unit}"
    return str(count)


@dataclass(frozen=True, slots=True)
class Seconds(Number):
    """Takes a time in seconds within two bounds, also with a unit: ms, s, m, h or d."""

    template = "a number from {0.least} to {0.most}, or with a unit like 250ms or 5m"

    def _read(self, text: str) -> float:
        parts = _TIME.fullmatch(text.strip())
        if parts is None:
            return Number._read(self, text)
        return Number._read(self, str(float(parts[1]) * _SECONDS_OF[parts[2].lower()]))


@dataclass(frozen=True, slots=True)
class OneOf(Kind):
    """Takes one of several words, in any case if it says so."""

    words: tuple[str, ...]
    any_case: bool = False

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        return f"one of {', '.join(self.words)}"

    def _read(self, text: str) -> str:
        for word in self.words:
            if text == word or (self.any_case and text.lower() == word.lower()):
                return word
        raise ValueError


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """Says where a listener listens, and whether over TLS."""

    bind: BindAddress
    is_tls: bool = False


@dataclass(frozen=True, slots=True)
class Address(Kind):
    """Takes the address of a listener. `ports` are those of an address that names none: without TLS, and with it."""

    ports: tuple[int, int] = (80, 443)
    most: int = 65535
    template = "http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH"

    def _read(self, text: str) -> ListenerAddress:
        if text.startswith("unix:"):
            path = text.removeprefix("unix:").removeprefix("//")
            if not path.startswith("/"):
                raise ValueError
            return ListenerAddress(BindAddress(path=path))
        try:
            parts = urlsplit(text)
            is_tls = parts.scheme == "https"
            port = self.ports[is_tls] if parts.port is None else parts.port
        except ValueError as error:
            raise ValueError from error
        is_more = parts.path not in ("", "/") or parts.query or parts.fragment or parts.username
        if parts.scheme not in ("http", "https") or not parts.hostname or is_more or port > self.most:
            raise ValueError
        return ListenerAddress(BindAddress(parts.hostname, port), is_tls)


@dataclass(frozen=True, slots=True)
class Form(Kind):
    """Takes what a reader reads, which a server hands over with the words for it. It returns None for what it cannot
    read, or raises.
    """

    words: str
    reader: Callable[[str], object] = field(hash=False)

    @property
    def expected(self) -> str:
        """Return what a value may be, for a sentence."""
        return self.words

    def _read(self, text: str) -> object:
        try:
            value = self.reader(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(str(error)) from error
        if value is None:
            raise ValueError
        return value


def _key_store(text: str) -> str | None:
    return text if text.upper() in ("PKCS12", "PFX") else None


TEXT, SWITCH, PATTERN = Text(), Truth(), Form("a regular expression", re.compile)
JAVA_SWITCH = Form("true; all else is false", lambda text: text.lower() == "true")
DIGIT_SWITCH = Truth({**_TRUTH, "1": True, "0": False})
KEY_STORE = Form("PKCS12 (a JKS is converted by keytool -importkeystore -deststoretype pkcs12)", _key_store)
