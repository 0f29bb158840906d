"""Deaths of workers are counted by version and cause, within a bound."""

from trivium.core.observability.worker_deaths import MOST_VERSIONS, WorkerDeaths
from trivium.types.observing import DeathCause
from trivium.types.recording import InstanceName


def test_by_version_and_cause():
    deaths = WorkerDeaths()
    for version, cause in (
        ("1", DeathCause.EXIT),
        ("1", DeathCause.EXIT),
        ("1", DeathCause.SIGNAL),
        ("2", None),
    ):
        deaths.count(InstanceName("m", version, 0), cause)
    assert deaths.report() == {("m", "1"): {DeathCause.EXIT: 2, DeathCause.SIGNAL: 1}}


def test_those_whose_worker_died_longest_ago_are_forgotten():
    deaths = WorkerDeaths()
    for number in range(MOST_VERSIONS):
        deaths.count(InstanceName(str(number), "1", 0), DeathCause.EXIT)
    deaths.count(InstanceName("0", "1", 0), DeathCause.EXIT)
    deaths.count(InstanceName("new", "1", 0), DeathCause.EXIT)
    report = deaths.report()
    assert len(report) == MOST_VERSIONS
    assert report["0", "1"] == {DeathCause.EXIT: 2}
    assert ("1", "1") not in report
