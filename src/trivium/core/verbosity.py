"""How much the package logs, changed while it runs. All of it goes by one logger, whose level is the whole state."""

import logging
from collections.abc import Mapping

from trivium.types.errors import Code, ServeError

WORDS = ("debug", "info", "warning", "error", "none")
"""Rising; each one's messages come with all those behind it. `none` is beyond everything."""

_NUMBERS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL + 10)


def switch(logger: logging.Logger, switches: Mapping[str, bool]) -> str:
    """Turn levels on and off and tell the least one that is on then. INVALID for a word that is no level, and for
    one that shall be on while one above it shall be off.
    """
    unknown = [word for word in switches if word not in WORDS[:-1]]
    if unknown:
        raise ServeError(
            Code.INVALID, f"There is no log level {unknown[0][:40]!r}; there are: {', '.join(WORDS[:-1])}."
        )
    on = [WORDS.index(word) for word, is_on in switches.items() if is_on]
    off = [WORDS.index(word) for word, is_on in switches.items() if not is_on]
    if on and off and min(on) < max(off):
        raise ServeError(
            Code.INVALID,
            f"The log cannot have {WORDS[min(on)]!r} on and {WORDS[max(off)]!r} off: what is more important is logged, "
            "too. Switch off what is less important alone.",
        )
    least = logger.getEffectiveLevel()
    index = next((i for i, number in enumerate(_NUMBERS) if number >= least), len(WORDS) - 1)
    index = max(min([index, *on]), max([0, *(at + 1 for at in off)]))
    if switches:
        logger.setLevel(_NUMBERS[index])
    return WORDS[index]
