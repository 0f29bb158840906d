"""A setting: a named value of a configuration with its kind, its default, and how it is served.

An option, a property, a key and a flag are settings: a table of them is all that says which there are. Pure.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from trivium.settings.kinds import TEXT, Kind
from trivium.types.errors import ServeError

_SHOWN = 80


class Support(Enum):
    """Says what becomes of a setting."""

    YES = "yes"
    PARTLY = "partly"
    PASSED_ON = "passed on"
    REPORTED = "no, reported"
    REFUSED = "no, refused"


@dataclass(frozen=True, slots=True)
class Setting:
    """One named value of a configuration: how it is read, what holds without it, and what becomes of it."""

    name: str
    kind: Kind = TEXT
    default: Any = ""  # what holds without it; a text where its source is a file of texts
    help: str = ""  # what it is for
    support: Support = Support.YES
    how: str = ""  # what is different here, or what to do instead
    harmless: tuple[object, ...] = ()  # values without effect anyway: not served, they are not worth a word
    variable: str = ""  # the variable of the environment that sets it; empty for none
    repeats: bool = False  # may be given several times, and adds up
    usage: str = ""  # the shape of its value in a usage, where that is not its kind's

    def fault(self, value: object) -> str:
        """Say what is wrong with a value; empty where nothing is."""
        try:
            self.kind.read(value)
        except ServeError as error:
            reason = error.message
        except ValueError as error:
            reason = str(error)
        else:
            return ""
        if self.kind.refusal:
            return self.kind.refusal.format(name=self.name, text=value)
        shown = repr(value)[:_SHOWN]
        return f"{shown}: {reason}" if reason else shown
