"""A flag of `tritonserver`: its name, the form of its value, whether and how it is served here.

Pure. Reads one value of one flag; which flags there are says `flag_table`, what they do `settings`. Source: spec
sheet `triton`, section 1.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from trivium.types.errors import Code, ServeError


class FlagKind(Enum):
    """The form of a flag's value."""

    TEXT = "string"
    BOOL = "boolean"
    INT = "integer"
    FLOAT = "float"
    SWITCH = "switch"  # no value: it is there, or it is not


class Support(Enum):
    """The support of a flag by this server."""

    YES = "yes"
    PARTLY = "partly"
    UNUSED = "accepted, reported"  # about memory or devices that this server manages otherwise
    NO = "no"  # refused with a sentence, unless its value asks for what is the case anyway


Value = str | bool | int | float

_BOOLS: Mapping[str, bool] = {
    "true": True,
    "on": True,
    "1": True,
    "false": False,
    "off": False,
    "0": False,
}
_WHOLE = 2**63


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is what holds without it; one that may be given several times adds up, of any other the
    last one counts. `how` says what is different here, for the manual and in a refusal. `form` is shown in the
    usage in place of the kind, `choices` are all that a text may be.
    """

    name: str
    kind: FlagKind
    default: Value
    help: str
    support: Support = Support.YES
    how: str = ""
    repeats: bool = False
    form: str = ""
    choices: tuple[str, ...] = ()

    def read(self, text: str) -> Value:
        """The value of this text. INVALID, worded as in the original."""
        match self.kind:
            case FlagKind.TEXT:
                if self.choices and text not in self.choices:
                    raise _unfit(self.name, f"invalid argument for {self.name}")
                return text
            case FlagKind.BOOL:
                return read_bool(text, self.name)
            case FlagKind.INT:
                return _integer(text)
            case FlagKind.FLOAT:
                return _float(text)
            case FlagKind.SWITCH:
                raise AssertionError("a switch has no value to read")


def read_bool(text: str, flag: str) -> bool:
    """One of the words for yes and no. INVALID."""
    if text.lower() not in _BOOLS:
        raise _unfit(flag, f"invalid value for bool option: {text}")
    return _BOOLS[text.lower()]


def _integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = _WHOLE
    if not -_WHOLE <= number < _WHOLE:
        raise ServeError(Code.INVALID, f"Invalid option value. Got {text}")
    return number


def _float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise ServeError(Code.INVALID, f"Invalid option value. Got {text}")
    return number


def _unfit(flag: str, why: str) -> ServeError:
    return ServeError(Code.INVALID, f'Bad option: "{flag}".\n{why}')
