"""The token check of a TorchServe: who shows the key of a port gets in by it. And the file that the keys are read from.

Source: spec sheet `torchserve`, section 2: a failure is 400 over HTTP and PERMISSION_DENIED over gRPC; descriptions
need no key, and `/token` on the port of management needs the one of renewal.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from trivium.dialects.torchserve.tokens import AUTHENTICATION, AUTHORIZATION, TokenPurpose, Tokens
from trivium.profiles import GRPC, GRPC_MANAGEMENT, HTTP, MANAGEMENT, METRICS
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer
from trivium.types.wire import Head, RpcCall

KEY_FILE = "key_file.json"
_KEY_BYTES = 24
_INVALID_KEY = 400


class TokenAuthorizer:
    """Implements `Authorizer` by the key of one purpose, whatever right is needed."""

    def __init__(self, tokens: Tokens, purpose: TokenPurpose) -> None:
        self._tokens = tokens
        self._purpose = purpose

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """See `Authorizer`."""
        if isinstance(request, RpcCall):
            if not self._tokens.opens(self._purpose, request.metadata.get("authorization", "")):
                raise ServeError(Code.FORBIDDEN, AUTHORIZATION)
            return
        first = request.path.split("/")[1:2]
        if first == ["api-description"] or (first == [""] and request.method == "OPTIONS"):
            return
        shown = request.headers.get(b"authorization", b"").decode("latin-1")
        renews = self._purpose is TokenPurpose.MANAGEMENT and first == ["token"]
        purpose = TokenPurpose.RENEWAL if renews else self._purpose
        if not self._tokens.opens(purpose, shown):
            words = AUTHENTICATION if renews else AUTHORIZATION
            raise ServeError(Code.UNAUTHENTICATED, words, status=_INVALID_KEY)


def authorizers(tokens: Tokens | None) -> Mapping[str, Authorizer]:
    """Return who decides at each listener; none where nobody needs a key."""
    if tokens is None:
        return {}
    infer = TokenAuthorizer(tokens, TokenPurpose.INFERENCE)
    manage = TokenAuthorizer(tokens, TokenPurpose.MANAGEMENT)
    return {HTTP: infer, GRPC: infer, MANAGEMENT: manage, GRPC_MANAGEMENT: manage, METRICS: ALLOW_ALL}


class KeyFileWriter:
    """Writes the document of keys, for its owner's eyes alone; whoever reads it finds all of it or the one before."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, document: bytes) -> None:
        """Write it. Raises INVALID, with what to do, where that cannot be."""
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            beside.unlink(missing_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(document)
            beside.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise ServeError(
                Code.INVALID,
                f"The keys cannot be written to {self.path}: {error.strerror or error}. Start in a folder that can be "
                "written, make room there, or switch the token check off (--disable-token-auth).",
            ) from error

    def remove(self) -> None:
        """Take it away, as far as it can be."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def make_tokens(lifetime: float, write: KeyFileWriter) -> Tokens:
    """Make the keys of a server, and write them. Raises INVALID, as the writer."""
    return Tokens(lambda: secrets.token_urlsafe(_KEY_BYTES), time.time, lifetime, write)
