"""Judges settings that cannot be taken as they were given: unknown, misspelt, wrong, not served.

One sentence for each, whatever the source and whoever asks. Pure.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trivium.codecs.near_names import near
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Change, Finding, Severity

if TYPE_CHECKING:  # the process that reads long texts needs no tensors
    from trivium.types.spec import Origin

_SHOWN = 120


def meant_by(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that somebody has meant, whatever its capitals; empty for none."""
    lower = {one.lower(): one for one in reversed(list(known))}
    return lower.get(name.lower()) or lower.get(near(name.lower(), lower, cutoff), "")


def unknown(
    origin: "Origin",
    what: str,
    expected: str,
    meant: str,
    otherwise: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    """Name what is no setting. `what` says so, `meant` is what was meant instead, `otherwise` the hint without that."""
    if not meant:
        return _finding(severity, origin, what, expected, otherwise)
    mends = (Change(name=meant),)
    return _finding(severity, origin, what, expected, f"Did you mean {meant}?", mends)


def wrong(origin: "Origin", setting: Setting, value: object) -> Finding | None:
    """Name a value that cannot be, with what is expected; None for one that can."""
    fault = setting.fault(value)
    if not fault:
        return None
    return _finding(Severity.ERROR, origin, fault, setting.kind.expected, "Correct the value.")


def unserved(origin: "Origin", setting: Setting, value: str) -> Finding | None:
    """Name a setting that is refused or has no effect, unless its value wishes for what is the case anyway."""
    if value.lower() in setting.harmless:
        return None
    if setting.support is Support.REFUSED:
        found, hint = refusal(setting, value)
        return _finding(Severity.ERROR, origin, found, "", hint)
    if setting.support is Support.REPORTED and value != setting.default:
        return _finding(Severity.NOTICE, origin, f"{_shown(setting, value)} has no effect: {setting.how}")
    return None


def refusal(setting: Setting, value: str) -> tuple[str, str]:
    """Say that a setting is not served, and what to do instead."""
    how = f"{setting.how[:1].upper()}{setting.how[1:]}."
    return f"{_shown(setting, value)} is not supported in this version", how


def _shown(setting: Setting, value: str) -> str:
    return f"{setting.name}={value}"[:_SHOWN]


def without_effect(origin: "Origin", why: str, hint: str = "") -> Finding:
    """Say that what stands there is not read, and why."""
    return _finding(Severity.NOTICE, origin, f"{origin.key} has no effect: {why}", "", hint)


def _finding(
    severity: Severity,
    origin: "Origin",
    found: str,
    expected: str = "",
    hint: str = "",
    mends: tuple[Change, ...] = (),
) -> Finding:
    return Finding(severity, origin.file, origin.line, origin.key, found, expected, hint, mends=mends)
