"""Refusals of HTTP itself, whose statuses no neutral code tells apart."""

from trivium.types.errors import Code, ServeError


class HttpFault(ServeError):
    """Answered with `status`, whatever the protocol makes of the code; the body is the protocol's own form."""

    def __init__(self, status: int, code: Code, message: str, retry_after: float | None = None) -> None:
        super().__init__(code, message, retry_after)
        self.status = status


def malformed(message: str) -> HttpFault:
    """The bytes are not HTTP/1.1 as RFC 9110 and RFC 9112 write it."""
    return HttpFault(400, Code.INVALID, message)
