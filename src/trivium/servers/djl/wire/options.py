"""Options of DJL's protocol: what an operator can set about it, and what a listener is for."""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.servers.djl.wire.config import DjlConfig
from trivium.servers.djl.wire.meter import DjlMeter
from trivium.servers.djl.words.error_rate_policy import read_rates
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.protocol_context import ProtocolContext
from trivium.types.spoken import spoken

_CODES: Mapping[str, tuple[Code, ...]] = {
    "bad_request": (Code.INVALID,),
    "wlm_error": (Code.NOT_READY, Code.WORKER_DIED, Code.EXPIRED, Code.DRAINING),
    "throttle": (Code.QUEUE_FULL,),
    "server_error": (Code.INTERNAL,),
}
"""The original's name for a kind of error of inference -> the codes of that kind (sheet `djl`, section 1.3)."""


@dataclass(frozen=True, slots=True)
class LazyRule:
    """Holds which URLs of models predictions may give."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class DjlOptions:
    """Holds how the protocol is spoken on one listener.

    `tensors_as` is the content type of tensors for a client that asks for none. `exact`: errors have the original's
    texts. What is for other `roles` is not there; with `may_change` clients may change what is served. `multi_status`:
    /ping is 207 while a model is being loaded. A request's id is read from the header `request_id` (lower case).
    `statuses` go before those of the table of errors, on inference. With `handler_override` a request may name the
    function of the handler that answers it; with `prometheus` metrics of models are at /server/metrics. The `meter`
    counts answers for all listeners of a server. By the rule `lazy` predictions register models.
    `epoch` says the time in seconds of the Unix epoch.
    """

    tensors_as: str = "tensor/ndlist"
    exact: bool = False
    roles: Set[Role] = frozenset(Role)
    may_change: bool = True
    multi_status: bool = False
    request_id: bytes = b"x-request-id"
    statuses: Mapping[Code, int] = field(default_factory=dict)
    handler_override: bool = False
    prometheus: bool = False
    meter: DjlMeter = field(default_factory=DjlMeter)
    lazy: LazyRule | None = None
    epoch: Callable[[], float] = lambda: 0.0
    ignored: IgnoredFieldLog | None = None
    """Tells of fields of requests to generate that have no effect; without it they are refused."""


def options_of(context: ProtocolContext) -> DjlOptions:
    """Read what the operator has set. Tensors go out as NDLists where DJL's own clients are served, else as JSON.

    Raises INVALID for statuses and rates that cannot be.
    """
    own = context.own.read(DjlConfig)
    return DjlOptions(
        "tensor/ndlist" if context.as_original else "application/json",
        context.as_original,
        context.roles,
        context.may_change,
        own.multi_status,
        own.request_id_header.strip().lower().encode(),
        read_statuses(own.statuses),
        own.handler_override,
        own.prometheus,
        meter_of(context),
        context.states.find(LazyRule) if context.may_change else None,
        context.epoch,
        None if context.strict_requests else context.states.of(IgnoredFieldLog),
    )


def meter_of(context: ProtocolContext) -> DjlMeter:
    """Return the meter of the server that a listener belongs to. Raises INVALID for rates that cannot be."""
    rates = context.own.read(DjlConfig).error_rates
    return context.states.of(DjlMeter, lambda: DjlMeter(read_rates(rates), context.now))


def read_statuses(text: str) -> dict[Code, int]:
    """Read `NAME=STATUS` pairs with commas between. Raises INVALID for what is none."""
    found: dict[Code, int] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, _, number = pair.partition("=")
        codes = _CODES.get(name.strip())
        if codes is None or not (number.strip().isdecimal() and 400 <= int(number) <= 599):
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--djl-statuses has {pair!r}; expected is one of {', '.join(_CODES)}, an equals sign and a status "
                    "from 400 to 599."
                ),
            )
        found |= dict.fromkeys(codes, int(number))
    return found
