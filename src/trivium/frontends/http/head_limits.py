"""Limits on a request's head, and the sentences for one that is beyond them. Pure."""

from collections.abc import Mapping

from trivium.frontends.limits import HttpLimits
from trivium.types.errors import Code, ServeError

_AROUND = 4
"""Bytes of a field beside its name and value: a colon, a space, and the end of the line."""


def check_fields(headers: Mapping[bytes, bytes], limits: HttpLimits) -> None:
    """Raise TOO_LARGE for more fields, or more bytes of them, than a head may have."""
    if len(headers) > limits.header_count:
        raise many_fields(limits)
    if sum(len(name) + len(value) + _AROUND for name, value in headers.items()) > limits.header_bytes:
        raise long_fields(limits)


def long_target(limits: HttpLimits) -> ServeError:
    """Return the error of a request target that is too long."""
    text = f"the request target is longer than {limits.url_bytes} bytes; shorten it."
    return ServeError(Code.TOO_LARGE, text, status=414)


def long_fields(limits: HttpLimits) -> ServeError:
    """Return the error of header fields that have too many bytes."""
    text = f"the header fields exceed {limits.header_bytes} bytes; send fewer or shorter ones."
    return ServeError(Code.TOO_LARGE, text, status=431)


def many_fields(limits: HttpLimits) -> ServeError:
    """Return the error of too many header fields."""
    text = f"there are more than {limits.header_count} header fields; send fewer."
    return ServeError(Code.TOO_LARGE, text, status=431)
