"""Settings of the log, how much is written and in which form, and changes to them."""

import logging

import msgspec

SILENCE = logging.CRITICAL + 10
"""Beyond every level."""


class LogSettings(msgspec.Struct, frozen=True):
    """Says what is written, in which form, and to which file (empty: standard error). The switches do not depend on
    one another; what is there for debugging is written from a `verbose` of 1 on.
    """

    verbose: int = 0
    info: bool = True
    warning: bool = True
    error: bool = True
    is_iso: bool = False
    file: str = ""

    @property
    def least(self) -> int:
        """The least level that is written, in the numbers of `logging`."""
        if self.verbose > 0:
            return logging.DEBUG
        switches = ((self.info, logging.INFO), (self.warning, logging.WARNING), (self.error, logging.ERROR))
        return next((level for is_on, level in switches if is_on), SILENCE)

    def writes(self, level: int) -> bool:
        """Is a record of this level written?"""
        if level < logging.INFO:
            return self.verbose > 0
        if level < logging.WARNING:
            return self.info
        return self.warning if level < logging.ERROR else self.error


class LogChange(msgspec.Struct, frozen=True):
    """New settings; None leaves what is."""

    verbose: int | None = None
    info: bool | None = None
    warning: bool | None = None
    error: bool | None = None
    is_iso: bool | None = None


NO_LOG_CHANGE = LogChange()
