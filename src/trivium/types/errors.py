"""The one tree of errors. Codes are neutral: each wire has one table from code to its status.

An error teaches: what was found, where, what was expected, the next step. Translate foreign exceptions into
it at the border and keep the cause (`raise ... from error`).
"""

from enum import Enum

from trivium.types.faults import Fault
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
    """Anything that ends a request, a load or a command otherwise than well.

    `message` is one or more full sentences for the person at the other end: found, where, expected, next
    step. `retry_after` is in seconds, where waiting helps. `status` is the HTTP status that a handler asked
    for, where it did; it goes before a wire's own table. `fault` says the same as `message` in facts, for wires
    with words of their own.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        retry_after: float | None = None,
        status: int | None = None,
        fault: Fault | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.status = status
        self.fault = fault


class RunAgain(ServeError):
    """No end: the model wants the request back, to go on with it. An error where nobody gives it back."""


class ConfigError(ServeError):
    """A model folder or configuration file that cannot be served as written; names every fault found."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        faults = [finding for finding in findings if finding.severity is Severity.ERROR]
        told = next((finding.fault for finding in faults), None)
        super().__init__(Code.LOAD_FAILED, "; ".join(map(str, faults)), fault=told)
        self.findings = findings
