"""The one tree of errors. Codes are neutral: each wire has one table from code to its status.

An error teaches: what was found, where, what was expected, the next step. Translate foreign exceptions into
it at the border and keep the cause (`raise ... from error`).
"""

import traceback
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from trivium.types.error_info import ErrorInfo
from trivium.types.findings import Finding, Severity


class Code(Enum):
    """Why something was refused or failed; what a wire makes of it is that protocol's one error table."""

    INVALID = "invalid"  # the client's request cannot be right, whatever the state of the server
    NOT_FOUND = "not found"  # no such model, version or route
    METHOD = "method"  # the route is there, but not for this method
    NOT_READY = "not ready"  # the model is known and will not serve now (loading, failed, unloaded)
    TOO_LARGE = "too large"  # a body, header or batch beyond a limit
    UNSUPPORTED_MEDIA = "unsupported media"  # a payload that the model cannot take
    UNSUPPORTED = "unsupported"  # a valid wish that this server does not serve
    UNAUTHENTICATED = "unauthenticated"  # who asks has not said who it is, or not credibly
    FORBIDDEN = "forbidden"  # who asks may not do this here
    CONFLICT = "conflict"  # it contradicts what there is already
    QUEUE_FULL = "queue full"  # try again after `retry_after`
    EXPIRED = "expired"  # its time in the queue, or to run, was up
    CANCELLED = "cancelled"  # its client left or asked for it
    DRAINING = "draining"  # the server is going down
    LOAD_FAILED = "load failed"  # a model could not be opened
    MODEL_FAILED = "model failed"  # the model raised, or returned what it must not
    WORKER_DIED = "worker died"  # the instance was lost with the item in it
    OUT_OF_MEMORY = "out of memory"  # the model said that it lacked memory for this
    UNKNOWN = "unknown"  # the model failed, and says that it does not know why
    INTERNAL = "internal"  # our own fault


class ServeError(Exception):
    """Ends a request, a load or a command with a code and a sentence; every foreign exception becomes one.

    `message` is one or more full sentences for the person at the other end: what was found, where, what was expected,
    the next step. `retry_after` is in seconds, where waiting helps. `status` is the HTTP status, from 400 to 599, that
    a handler asked for, if it did; it goes before a wire's own table. `info` says the same as `message` in a form for
    programs: a wire that has texts of its own finds them by its reason. `is_logged`: its sentence is in the log
    already. `is_reworded`: it has the text of another server alone, and comes from the error that says why.
    """

    is_logged = False
    is_reworded = False

    def __init__(
        self,
        code: Code,
        message: str,
        retry_after: float | None = None,
        status: int | None = None,
        info: ErrorInfo | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.status = status
        self.info = info

    @property
    def reason(self) -> str:
        """The reason in `info`; empty without one."""
        return "" if self.info is None else self.info.reason

    @property
    def metadata(self) -> Mapping[str, object]:
        """The metadata in `info`; empty without one."""
        return {} if self.info is None else self.info.metadata


class RunAgain(ServeError):
    """No end: the model wants the request back, to go on with it. An error where nobody gives it back."""


class ConfigError(ServeError):
    """A model folder or configuration file that cannot be served as written; names every fault found."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        faults = [finding for finding in findings if finding.severity is Severity.ERROR]
        info = next((finding.info for finding in faults), None)
        super().__init__(Code.LOAD_FAILED, "; ".join(map(str, faults)), info=info)
        self.findings = findings


def with_facts(error: ServeError, **facts: object) -> ServeError:
    """Return the same error with more facts about its request; those that it has go before."""
    other = anew(error)
    other.info = ErrorInfo(error.reason, {**facts, **error.metadata})
    return other


Raised = TypeVar("Raised", bound=BaseException)


def frameless(error: Raised) -> Raised:
    """Return the error without its frames, and all that it comes from without theirs.

    For an error that is handed on or kept as a value: its frames and those of their callers would keep whatever they
    had in hand, the request and the error itself among it, until the garbage collector looks.
    """
    if error.__traceback__ is None and error.__cause__ is None and error.__context__ is None:
        return error
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += (one.__cause__, one.__context__)
    return error


def said_by(error: BaseException) -> str:
    """Return an error's words for somebody who may not be the operator: of the system's errors without the names of
    files, which their text has, since those are paths of the server. The only way from a caught error into a text.
    """
    if isinstance(error, OSError):
        return error.strerror or (
            error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else ""
        )
    return str(error)


def named(error: BaseException) -> str:
    """Return an error's class and its words, as `said_by` has them."""
    return f"{type(error).__name__}: {said_by(error)}"


def noted(error: Raised) -> Raised:
    """Return the error without its frames, as `frameless` does. One that is no ServeError, and so a fault that a log
    will show, has its traceback as text among its notes.
    """
    if error.__traceback__ is not None and not isinstance(error, ServeError):
        error.add_note("".join(traceback.format_exception(error)).rstrip())
    return frameless(error)


def anew(error: Raised) -> Raised:
    """Return an error like this one, to be raised. This one may be a value that others hold, who raises it among them:
    it gets no frames.
    """
    if not isinstance(error, ServeError):
        return error
    other = error.__new__(type(error), *error.args)
    other.__dict__.update(error.__dict__)
    other.__cause__, other.__suppress_context__ = error.__cause__, error.__suppress_context__
    return other


def unwritable(error: Exception) -> ServeError:
    """Return the error of an answer that fails while it is written: an encoder never raises, and the text says whose
    fault it is.
    """
    if isinstance(error, ServeError):
        return frameless(error)
    return ServeError(
        Code.INTERNAL,
        f"The answer could not be written: {named(error)}. Report it.",
    )
