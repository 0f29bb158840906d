"""Fields of an object that a client sent, read by name and type; what nobody has read in the end is refused.

Every refusal names the field, what stands there, what was expected and what to do. `null` is as if the field had not
been sent. Where values come as text (forms, and objects whose numbers are quoted) the text of a value is taken for it.
"""

from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import Any

import msgspec

from trivium.codecs.error_texts import quoted_json
from trivium.codecs.json_groups import Unbalanced, has_many_values
from trivium.codecs.near_names import near
from trivium.codecs.v2_bodies import MOST_VALUES, decode_object
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.ignored_fields import IgnoredFields

MOST_SHOWN = 40
"""Characters of a value that an error repeats."""

MOST_BYTES = 2**23
"""Bytes of a request, which is read in one call."""


def field_error(field: str, message: str, reason: str = reasons.FIELD) -> ServeError:
    """Return an error about one field, which programs find in its metadata: INVALID."""
    return ServeError(Code.INVALID, message, info=ErrorInfo.of(reason, field=field))


def unsupported_field(field: str, value: object, way_out: str) -> ServeError:
    """Return the error of a field, or of a value of it, that is known and not served: INVALID, with the way out."""
    words = f"The field '{field}' is {_shown(value)}, which is not supported in this version. {way_out}"
    return field_error(field, words, reasons.UNSERVED_FIELD)


class RequestFields:
    """Reads one object. `place` stands in front of its fields in errors (`parameters.`). With `as_text` numbers, flags
    and lists may be texts that hold their JSON. What nobody has read in the end is `ignored`, or else refused.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        place: str = "",
        as_text: bool = False,
        ignored: IgnoredFields | None = None,
    ) -> None:
        self.ignored = ignored
        self._left = {key: value for key, value in given.items() if value is not None}
        self._place = place
        self._as_text = as_text

    def __contains__(self, name: str) -> bool:
        return name in self._left

    @property
    def left(self) -> Mapping[str, Any]:
        """The fields that nobody has read."""
        return self._left

    def take(self, name: str) -> Any:
        """Return the value of a field, whatever it is; None without one."""
        return self._left.pop(name, None)

    def flag(self, name: str) -> bool | None:
        """Return true or false; None without the field."""
        value = self._plain(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.unfit(name, value, "true or false")

    def number(self, name: str, lowest: float = -inf, highest: float = inf) -> float | None:
        """Return a number of a range, bounds included; None without the field."""
        value = self._plain(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
            raise self.unfit(name, value, f"a number{_range(lowest, highest)}")
        return float(value)

    def integer(self, name: str, lowest: float = -inf, highest: float = inf) -> int | None:
        """Return an integer of a range, bounds included; None without the field."""
        value = self._plain(name)
        if value is None:
            return None
        if type(value) is not int or not lowest <= value <= highest:
            raise self.unfit(name, value, f"an integer{_range(lowest, highest)}")
        return value

    def text(self, name: str) -> str | None:
        """Return a text; None without the field."""
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value
        raise self.unfit(name, value, "a string")

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return a text, or a list of `most` texts at most, as a tuple of them."""
        value = self.take(name)
        if self._as_text and isinstance(value, str) and value.lstrip().startswith("["):
            value = self._read(value)
        found = value if isinstance(value, list) else [] if value is None else [value]
        if len(found) > most or not all(isinstance(one, str) and one for one in found):
            raise self.unfit(name, value, f"a string or a list of at most {most} strings, none empty")
        return tuple(found)

    def integers(self, name: str, most: int) -> tuple[int, ...]:
        """Return an integer, or a list of `most` integers at most, as a tuple of them; none is below 0."""
        value = self._plain(name)
        found = value if isinstance(value, list) else [] if value is None else [value]
        if len(found) > most or not all(type(one) is int and 0 <= one < 2**31 for one in found):
            raise self.unfit(name, value, f"a list of at most {most} ids of tokens")
        return tuple(found)

    def biases(self, name: str) -> dict[int, float]:
        """Return an object of numbers from -100 to 100 by ids of tokens."""
        value = self._plain(name)
        if value is None:
            return {}
        expected = "an object that has numbers from -100 to 100 by ids of tokens"
        if not isinstance(value, dict) or len(value) > MOST_BIASES:
            raise self.unfit(name, value, expected)
        found = {}
        for key, bias in value.items():
            is_number = isinstance(bias, int | float) and not isinstance(bias, bool) and -100 <= bias <= 100
            if not (key.isascii() and key.isdigit() and len(key) < 10 and is_number):
                raise self.unfit(name, value, expected)
            found[int(key)] = float(bias)
        return found

    def objects(self, name: str) -> Mapping[str, object]:
        """Return an object, whatever it has; an empty one without the field."""
        value = self._plain(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.unfit(name, value, "an object")
        return value

    def refuse(self, name: str, way_out: str, *neutral: object) -> None:
        """Refuse a field that is not served, unless its value is one of those that ask for nothing."""
        value = self._plain(name)
        if value is None or any(value == one and type(value) is type(one) for one in neutral):
            return
        raise unsupported_field(self._place + name, value, way_out)

    def report(self, rows: Mapping[str, tuple[object, ...]]) -> None:
        """Take fields that are known and have no effect, where such are ignored; a value that asks for nothing is not
        worth a word.
        """
        if self.ignored is None or self._left.keys().isdisjoint(rows):
            return
        for name, neutral in rows.items():
            value = self._plain(name)
            if value is not None and not any(value == one and type(value) is type(one) for one in neutral):
                self.ignored.add(self._place + name)

    def refuse_others(self, known: Iterable[str] = ()) -> None:
        """Refuse the first field that nobody has read, and suggest the known one nearest to it, or ignore them all.
        INVALID.
        """
        name = next(iter(self._left), None)
        if name is None:
            return
        if self.ignored is not None:
            names = list(known)
            for other in self._left:
                self.ignored.add(self._place + other[:MOST_SHOWN], names)
            return
        raise unknown_field(self._place, name, list(known))

    def unfit(self, name: str, value: object, expected: str) -> ServeError:
        """Return the error of a field whose value is not what was expected."""
        field = self._place + name
        return field_error(
            field, f"The field '{field}' is {_shown(value)}; expected is {expected}. Correct it."
        )

    def contradiction(self, name: str, why: str) -> ServeError:
        """Return the error of a field that does not go with the others."""
        field = self._place + name
        return field_error(field, f"The field '{field}' contradicts the rest of the request: {why}")

    def _plain(self, name: str) -> Any:
        value = self.take(name)
        return self._read(value) if self._as_text and isinstance(value, str) else value

    def _read(self, text: str) -> Any:
        lowered = text.strip().lower()
        if lowered in _WORDS:
            return _WORDS[lowered]
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return text


def decode_request(data: bytes | memoryview) -> dict[str, Any]:
    """Return the JSON object that a request to generate is. INVALID, and TOO_LARGE for what cannot be read in one call
    without keeping others waiting.
    """
    if len(data) > MOST_BYTES:
        words = f"The request has {len(data)} bytes; at most {MOST_BYTES} are read. Send a shorter one."
        raise ServeError(Code.TOO_LARGE, words)
    if len(data) > MOST_VALUES and _has_many(bytes(data)):
        words = f"The request has more than {MOST_VALUES} values. Send fewer, or text in place of ids."
        raise ServeError(Code.TOO_LARGE, words)
    if not data:
        raise ServeError(Code.INVALID, "The request has no body. Send a JSON object.")
    return decode_object(data, "request")


def _has_many(text: bytes) -> bool:
    try:
        return has_many_values(text, MOST_VALUES)
    except Unbalanced:
        return False  # it is no JSON, and whoever decodes it says so


MOST_BIASES = 1024
_WORDS = {"true": True, "false": False, "none": None, "": None}


def unknown_field(place: str, name: str, known: Collection[str]) -> ServeError:
    """Return the error of a field that nobody knows."""
    shown = name[:MOST_SHOWN]
    meant = near(shown, known)
    hint = f"Did you mean '{place}{meant}'?" if meant else "Leave it out."
    return field_error(place + shown, f"The field '{place}{shown}' is not known here. {hint}")


def _range(lowest: float, highest: float) -> str:
    if lowest == -inf:
        return "" if highest == inf else f" up to {_number(highest)}"
    return f" from {_number(lowest)}" + ("" if highest == inf else f" to {_number(highest)}")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _shown(value: object) -> str:
    return quoted_json(value, MOST_SHOWN)
