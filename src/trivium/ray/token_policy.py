"""Decides whether models may be handed to a cluster of Ray: off loopback only where its token is required. Pure.

Whoever reaches a cluster without a token runs any code on it, whatever keys its models ask for.
"""

from collections.abc import Mapping

from trivium.types.listeners import is_loopback

MODE = "RAY_AUTH_MODE"
"""The variable by which Ray is told to require its token; `token` does."""

_WAY_OUT = (
    "Whoever reaches it can run code there. Have Ray require its token (Ray 2.52 or later): `ray get-auth-token "
    "--generate` makes one in ~/.ray/auth_token; set RAY_AUTH_MODE=token, with the same file or RAY_AUTH_TOKEN, for "
    "`ray start` on every node and for this command."
)


def fault(address: str, own: Mapping[str, str], cluster: Mapping[str, str]) -> str:
    """Return why models may not be handed to the cluster at `address`, like 10.0.0.5:6379; empty if they may. `own` are
    the variables of this process, `cluster` those of a process there.
    """
    if is_loopback(address.rpartition(":")[0].strip("[]")):
        return ""
    if not _is_required(own):
        how = f"{MODE} is {own[MODE]!r} here" if own.get(MODE) else "no token is given to this command"
        return f"Ray's cluster is at {address}, beyond this machine alone, and {how}. {_WAY_OUT}"
    if not _is_required(cluster):
        return f"Ray's cluster is at {address}, beyond this machine alone, and asks for no token. {_WAY_OUT}"
    return ""


def _is_required(variables: Mapping[str, str]) -> bool:
    return variables.get(MODE, "").lower() == "token"
