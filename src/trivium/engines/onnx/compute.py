"""Says which provider of ONNX Runtime computes how much of a model, from what a session has recorded. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from trivium.types.running import Placement
from trivium.types.spec import Device

RECORDS = "session.record_ep_graph_assignment_info"
"""The entry by which a session records which provider has been given which nodes, before they are joined."""

_MOST_KINDS = 6


def assigned(session: Any) -> list[tuple[str, str]] | None:
    """Return provider and operator of each node of a session that `RECORDS`; None where this ONNX Runtime tells none:
    one before 1.24.
    """
    tell = getattr(session, "get_provider_graph_assignment_info", None)
    if tell is None:
        return None
    return [(part.ep_name, node.op_type) for part in tell() for node in part.get_nodes()]


def told(providers: Sequence[str], nodes: Sequence[tuple[str, str]], placement: Placement) -> str:
    """Return the sentence about a session that tries these providers, first to last; of all but the first with the
    operators that are left to it.
    """
    where = "the CPU" if placement.device is Device.CPU else f"GPU {placement.device_id}"
    kinds: dict[str, Counter[str]] = {providers[0]: Counter()}
    for provider, operator in nodes:
        kinds.setdefault(provider, Counter())[operator] += 1
    if len(kinds) == 1:
        return f"compute on {where}: {providers[0]} runs all {len(nodes)} nodes"
    first, *others = sorted(kinds, key=lambda one: one != providers[0])
    parts = [f"{first} {kinds[first].total() or 'none'}"]
    parts += [f"{one} {kinds[one].total()}{_operators(kinds[one])}" for one in others]
    return f"compute on {where}, of {len(nodes)} nodes: {', '.join(parts)}"


def _operators(kinds: Counter[str]) -> str:
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_MOST_KINDS))
    more = ", ..." if len(kinds) > _MOST_KINDS else ""
    return f" ({shown}{more})"
