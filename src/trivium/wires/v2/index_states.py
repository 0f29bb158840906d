"""The repository index's names for the states of a version: the one table (sheet "triton", section 4.9)."""

from collections.abc import Mapping

from trivium.types.state import VersionState

INDEX_STATES: Mapping[VersionState, str] = {
    VersionState.REGISTERED: "",  # a model that was never to be loaded has a name and no more
    VersionState.LOADING: "LOADING",
    VersionState.READY: "READY",
    VersionState.COLD: "UNAVAILABLE",
    VersionState.UNLOADING: "UNLOADING",
    VersionState.UNLOADED: "UNAVAILABLE",
    VersionState.FAILED: "UNAVAILABLE",
}
"""Ours -> theirs."""
