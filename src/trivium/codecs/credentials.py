"""Reads what a request shows to be let in, or to use what is restricted, over HTTP and gRPC alike. Pure.

A front end refuses a request in which `AUTHORIZATION` comes twice, and joins whatever else does: of two that are shown,
somebody in between may have looked at the other.
"""

from trivium.types.wire import Head, RpcCall

AUTHORIZATION = "authorization"
"""The header, and the metadata, in which a key comes."""

AUTHORIZATION_HEADER = AUTHORIZATION.encode()
TWICE = "came twice; send it once."
"""What is said of one that may not."""


def credential(request: Head | RpcCall, name: str = AUTHORIZATION) -> str:
    """Return what a request shows under a name in lower case; empty where that is nothing."""
    if isinstance(request, Head):
        return request.headers.get(name.encode(), b"").decode("latin-1")
    return request.metadata.get(name, "")
