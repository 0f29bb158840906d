"""Logs bodies that are called a form, as `curl -d` calls whatever it sends, and are none.

Said once for each model, since it is a habit of the client's, and it explains what the model answers.
"""

import logging

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import without_controls
from trivium.types.payload import Raw

MOST_MODELS = 256
"""Models of which it is remembered that it was said."""

_HABIT = "curl -d calls whatever it sends a form: add -H 'Content-Type: application/json'"

log = logging.getLogger(__name__)


class FormNotes:
    """Logs, once for each model, what becomes of a body that is called a form and is none. Handlers get it as the
    `original` gives it to them, if one is named.
    """

    def __init__(self, original: str = "") -> None:
        self._original = original
        self._told: set[str] = set()

    def note(self, model: str, content_type: str, raw: Raw) -> None:
        """Look at a request's body that was not empty."""
        if (raw.parts and raw.whole is None) or model in self._told or len(self._told) >= MOST_MODELS:
            return
        self._told.add(model)
        log.warning(
            "A request to model '%s' came as %s, and %s. This is said once.",
            without_controls(wire_text(model)),
            without_controls(wire_text(content_type[:80])),
            self._what(raw),
        )

    def _what(self, raw: Raw) -> str:
        if raw.whole is None:
            return (
                "its body has no field of a form: the handler gets nothing of it. "
                f"{_HABIT}, or send a file with -T FILE"
            )
        if self._original:
            return (
                f"its body is JSON by its looks: a handler gets it as a form, as from {self._original}, every other "
                f"model as JSON. {_HABIT}"
            )
        return f"its body is JSON by its looks: it is read as JSON. {_HABIT}"
