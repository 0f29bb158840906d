"""Acceptance B of issue 4: the real perf_analyzer ends well with every set of flags that the tutorial uses, and what it
says of the server is what the server's own statistics say.

Each set runs twice: in short windows, as people run it, where what lies outside the windows is not in the report; and
with a number of requests, where the report and our statistics must agree to the last one.
"""

import contextlib
import csv
import json
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.perf_analyzer import models, program
from tests.e2e.perf_analyzer.program import REFUSED, Asleep, Run
from tests.harness.server_process import SECONDS
from tests.harness.tritonserver import tritonserver

WINDOWS = ("--measurement-interval", "300", "--max-trials", "4", "--stability-percentage", "999")
"""Three windows are alike whatever happens: where they are not, it ends with status 2 and without a report."""

WARM_UP, COUNT = 16, 128
COUNTED = ("--warmup-request-count", str(WARM_UP), "--request-count", str(COUNT))
"""Fewer requests to warm up than are in flight at once, and the program waits for ever."""

SIZES = "inference_count", "execution_count"
Statistics = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class PerfAnalyzerHarness:
    """A server of all models, and the program beside it."""

    http: str
    grpc: str
    metrics: str
    data: Mapping[str, Path]
    libraries: Path

    def run(self, model: str, *words: str | Path) -> Run:
        """Measure `model`."""
        return self.measure(model, *words)[0]

    def measure(self, model: str, *words: str | Path, wire: str = "http") -> tuple[Run, Statistics]:
        """Measure `model`; and the statistics before. Tried again when the program fell asleep."""
        where = ("-i", "grpc", "-u", self.grpc) if wire == "grpc" else ("-u", self.http)
        for _ in range(2):
            before = self.statistics()
            with contextlib.suppress(Asleep):
                return program.run(self.libraries, "-m", model, *where, *words), before
        before = self.statistics()
        return program.run(self.libraries, "-m", model, *where, *words), before

    def statistics(self) -> Statistics:
        """Counts by model: inferences, executions, and requests by how they ended."""
        told = self.get("/v2/models/stats")["model_stats"]
        return {
            entry["name"]: {size: entry[size] for size in SIZES}
            | {name: value["count"] for name, value in entry["inference_stats"].items()}
            for entry in told
        }

    def get(self, path: str) -> Any:
        """A document of the server."""
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=SECONDS) as answer:
            return json.load(answer)


@dataclass(frozen=True)
class Case:
    """A set of flags. `in_flight` requests are asked for at most at once, each of `rows`."""

    model: str
    flags: tuple[str, ...] = ()
    rows: int = 1
    in_flight: int = 1
    wire: str = "http"
    says: tuple[str, ...] = ()


def at_a_time(count: int) -> tuple[str, str]:
    """The flag for so many requests in flight."""
    return "--concurrency-range", str(count)


RATE = ("--request-rate-range", "60")
STREAM = ("--streaming", "--async")
CASES = {
    "one at a time": Case("sleeper", ("-b", "1"), says=("Request concurrency: 1",)),
    "8 at a time": Case("sleeper", at_a_time(8), in_flight=8, says=("Request concurrency: 8",)),
    "16 at a time": Case("sleeper", at_a_time(16), in_flight=16, says=("Request concurrency: 16",)),
    "batches of 16": Case("sleeper", ("-b", "16"), rows=16, says=("Batch size: 16",)),
    "a name for the shape that it ignores": Case("picture", ("--shape", "IMAGE:3,224,224")),
    "a shape for open dims": Case("open_picture", ("--shape", "input:3,224,224")),
    "a shape from its data": Case("open_picture", ("--input-data", "{open_picture}")),
    "constant rate": Case(
        "sleeper", RATE, in_flight=16, says=("Using uniform distribution", "Request Rate: 60")
    ),
    "Poisson rate": Case(
        "sleeper",
        (*RATE, "--request-distribution", "poisson"),
        in_flight=16,
        says=("Using poisson distribution", "Request Rate: 60"),
    ),
    "gRPC": Case("sleeper", wire="grpc", says=("Avg gRPC time",)),
    "gRPC, batches, 8 at a time": Case("sleeper", ("-b", "2", *at_a_time(8)), 2, 8, "grpc"),
    "gRPC, a stream": Case("sleeper", (*STREAM, *at_a_time(4)), in_flight=4, wire="grpc"),
    "gRPC, compressed": Case("sleeper", ("--grpc-compression-algorithm", "gzip"), wire="grpc"),
    "decoupled": Case(
        "repeat",
        (*STREAM, "--input-data", "{repeat}"),
        wire="grpc",
        says=("Detected decoupled model", "Successfully read data for 1 stream/streams with 1 step/steps."),
    ),
    "strings": Case(
        "food",
        ("--input-data", "{food}"),
        says=("Successfully read data for 1 stream/streams with 1 step/steps.",),
    ),
    "batches of strings": Case("food", ("--input-data", "{food}", "-b", "4"), rows=4),
    "JSON": Case("sleeper", ("--input-tensor-format", "json", "--output-tensor-format", "json")),
    "an ensemble": Case("both", at_a_time(4), in_flight=4, says=("Composing models:",)),
    "a cached model": Case("cached", RATE, in_flight=16, says=("Cache hit count",)),
    "sequences": Case("sequence", at_a_time(2), in_flight=2, says=("Sequence count:",)),
    "sequences on a stream": Case("sequence", ("--streaming", *at_a_time(2)), in_flight=2, wire="grpc"),
    "shared memory": Case("sleeper", ("--shared-memory", "system")),
    "shared memory, pictures": Case("picture", ("--shared-memory", "system", "-b", "2"), rows=2),
    "shared memory over gRPC": Case("sleeper", ("--shared-memory", "system"), wire="grpc"),
}
MEMBERS = {"both": ("sleeper", "identity")}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerfAnalyzerHarness]:
    root, folder = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("program")
    flags = ("--allow-client-shm=true", "--cache-config=local,size=1048576")
    with tritonserver(folder / "log", "--model-repository", models.write_repository(root), *flags) as server:
        data, libraries = models.write_data(folder), program.libraries(tmp_path_factory.mktemp("libraries"))
        yield PerfAnalyzerHarness(*map(server.address, ("http", "grpc", "metrics")), data, libraries)


@pytest.mark.parametrize("name", CASES)
def test_in_windows(stage: PerfAnalyzerHarness, name: str) -> None:
    case = CASES[name]
    ran, counts = measure(stage, case, WINDOWS, tries=3)
    assert 'Using "time_windows" mode' in ran.text
    for model, block in blocks(ran, case):
        asked = counts[model]
        assert block.successes <= asked["success"], ran.text
        assert block.inferences <= asked["inference_count"], ran.text
        assert block.executions <= asked["execution_count"], ran.text
        # A request may end for the server within the window and for the client behind it, or begin so; and the
        # statistics are asked for a little before or after the window.
        assert abs(block.successes - ran.requests) <= 4 * case.in_flight + ran.requests // 4, ran.text


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.model != "sequence"])
def test_to_the_last_request(stage: PerfAnalyzerHarness, name: str) -> None:
    # Not of sequences: told a number of requests it now and then ends one that it has not begun.
    case = CASES[name]
    ran, counts = measure(stage, case, COUNTED)
    assert ran.requests == COUNT, ran.text
    for model, block in blocks(ran, case):
        asked = counts[model]
        assert asked["success"] == COUNT + WARM_UP
        assert asked["inference_count"] == case.rows * (asked["success"] - asked["cache_hit"])
        # It asks for the statistics when the first requests are on their way: at a rate those are few.
        assert block.successes <= COUNT, ran.text
        assert block.successes >= 0.9 * COUNT or "--request-rate-range" not in case.flags, ran.text
        assert 0 <= asked["execution_count"] - block.executions <= asked["success"] - block.successes


def measure(
    stage: PerfAnalyzerHarness, case: Case, words: tuple[str, ...], tries: int = 1
) -> tuple[Run, Statistics]:
    """One run, with what every report must have looked at, and what the server counted meanwhile. On a machine that
    stands still for whole windows it ends with 2, "not stable", and is tried again.
    """
    flags = [flag.format_map(stage.data) for flag in case.flags]
    for _ in range(tries):
        ran, before = stage.measure(case.model, *flags, *words, wire=case.wire)
        if ran.status != 2:
            break
    assert ran.status == 0, ran.text
    for text in case.says:
        assert text in ran.text, ran.text
    return ran, grown(before, stage.statistics())


def blocks(ran: Run, case: Case) -> Iterator[tuple[str, program.Block]]:
    """What the report says of each model that took part, itself looked at first."""
    members = MEMBERS.get(case.model, ())
    assert set(ran.blocks) == {"", *members}, ran.text
    for name, block in ran.blocks.items():
        assert block.successes > 0, ran.text
        assert block.inferences == case.rows * (block.successes - block.hits), ran.text
        assert block.executions <= block.successes, ran.text
        # A negative overhead is printed as 0, and then the parts are more than the whole.
        assert abs(block.latency - sum(block.parts.values())) <= len(block.parts), ran.text
        assert min(block.parts.values()) >= 0, ran.text
        yield name or case.model, block


def grown(before: Statistics, after: Statistics) -> Statistics:
    """What was counted in between; none of it a failure."""
    counts = {
        model: {key: value - before[model][key] for key, value in now.items()} for model, now in after.items()
    }
    assert not any(of["fail"] for of in counts.values()), counts
    return counts


# -- what else it does with a server ---------------------------------------------------------------------------


def test_its_table_of_numbers(stage: PerfAnalyzerHarness, tmp_path: Path) -> None:
    ran = stage.run("sleeper", *at_a_time(2), *COUNTED, "-f", tmp_path / "table.csv")
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert row["Concurrency"] == "2"
    assert float(row["Inferences/Second"]) > 0
    parts = ran.blocks[""].parts
    for column, part in (
        ("Server Queue", "queue"),
        ("Server Compute Input", "compute input"),
        ("Server Compute Infer", "compute infer"),
        ("Server Compute Output", "compute output"),
    ):
        assert int(row[column]) == parts[part], (row, ran.text)
    assert parts["compute infer"] >= 2000, "the model sleeps for two milliseconds"
    assert int(row["Network+Server Send/Recv"]) >= 0
    assert int(row["p99 latency"]) >= int(row["p50 latency"]) > 2000


def test_its_wide_table_with_metrics(stage: PerfAnalyzerHarness, tmp_path: Path) -> None:
    where = (
        "--collect-metrics",
        "--metrics-url",
        f"http://{stage.metrics}/metrics",
        "--metrics-interval",
        "100",
    )
    ran = stage.run(
        "sleeper", "--percentile", "95", "--verbose-csv", *where, *WINDOWS, "-f", tmp_path / "table.csv"
    )
    assert ran.status == 0, ran.text
    assert "Inferences/Second vs. Client p95 Batch Latency" in ran.text
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert int(row["response wait"]) >= 2000
    assert int(row["request/response"]) >= 0


def test_requests_in_flight_are_merged(stage: PerfAnalyzerHarness) -> None:
    block = stage.run("sleeper", *at_a_time(16), *COUNTED).blocks[""]
    assert block.executions <= block.successes / 2, "16 at a time, and each takes about as long as a batch"


def test_a_range_of_loads(stage: PerfAnalyzerHarness, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    ran = stage.run("sleeper", "-x", "1", "--concurrency-range", "1:3", *WINDOWS, "-f", table)
    assert ran.status == 0, ran.text
    assert ran.text.count("\n  Server: \n") == 3, ran.text
    assert sorted(row["Concurrency"] for row in csv.DictReader(table.read_text().splitlines())) == [
        "1",
        "2",
        "3",
    ]


def test_nothing_is_left_of_its_shared_memory(stage: PerfAnalyzerHarness) -> None:
    assert stage.run("sleeper", "--shared-memory", "system", *COUNTED).status == 0
    with urllib.request.urlopen(
        f"http://{stage.http}/v2/systemsharedmemory/status", timeout=SECONDS
    ) as answer:
        assert json.load(answer) == []


@pytest.mark.parametrize(
    ("model", "flags", "text"),
    [
        ("nobody", (), "failed to get model metadata: Request for unknown model: 'nobody' is not found"),
        ("sleeper", ("-b", "17"), "inference request batch-size must be <= 16 for 'sleeper'"),
        ("repeat", (), "Decoupled models must be run with `--async` and `--streaming`"),
        (
            "open_picture",
            (),
            "input input contains dynamic shape, provide shapes to send along with the request",
        ),
    ],
    ids=["no such model", "a batch too large", "decoupled without a stream", "open dims without a shape"],
)
def test_what_it_says_when_it_cannot(
    stage: PerfAnalyzerHarness, model: str, flags: tuple[str, ...], text: str
) -> None:
    ran = stage.run(model, *flags, *WINDOWS)
    assert ran.status == REFUSED
    assert text in ran.text
