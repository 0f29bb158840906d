"""Instances, deaths, memory and how full a server is, as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

from trivium.codecs.exposition import text
from trivium.types.metrics import LoopUse
from trivium.types.observing import DeathCause, VersionLoad
from trivium.types.state import VersionState
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    MetricsReport,
    ProcessMemory,
    VersionHealth,
    VersionMetrics,
    VersionStatistics,
)
from trivium.wires.prometheus.http import MetricsOptions, families

SECOND = 1_000_000_000


def counted(model: str) -> VersionStatistics:
    batches = (BatchStatistics(4, Duration(2, SECOND), Duration(2, 3 * SECOND), Duration(2, SECOND // 2)),)
    return VersionStatistics(
        model, "1", 0, 8, 2, *[Duration()] * 6, batches=batches, failures={}, wasted=0, queued_items=3
    )


def samples(report: MetricsReport) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(text(families(report, MetricsOptions())).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def of(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


LOAD = VersionLoad("m", "1", "onnx", open=3, opening=1, lack=2, running=5, busy=2, places=3, used=2)
HALF = VersionMetrics(counted("n"), load=LOAD, saturation=0.5)
FULL = VersionMetrics(counted("m"), {"team": "red"}, load=LOAD, saturation=1.25)


def test_instances_by_state_and_how_full_they_are():
    found = samples(MetricsReport((FULL, HALF)))
    mine = {"model": "m", "version": "1", "_team": "red"}
    states = {"idle": 1, "busy": 2, "opening": 1, "lacking": 2}
    assert {state: found["trivium_instances"][of(**mine, state=state)] for state in states} == states
    assert found["trivium_places"][of(**mine)] == 3
    assert found["trivium_busy_seconds_total"][of(**mine)] == 4.5
    assert found["trivium_saturation"] == {of(**mine): 1.25, of(model="n", version="1"): 0.5}
    assert found["trivium_server_saturation"] == {of(): 1.25}


def test_a_server_without_models_is_at_rest():
    assert samples(MetricsReport(()))["trivium_server_saturation"] == {of(): 0.0}


def test_states_deaths_and_memory():
    health = (
        VersionHealth("m", "1", VersionState.READY, {DeathCause.OUT_OF_MEMORY: 2}),
        VersionHealth("n", "3", VersionState.FAILED),
    )
    memory = (ProcessMemory(7), ProcessMemory(5, "m", "1", "m_0"))
    found = samples(MetricsReport((), health=health, memory=memory, build={"version": "9", "python": "3.12"}))
    assert found["trivium_model_state"] == {
        of(model="m", version="1", state="ready"): 1,
        of(model="n", version="3", state="failed"): 1,
    }
    deaths = found["trivium_worker_deaths_total"]
    assert {dict(labels)["cause"] for labels in deaths} == {cause.value for cause in DeathCause}
    assert deaths[of(model="m", version="1", cause="out_of_memory")] == 2 == sum(deaths.values())
    assert found["trivium_resident_bytes"] == {
        of(process="server"): 7,
        of(process="worker", model="m", version="1", worker="m_0"): 5,
    }
    assert found["trivium_build_info"] == {of(version="9", python="3.12"): 1}


def test_how_late_the_loop_was():
    loop = LoopUse(0, 0.0, 0.0, ((0.1, 8), (float("inf"), 2)), 1.5)
    found = samples(MetricsReport((), loop=loop))
    assert found["trivium_loop_delay_seconds_bucket"] == {of(le="0.1"): 8, of(le="+Inf"): 10}
    assert found["trivium_loop_delay_seconds_sum"] == {of(): 1.5}
