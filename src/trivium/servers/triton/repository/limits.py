"""The limits of a Triton model: the server's defaults, and how long a run may take, which the model may say itself.

Triton has no key for that; a free parameter of our own is one that the original passes over.
"""

import math

from trivium.servers.triton.repository.environments import key_of
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Finding
from trivium.types.spec import Defaults, Limits, Origin

RUN_TIMEOUT = "TRIVIUM_RUN_TIMEOUT"
_QUEUE_RULE = "the server's default bound (Triton itself sets none)"
_RUN_RULE = "--run-timeout of the server (Triton itself sets none)"


def limits(text: ConfigText, defaults: Defaults) -> Limits:
    """Return the limits of a checked configuration."""
    own = _seconds(text)
    return Limits(
        queue_items=defaults.queue_items,
        run_deadline=defaults.run_deadline if own is None else own or None,
        startup_deadline=defaults.startup_deadline,
    )


def origins(text: ConfigText) -> dict[str, Origin]:
    """Return where each limit comes from."""
    key = key_of(text, RUN_TIMEOUT)
    run = Origin(_RUN_RULE, "") if _seconds(text) is None else Origin(text.file, key, text.line(key))
    return {
        "limits.queue_items": Origin(_QUEUE_RULE, ""),
        "limits.run_deadline": run,
        "limits.startup_deadline": Origin("--startup-timeout of the server", ""),
    }


def check(text: ConfigText) -> list[Finding]:
    """Return what is wrong with the model's own limits."""
    seconds = _seconds(text)
    if seconds is None or 0 <= seconds < math.inf:
        return []
    found = repr(text.config.parameters[RUN_TIMEOUT].string_value)
    expected = "seconds that a run may take, like 30; 0 for any time"
    return [text.fault(key_of(text, RUN_TIMEOUT), found, expected, "Correct it, or leave the parameter out.")]


def _seconds(text: ConfigText) -> float | None:
    """Return what the model says; not a number where it is none, None where it says nothing."""
    if RUN_TIMEOUT not in text.config.parameters:
        return None
    try:
        return float(text.config.parameters[RUN_TIMEOUT].string_value)
    except ValueError:
        return math.nan
