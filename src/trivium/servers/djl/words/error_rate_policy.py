"""Decides whether errors come faster than an operator allows, by the rates of `config.properties`, such as 5/PT1M.

Pure: what is left of each allowance and the time go in, and what is left then comes out. Source: spec sheet `djl`,
section 1.3.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

EXPECTED = "a number of errors, alone (within a minute) or with a duration of ISO 8601, such as 5/PT1M"
_MINUTE = 60.0
_RATE = re.compile(r"(?P<most>[0-9]{1,9})(?:/(?P<window>.+))?")
_WINDOW = re.compile(
    r"P(?:(?P<days>[0-9]{1,5})D)?(?:T(?:(?P<hours>[0-9]{1,6})H)?(?:(?P<minutes>[0-9]{1,8})M)?"
    r"(?:(?P<seconds>[0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?",
    re.IGNORECASE,
)
_SECONDS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


class ErrorKind(StrEnum):
    """Says whose error an answer is: that of the work-load management, of the server, or of a model; the value is the
    end of its key. `ANY` is each of them.
    """

    WLM = "wlm"
    SERVER = "server"
    MODEL = "model"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """Allows `most` errors within a window of so many seconds; the next one is too many."""

    most: int
    window: float = _MINUTE


@dataclass(frozen=True, slots=True)
class ErrorAllowance:
    """Says how many errors are left of a rate, and since when its window runs."""

    left: int
    since: float


@dataclass(frozen=True, slots=True)
class ErrorRatesView:
    """Holds the rates that are watched, and what is left of each; once `is_exceeded`, it stays so."""

    rates: Mapping[ErrorKind, ErrorRate] = field(default_factory=dict)
    left: Mapping[ErrorKind, ErrorAllowance] = field(default_factory=dict)
    is_exceeded: bool = False


def full_allowances(rates: Mapping[ErrorKind, ErrorRate], now: float) -> ErrorRatesView:
    """Return the view of a server that begins now."""
    return ErrorRatesView(rates, {kind: ErrorAllowance(rate.most, now) for kind, rate in rates.items()})


def judge_error(view: ErrorRatesView, kind: ErrorKind, now: float) -> ErrorRatesView:
    """Return the view behind an error of this kind, which counts for its own rate and for that of any."""
    for each in (kind, ErrorKind.ANY):
        rate = view.rates.get(each)
        if rate is None or view.is_exceeded:
            continue
        left = _refilled(view.left[each], rate, now)
        if left.left < 1:
            return replace(view, is_exceeded=True)
        spent = replace(left, left=left.left - 1)
        view = replace(view, left={**view.left, each: spent})
    return view


def _refilled(allowance: ErrorAllowance, rate: ErrorRate, now: float) -> ErrorAllowance:
    return ErrorAllowance(rate.most, now) if now - allowance.since >= rate.window else allowance


def read_rate(text: str) -> ErrorRate | None:
    """Read a rate; None for what is none."""
    found = _RATE.fullmatch(text.strip())
    if found is None:
        return None
    if found["window"] is None:
        return ErrorRate(int(found["most"]))
    parts = _WINDOW.fullmatch(found["window"])
    if parts is None:
        return None
    seconds = sum(float(parts[name]) * scale for name, scale in _SECONDS.items() if parts[name])
    return ErrorRate(int(found["most"]), seconds) if seconds else None


def read_rates(text: str) -> dict[ErrorKind, ErrorRate]:
    """Read `KIND=RATE` pairs with commas between. Raises INVALID for what is none."""
    found: dict[ErrorKind, ErrorRate] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, _, value = pair.partition("=")
        rate = read_rate(value)
        if rate is None or name.strip() not in list(ErrorKind):
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--djl-error-rates has {pair[:80]!r}; expected is one of {', '.join(ErrorKind)}, an equals sign "
                    f"and {EXPECTED}."
                ),
            )
        found[ErrorKind(name.strip())] = rate
    return found
