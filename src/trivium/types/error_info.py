"""Why an operation failed, in a form that a program can read; every wire turns it into its own text and status."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Carries a reason with metadata by name, in addition to the sentence of an error (after google.rpc.ErrorInfo,
    AIP-193).

    `reason` is an open string, owned by whoever raises the error: see `types.reasons`.
    """

    reason: str
    metadata: Mapping[str, object]

    @classmethod
    def of(cls, reason: str, /, **metadata: object) -> "ErrorInfo":
        """Make one from keyword arguments."""
        return cls(reason, metadata)
