"""The token check of a TorchServe: who shows the key of a port gets in by it. And the file that the keys are read from.

Source: spec sheet `torchserve`, section 2: a failure is 400 over HTTP and PERMISSION_DENIED over gRPC; descriptions
need no key, and `/token` on the port of management needs the one of renewal.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from trivium.codecs.credentials import credential
from trivium.profiles import GRPC, GRPC_MANAGEMENT, HTTP, MANAGEMENT, METRICS
from trivium.servers.torchserve.wire.grpc import SERVICES
from trivium.servers.torchserve.wire.routes import is_description
from trivium.servers.torchserve.wire.token_renewal import is_renewal
from trivium.servers.torchserve.words.tokens import AUTHENTICATION, AUTHORIZATION, TokenPurpose, Tokens
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer
from trivium.types.listeners import Listener, Role
from trivium.types.wire import Head, RpcCall

KEY_FILE = "key_file.json"
_KEY_BYTES = 24
_MANAGING_SCOPES = frozenset({AccessScope.OBSERVE, AccessScope.MANAGE})
_MANAGING_RPCS = tuple(f"/{service}/" for service in SERVICES[Role.MANAGEMENT])
_INVALID_KEY = 400


class TokenAuthorizer:
    """Implements `Authorizer` by the key of one purpose, whatever right is needed. At an address where models are
    called and managed (`is_shared`), what manages them takes the key of management all the same.
    """

    def __init__(self, tokens: Tokens, purpose: TokenPurpose, is_shared: bool = False) -> None:
        self._tokens = tokens
        self._purpose = purpose
        self._is_shared = is_shared

    def authorize(self, scope: AccessScope, request: Head | RpcCall) -> None:
        """See `Authorizer`."""
        if isinstance(request, RpcCall):
            manages = self._is_shared and request.method.startswith(_MANAGING_RPCS)
            purpose = TokenPurpose.MANAGEMENT if manages else self._purpose
            if not self._tokens.opens(purpose, credential(request)):
                raise ServeError(Code.FORBIDDEN, AUTHORIZATION)
            return
        if is_description(request):  # and not a model of that name
            return
        manages = self._is_shared or self._purpose is TokenPurpose.MANAGEMENT
        renews = manages and is_renewal(request)  # and not a model of that name
        purpose = self._purpose
        if renews:
            purpose = TokenPurpose.RENEWAL
        elif self._is_shared and scope in _MANAGING_SCOPES:
            purpose = TokenPurpose.MANAGEMENT
        if not self._tokens.opens(purpose, credential(request)):
            words = AUTHENTICATION if renews else AUTHORIZATION
            raise ServeError(Code.UNAUTHENTICATED, words, status=_INVALID_KEY)


def authorizers(tokens: Tokens | None, listeners: Iterable[Listener] = ()) -> Mapping[str, Authorizer]:
    """Return who decides at each of the listeners; none where nobody needs a key."""
    if tokens is None:
        return {}
    shared = {
        each.name
        for each in listeners
        if each.role is Role.INFERENCE and any(route.role is Role.MANAGEMENT for route in each.routes)
    }
    infer = {name: TokenAuthorizer(tokens, TokenPurpose.INFERENCE, name in shared) for name in (HTTP, GRPC)}
    manage = TokenAuthorizer(tokens, TokenPurpose.MANAGEMENT)
    return {**infer, MANAGEMENT: manage, GRPC_MANAGEMENT: manage, METRICS: ALLOW_ALL}


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
