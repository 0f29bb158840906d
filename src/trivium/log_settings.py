"""Sets how much this process logs, while it runs. Logging is the process's, and so is this.

Its level keeps what nobody reads from being made; switches that the level cannot express are kept by the handlers,
which ask `ProcessLog.passes`.
"""

import logging

import msgspec

from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogChange, LogSettings


class ProcessLog:
    """Sets the log of one logger and of all below it."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._settings: LogSettings | None = None
        self._has_forms = False

    @property
    def settings(self) -> LogSettings:
        """Return the settings that were made last; until then what the logger's level comes to."""
        if self._settings is not None:
            return self._settings
        least = self._logger.getEffectiveLevel()
        return LogSettings(
            int(least <= logging.DEBUG),
            least <= logging.INFO,
            least <= logging.WARNING,
            least <= logging.ERROR,
        )

    def use(self, settings: LogSettings, has_forms: bool) -> None:
        """Log by these settings from now on. `has_forms`: the handlers look at `is_iso`, so that it can be changed."""
        self._settings = settings
        self._has_forms = has_forms
        self._logger.setLevel(settings.least)

    def change(self, change: LogChange) -> LogSettings:
        """The settings that hold then. UNSUPPORTED for a form that the handlers do not have."""
        fields = msgspec.structs.asdict(change)
        told = {name: value for name, value in fields.items() if value is not None}
        if change.is_iso and not self._has_forms:
            raise ServeError(
                Code.UNSUPPORTED,
                "The form of the log's lines cannot be changed here: there is one. Leave log_format out.",
            )
        if told:
            self.use(msgspec.structs.replace(self.settings, **told), self._has_forms)
        return self.settings

    def passes(self, record: logging.LogRecord) -> bool:
        """Is it written? For handlers, as a filter."""
        return self._settings is None or self._settings.writes(record.levelno)


LOG = ProcessLog(logging.getLogger("trivium"))
