"""Decides how many replicas an application needs, by how full they are. Pure: their saturations -> a number.

Ray's controller gets this file by value and runs it without our package: it imports the standard library alone.
"""

from collections.abc import Collection
from typing import Any

METRIC = "trivium_saturation"
"""The name by which replicas report how full they are."""

FULL = 1.0
"""The saturation that replicas shall have: all instances of the fullest model at work, and nobody waiting."""


def wanted(saturations: Collection[float], running: int, now: int) -> float:
    """Return how many replicas bring their saturation to `FULL`. `saturations` are of those that have reported, out of
    `running` ones; the others are taken to be like these. Where none has reported, `now`, so many as there shall be
    already.
    """
    if not saturations:
        return float(now)
    return sum(saturations) / len(saturations) * running / FULL


def by_saturation(context: Any) -> tuple[float, dict[str, Any]]:
    """Scale a deployment of `trivium.ray:app` by saturation: the policy_function of an AutoscalingPolicy. Ray rounds
    up, keeps to the bounds and waits for the delays of its autoscaling_config.
    """
    reported = (context.aggregated_metrics or {}).get(METRIC, {})
    running = context.current_num_replicas
    return wanted(list(reported.values()), running, context.target_num_replicas), {}
