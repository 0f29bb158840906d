"""What is measured of the machine, in the original's units, and lines of a command that measures it."""

import pytest

from trivium.servers.torchserve.command.machine import update_by_lines, update_machine
from trivium.servers.torchserve.words.meter import MeterSettings, MetricsMode, TorchServeMeter
from trivium.servers.torchserve.words.metric_lines import SystemMetric, read_system_metric
from trivium.types.metrics import DiskUse, GpuUse, MachineUse

GB = 2**30


@pytest.fixture
def meter() -> TorchServeMeter:
    return TorchServeMeter(MeterSettings(mode=MetricsMode.PROMETHEUS), "h", lambda: 0.0, print, print)


def values(meter: TorchServeMeter) -> dict[tuple[str, ...], float]:
    return {
        (metric.name, *labels[:-1]): one.value
        for metric, series in meter.kept.items()
        for labels, one in series.items()
    }


def test_percents_megabytes_and_gigabytes(meter: TorchServeMeter) -> None:
    machine = MachineUse(0.123, 4 * GB, GB, DiskUse(3 * GB, 5 * GB))
    gpus = (GpuUse(0, "a", 0.5, 4 * GB, GB), GpuUse(1, "b"))
    update_machine(meter, machine, gpus)
    assert values(meter) == {
        ("CPUUtilization", "Host"): 12.3,
        ("MemoryAvailable", "Host"): 3072,
        ("MemoryUsed", "Host"): 1024,
        ("MemoryUtilization", "Host"): 25,
        ("DiskAvailable", "Host"): 5,
        ("DiskUsage", "Host"): 3,
        ("DiskUtilization", "Host"): 37.5,
        ("GPUMemoryUtilization", "Host", "0"): 25,
        ("GPUMemoryUsed", "Host", "0"): 1024,
        ("GPUUtilization", "Host", "0"): 50,
    }


def test_what_is_not_known_is_not_told(meter: TorchServeMeter) -> None:
    update_machine(meter, None, ())
    assert values(meter) == {}
    update_machine(meter, MachineUse(0.0, 0, 0), ())
    assert ("DiskUsage", "Host") not in values(meter)
    assert values(meter)["MemoryUtilization", "Host"] == 0


def test_lines_of_a_command_up_to_an_empty_one(meter: TorchServeMeter) -> None:
    update_by_lines(
        meter,
        [
            "CPUUtilization.Percent:41.5|#Level:Host|#hostname:x,1700000000",
            "DiskUsage.Gigabytes:1e2|#Level:Host|#type:GAUGE|#hostname:x,1700000000,id",
            "",
            "not a metric",
        ],
    )
    assert values(meter) == {("CPUUtilization", "Host"): 41.5, ("DiskUsage", "Host"): 100}
    with pytest.raises(ValueError, match="Parse metrics failed: nonsense"):
        update_by_lines(meter, ["nonsense"])


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        ("A.B:1,000.5|#a:b,c,d:e:f,g:h|#hostname:x,1", SystemMetric("A", ("b", "h"), 1000.5)),
        ("A b.C d:-2|#|#hostname:x,1", SystemMetric("A b", (), -2)),
        ("A.B:1e|#a:b|#hostname:x,1", None),
        ("A.B:1|#a:b", None),
        ("", None),
    ],
)
def test_a_line_is_read_as_the_original_reads_it(line: str, metric: SystemMetric | None) -> None:
    assert read_system_metric(line) == metric
