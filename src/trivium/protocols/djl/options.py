"""Options of DJL's protocol: what an operator can set about it, and what a listener is for."""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from trivium.dialects.djl.error_rate_policy import read_rates
from trivium.protocols.djl.meter import DjlMeter
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.protocol_context import ProtocolContext

_CODES: Mapping[str, tuple[Code, ...]] = {
    "bad_request": (Code.INVALID,),
    "wlm_error": (Code.NOT_READY, Code.WORKER_DIED, Code.EXPIRED, Code.DRAINING),
    "throttle": (Code.QUEUE_FULL,),
    "server_error": (Code.INTERNAL,),
}
"""The original's name for a kind of error of inference -> the codes of that kind (sheet `djl`, section 1.3)."""


_METER = "djl meter"
LAZY = "djl lazy"
"""Name among what listeners share: the rule by which predictions register models."""


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


def options_of(context: ProtocolContext) -> DjlOptions:
    """Read what the operator has set. Tensors go out as NDLists where DJL's own clients are served, else as JSON.

    Raises INVALID for statuses and rates that cannot be.
    """
    own = context.own
    return DjlOptions(
        "tensor/ndlist" if context.as_original else "application/json",
        context.as_original,
        context.roles,
        context.may_change,
        bool(own.get("multi_status", False)),
        str(own.get("request_id_header", "x-request-id")).strip().lower().encode(),
        read_statuses(str(own.get("statuses", ""))),
        bool(own.get("handler_override", False)),
        bool(own.get("prometheus", False)),
        meter_of(context),
        _lazy_of(context),
        context.epoch,
    )


def _lazy_of(context: ProtocolContext) -> LazyRule | None:
    rule = context.shared.get(LAZY) if context.may_change else None
    return rule if isinstance(rule, LazyRule) else None


def meter_of(context: ProtocolContext) -> DjlMeter:
    """Return the meter of the server that a listener belongs to. Raises INVALID for rates that cannot be."""
    meter = context.shared.get(_METER)
    if not isinstance(meter, DjlMeter):
        meter = context.shared[_METER] = DjlMeter(
            read_rates(str(context.own.get("error_rates", ""))), context.now
        )
    return meter


def read_statuses(text: str) -> dict[Code, int]:
    """Read `NAME=STATUS` pairs with commas between. Raises INVALID for what is none."""
    found: dict[Code, int] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, _, number = pair.partition("=")
        codes = _CODES.get(name.strip())
        if codes is None or not (number.strip().isdecimal() and 400 <= int(number) <= 599):
            raise ServeError(
                Code.INVALID,
                f"--djl-statuses has {pair!r}; expected is one of {', '.join(_CODES)}, an equals sign and a status "
                "from 400 to 599.",
            )
        found |= dict.fromkeys(codes, int(number))
    return found
