"""Options of a server of the v2 protocol: what its clients may do, set once, when the protocol is put together.

Values only. What is switched off here is refused with a sentence where it is asked for.
"""

import re

import msgspec

from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.types.interfaces import RegionViews
from trivium.types.protocol_context import FindMetric, ProtocolContext, no_metric
from trivium.wires.v2.grpc_restricted import RpcRestrictions, parse_rpc_restrictions
from trivium.wires.v2.original import V2Original
from trivium.wires.v2.restricted import Restrictions, parse_restrictions
from trivium.wires.v2.words import OWN_ERRORS, OWN_RPC_ERRORS, ErrorTranslator, RpcErrorTranslator

EXTENSIONS = (
    "binary_tensor_data",
    "classification",
    "generate",
    "logging",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "parameters",
    "schedule_policy",
    "sequence",
    "statistics",
    "trace",
)
"""By their names in the protocol, as `GET /v2` lists them; shared memory comes on top where it is on."""

_SHARED_MEMORY = "system_shared_memory"
_NOBODY = V2Original()


class KServeOptions(msgspec.Struct, frozen=True):
    """`may_change`: models may be loaded and unloaded, and the log set. `regions`: clients' shared memory, which
    refuses by itself where it is switched off; `shares_memory`: it is on, and told of. `forwards`: header fields whose
    whole name it matches become parameters. A body that comes compressed may have `most_unpacked` bytes, all that are
    held at a time `most_unpacked_together`. What `restricted` and `restricted_rpcs` name is served to who has the key
    alone: over HTTP to them also what `may_change` would keep from them. What comes from the `original` is its own;
    `as_original`: errors have its texts and statuses, too. A probe of what is not ready gets the status `not_ready`.
    `metric` finds one that models make themselves. `ignored` tells of fields of requests to generate that have no
    effect; without it they are refused.
    """

    may_change: bool = False
    regions: RegionViews | None = None
    shares_memory: bool = False
    forwards: re.Pattern[str] | None = None
    most_unpacked: int = 64 * 2**20
    most_unpacked_together: int = 2**30
    restricted: Restrictions = {}
    restricted_rpcs: RpcRestrictions = {}
    original: V2Original = _NOBODY
    as_original: bool = False
    not_ready: int = 400
    metric: FindMetric = no_metric
    ignored: IgnoredFieldLog | None = None

    @property
    def extensions(self) -> tuple[str, ...]:
        """Those that are served; as the original all that it lists, but for shared memory that is off."""
        if self.as_original:
            off = () if self.shares_memory else (_SHARED_MEMORY,)
            return tuple(name for name in self.original.extensions if name not in off)
        return (*EXTENSIONS, _SHARED_MEMORY) if self.shares_memory else EXTENSIONS

    @property
    def words(self) -> ErrorTranslator:
        """Return whose words errors have over HTTP."""
        return self.original.errors if self.as_original else OWN_ERRORS

    @property
    def rpc_words(self) -> RpcErrorTranslator:
        """Return whose words errors have over gRPC."""
        return self.original.rpc_errors if self.as_original else OWN_RPC_ERRORS


def make_options(context: ProtocolContext) -> KServeOptions:
    """The options of this protocol on either wire. INVALID for restrictions that cannot be read."""
    return KServeOptions(
        may_change=context.may_change,
        regions=context.regions,
        shares_memory=context.shares_memory,
        forwards=context.forwards,
        most_unpacked=context.max_unpacked_bytes,
        most_unpacked_together=context.max_total_unpacked_bytes,
        restricted=parse_restrictions(context.restricted_apis),
        restricted_rpcs=parse_rpc_restrictions(context.restricted_rpcs),
        original=context.words.find(V2Original) or _NOBODY,
        as_original=context.as_original,
        not_ready=context.not_ready,
        metric=context.metric,
        ignored=None if context.strict_requests else context.states.of(IgnoredFieldLog),
    )
