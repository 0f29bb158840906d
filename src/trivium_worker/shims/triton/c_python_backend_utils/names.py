"""Values of user code, as pb_utils takes them: text (or its bytes in UTF-8, as they come out of a tensor of
TYPE_STRING), whole numbers, numbers, lists. And numbers with names, as pb_utils gives them.

The original's compiled module takes these wherever it asks for such a thing, and NVIDIA's own examples count on it; it
raises TypeError for everything else, and so is raised here, before anything of it leaves the worker. `what` says which
argument it was.
"""

import enum
import operator
from collections.abc import Sequence
from typing import Any


class Numbered(enum.IntEnum):
    """A number of the original's that is printed with its name, whatever the version of Python."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, form: str) -> str:
        return format(str(self), form)


def as_text(name: Any) -> Any:
    """Text for bytes; anything else as it is. UnicodeDecodeError for bytes that are no UTF-8."""
    return name.decode("utf-8") if isinstance(name, bytes) else name


def text(what: str, value: Any) -> str:
    """A str."""
    value = as_text(value)
    if not isinstance(value, str):
        raise unfit(what, value, "a str")
    return value


def whole(what: str, value: Any, least: int, most: int) -> int:
    """An int in these bounds, numpy's among them."""
    try:
        number = operator.index(value)
    except TypeError:
        raise unfit(what, value, "an int") from None
    if not least <= number <= most:
        raise TypeError(f"{what} is {number}; expected {least} to {most}")
    return number


def number(what: str, value: Any) -> float:
    """A float, for whatever is a number."""
    if isinstance(value, (str, bytes)):
        raise unfit(what, value, "a number")
    try:
        return float(value)
    except TypeError:
        raise unfit(what, value, "a number") from None


def listed(what: str, values: Any, kind: Any, word: str) -> list[Any]:
    """A list of the elements of a list or tuple, which are all of that kind."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise unfit(what, values, f"a list of {word}")
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{what} holds a {type(value).__name__}; expected {word} objects")
    return list(values)


def unfit(what: str, value: Any, expected: str) -> TypeError:
    """Return the error to raise."""
    return TypeError(f"{what} is a {type(value).__name__}; expected {expected}")
