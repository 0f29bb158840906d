"""A gRPC service under a second name: a protocol whose calls come to one name, and are understood as another's.

Some servers offer a service that others know under a package of their own. Which names there are the composition root
says.
"""

from collections.abc import Mapping, Sequence

import msgspec

from trivium.codecs.protobuf_services import renamed
from trivium.types.access import AccessScope
from trivium.types.described import SupportsReflection
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RpcEncoder, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Operation
from trivium.types.protocol_context import ProtocolContext, RpcProtocolEntry
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind


class RenamedService:
    """Lists a protocol as `RpcProtocolEntry` does: its service `own` alone, under the name `other`."""

    def __init__(self, entry: RpcProtocolEntry, own: str, other: str) -> None:
        self._entry = entry
        self._own, self._other = f"/{own}/", f"/{other}/"
        self.SERVICES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: (other,)}
        self.SCOPES: Mapping[str, AccessScope] = {
            self._other + method.removeprefix(self._own): scope
            for method, scope in entry.SCOPES.items()
            if method.startswith(self._own)
        }

    def descriptors(self) -> Sequence[bytes]:
        """See `types.described.SupportsReflection`: the files of its package, under that of the other name."""
        package, other = (name.strip("/").rpartition(".")[0] for name in (self._own, self._other))
        files = self._entry.descriptors() if isinstance(self._entry, SupportsReflection) else ()
        return renamed(files, package, other, other.replace(".", "/"))

    def make(self, context: ProtocolContext) -> RpcProtocol:
        """Make it for one listener. Raises as the protocol does."""
        return RenamedRpcs(self._entry.make(context), self._own, self._other)


class RenamedRpcs:
    """Implements `RpcProtocol` by another one, which knows methods that begin with `other` as beginning with `own`."""

    def __init__(self, protocol: RpcProtocol, own: str, other: str) -> None:
        self._protocol = protocol
        self._own, self._other = own, other

    def kind(self, method: str) -> RpcKind:
        """See `RpcProtocol`."""
        if not method.startswith(self._other):
            raise ServeError(
                Code.UNSUPPORTED,
                f"There is no RPC {method[:200]!r} here; those of this service begin with {self._other}.",
            )
        return self._protocol.kind(self._named(method))

    def scope(self, method: str) -> AccessScope:
        """See `RpcProtocol`."""
        return self._protocol.scope(self._named(method))

    def admit(self, call: RpcCall) -> None:
        """See `RpcProtocol`."""
        self._protocol.admit(self._called(call))

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """See `RpcProtocol`."""
        return self._protocol.is_costly(self._called(call), message)

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        """See `RpcProtocol`."""
        return self._protocol.decode(self._called(call), message)

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """See `RpcProtocol`."""
        return self._protocol.refuse(self._called(call), error)

    def _named(self, method: str) -> str:
        return self._own + method.removeprefix(self._other) if method.startswith(self._other) else method

    def _called(self, call: RpcCall) -> RpcCall:
        return msgspec.structs.replace(call, method=self._named(call.method))
