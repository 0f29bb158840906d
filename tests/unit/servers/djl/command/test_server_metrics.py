"""The life of a server and its models in DJL's own metrics."""

import logging
import re

import pytest

from trivium.servers.djl.command.server_metrics import LifeMetrics
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState


def test_starts_loads_and_failures_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    steps, ends, now = [], [], [0.0]
    with caplog.at_level(logging.INFO):
        metrics = LifeMetrics(
            "1.2", lambda model, step: steps.append((model, step)), lambda: ends.append(1), lambda: now[0]
        )
        for model, state in (
            ("a", VersionState.LOADING),
            ("a", VersionState.READY),
            ("b", VersionState.LOADING),
            ("b", VersionState.FAILED),
            ("a", VersionState.UNLOADING),
            ("a", VersionState.UNLOADED),
        ):
            metrics(VersionStatus(model, "1", state, "why"))
            now[0] += 2.0
        metrics.listens()
    assert not ends
    told = [(model, step["name"], step["labels"], step.get("set")) for model, step in steps[1:]]
    assert told == [
        ("a", "LoadModel", {"Model": "a"}, 2e6),
        ("", "ModelLoadingError_total", {"Model": "b"}, None),
        ("", "StartupLatency", told[2][2], 12e6),
    ]
    lines = "\n".join(f"{record.name} {record.getMessage()}" for record in caplog.records)
    for line in (
        r"server_metric DJLServingStart\.Count:1\|#Version:[^|]+\|\d+\|c",
        r"model_metric LoadModel\.Microseconds:2000000\|#Model:a,Version:1\|\d+\|g",
        r"server_metric ModelLoadingError\.Count:1\|#Model:b\|\d+\|c",
        r"server_metric StartupLatency\.Microseconds:12000000\|#Host:[^|]+\|\d+\|g",
    ):
        assert re.search(line, lines), line


def test_a_model_that_fails_once_it_served_is_given_up_and_one_that_is_loaded_again_is_not() -> None:
    ends: list[int] = []
    metrics = LifeMetrics("1.2", lambda model, step: None, lambda: ends.append(1))
    for state in (VersionState.LOADING, VersionState.READY, VersionState.LOADING, VersionState.FAILED):
        metrics(VersionStatus("a", "1", state))
    assert not ends
    for state in (VersionState.LOADING, VersionState.READY, VersionState.FAILED):
        metrics(VersionStatus("a", "1", state))
    assert ends
