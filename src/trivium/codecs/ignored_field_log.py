"""Tells which fields of requests have no effect: in a header line of each answer, and in the log once per field."""

import logging

from trivium.codecs.near_names import near
from trivium.types.ignored_fields import IgnoredFields

log = logging.getLogger(__name__)

MOST_REMEMBERED = 100
"""Fields of each model that are remembered, and told once: clients could send ever new ones."""

MOST_MODELS = 1000
LONGEST = 64
_HEADER = b"Trivium-Ignored: %b\r\n"


class IgnoredFieldLog:
    """One per server."""

    def __init__(self) -> None:
        self._told: dict[str, set[str]] = {}
        self.counts: dict[str, int] = {}
        """How many fields of requests had no effect, by model."""

    def told(self, model: str, ignored: IgnoredFields) -> bytes:
        """Return the header line that names the fields of a request, and log those that are new; empty for none."""
        if not ignored.found:
            return b""
        if model in self._told or len(self._told) < MOST_MODELS:
            self._log(model, ignored, self._told.setdefault(model, set()))
            self.counts[model] = self.counts.get(model, 0) + len(ignored.found)
        return _HEADER % ", ".join(dict.fromkeys(map(_visible, ignored.found))).encode("ascii")

    def _log(self, model: str, ignored: IgnoredFields, told: set[str]) -> None:
        for name, known in ignored.found.items():
            shown = _visible(name)
            if shown in told or len(told) >= MOST_REMEMBERED:
                continue
            told.add(shown)
            meant = near(name, known) if known else ""
            why = "is not known here" if known else "has no effect here"
            hint = f" Did its sender mean '{meant}'?" if meant else ""
            log.warning(
                "model '%s': the field '%s' of a request %s, and is ignored.%s", model, shown, why, hint
            )


def _visible(name: str) -> str:
    """Return a name as a header line can list it: what cannot be seen, or would end it, is a question mark."""
    return "".join(one if "!" <= one <= "~" and one != "," else "?" for one in name[:LONGEST])
