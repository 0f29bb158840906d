"""Holds what all connections of one HTTP/2 front end share, apart from the site of their calls.

Decides whether a call is let in. Knows no connection, and opens no socket.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from trivium.codecs.compression import Inflater
from trivium.frontends.h2.frames import MOST_STREAM
from trivium.frontends.h2.rpc_head import RpcHead
from trivium.frontends.h2.state import RESOURCE_EXHAUSTED, GrpcState, RpcMethod
from trivium.frontends.shares import AddressUse, has_room
from trivium.frontends.turns import Offload, TurnQueue
from trivium.types.access import AccessScope
from trivium.types.errors import ServeError, frameless
from trivium.types.interfaces import ALLOW_ALL
from trivium.types.shares import share_of
from trivium.types.wire import RpcAnswer, RpcCall

_TOO_MANY = RpcAnswer(code=RESOURCE_EXHAUSTED, details="Concurrent RPC limit exceeded!")  # grpcio's words

SCRATCH_BYTES = 256 * 1024


@dataclass(slots=True, eq=False)
class Shared:
    """Used on the loop only. `monotonic` and `epoch` are clocks, in seconds. `methods`: those that have been
    called. `scratch` is what every connection receives into, one at a time; `emptied` is set when the last one has
    gone.
    """

    site: GrpcState
    monotonic: Callable[[], float]
    epoch: Callable[[], float]
    offload: Offload
    emptied: asyncio.Event
    methods: dict[str, RpcMethod] = field(default_factory=dict)
    turns: TurnQueue = field(default_factory=TurnQueue)
    scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(SCRATCH_BYTES)))
    coding: str = field(init=False)
    inflater: Inflater = field(init=False)
    most_unsent: int = field(init=False)
    streams: int = field(init=False)
    """That one connection may have open; so many as nobody has, where the limit of calls is too low to be shared."""
    freely: int = field(init=False)
    """Calls below which it does not matter whose they are."""

    def __post_init__(self) -> None:
        limits = self.site.limits
        self.coding = "" if limits.compression == "none" else limits.compression
        self.inflater = Inflater(limits.message_bytes, limits.total_message_bytes)
        self.most_unsent = limits.total_message_bytes // 8
        share = share_of(limits.calls)
        self.streams = share if share < limits.calls else MOST_STREAM
        self.freely = limits.calls // 4 * 3

    def why_not(self, head: RpcHead, unsent: int, use: AddressUse) -> RpcAnswer | None:
        """The refusal of a call that is not let in. `unsent`: bytes of responses that its connection has not taken;
        `use`: what its address has taken.
        """
        if head.code:
            return RpcAnswer(code=head.code, details=head.details)
        calls = len(self.site.visits)
        if calls >= self.freely and not has_room(self.site.limits.calls, calls, use.calls):
            return _TOO_MANY
        if unsent > self.most_unsent:
            text = (
                f"The client has left {unsent} bytes of responses unread; the limit is {self.most_unsent}. Read "
                "faster, or ask for less at a time."
            )
            return RpcAnswer(code=RESOURCE_EXHAUSTED, details=text)
        scope, missing = AccessScope.ANY, None  # only who has a key hears what there is not
        try:
            scope = self._find_method(head.method).scope
        except ServeError as error:
            missing = frameless(error)
        call = RpcCall(head.method, head.metadata, head.timeout)
        if self.site.authorizer is not ALLOW_ALL and (denied := self.site.denied(scope, call)):
            return denied
        return None if missing is None else self.site.refuse(RpcCall(head.method), missing)

    def _find_method(self, name: str) -> RpcMethod:
        found = self.methods.get(name)
        if found is None:  # few: those that there are
            protocol = self.site.protocol_of(name)
            found = self.methods[name] = RpcMethod(protocol.kind(name), protocol.scope(name), protocol)
        return found
