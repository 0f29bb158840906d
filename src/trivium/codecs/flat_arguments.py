"""Reads the arguments of a request, which are text, numbers or truth values, from its query or a JSON object."""

import json
from urllib.parse import parse_qsl

from trivium.codecs.header_text import essence
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Body, Head

_MOST_ARGUMENTS = 1000
_LONGEST_JSON = 2**16


def read_arguments(head: Head, body: Body, example: str = "") -> dict[str, str]:
    """Return the members of a JSON body, if an `example` says that there may be one, or the arguments of the query.
    INVALID for what cannot be read.
    """
    content_type = head.headers.get(b"content-type", b"").decode("latin-1")
    if example and essence(content_type) == "application/json":
        return read_members(body.data, example)
    return read_query(head.query)


def read_query(query: str) -> dict[str, str]:
    """Return the arguments of a query string by name, of repeated ones the first. INVALID where it has more than 1000,
    or is not UTF-8.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_MOST_ARGUMENTS)
    except ValueError as error:
        raise ServeError(
            Code.INVALID,
            f"The query string cannot be read ({error}). Send at most {_MOST_ARGUMENTS} arguments, percent-encoded as "
            "UTF-8.",
        ) from error
    return dict(reversed(pairs))


def read_members(data: bytes | bytearray | memoryview, example: str) -> dict[str, str]:
    """Return the members of a JSON object as text, truth values as `true` and `false`, without those that are null.
    INVALID, with the example, for what is longer than 64 KiB, or is no object of such values.
    """
    if len(data) > _LONGEST_JSON:
        raise ServeError(
            Code.INVALID,
            f"The body has {len(data)} bytes; arguments have {_LONGEST_JSON} at most. Send what is needed, such as "
            f"{example}.",
        )
    try:
        document = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise _unread(f"The body is no JSON ({error}).", example) from error
    if not isinstance(document, dict):
        raise _unread("The body is no JSON object.", example)
    found = {}
    for name, value in document.items():
        if isinstance(value, dict | list):
            raise _unread(f"The member {name[:80]!r} is no text, number or truth value.", example)
        if value is not None:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _unread(found: str, example: str) -> ServeError:
    return ServeError(Code.INVALID, f"{found} Send an object, such as {example}.")
