"""A server in a made-up control group: threads, workers and what it holds follow that, and not the machine.

The files of the group are mounted over those of the system, for the server alone; where that may not be done the tests
are skipped. Restages "workers = 16 with a limit of one processor" (pytorch/serve 3150) and the 40 processes of a pod
with one processor (kserve 432).
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.harness.ports import free_port
from tests.harness.raw_http import ask
from tests.harness.server_process import COMMAND, LoggedProcess, environment, running, started
from tests.harness.told_archive import told_archive

HALF = 0.5
CANNOT = subprocess.run(
    ["unshare", "-m", "sh", "-c", "mount --bind /tmp /sys/fs/cgroup"], capture_output=True, check=False
).returncode
pytestmark = pytest.mark.skipif(
    CANNOT != 0, reason="nothing can be mounted here: that takes root, and a kernel that allows it"
)


@pytest.fixture
def within(tmp_path: Path):
    """What a command begins with that is to run in a group of so many processors and bytes."""

    def prefix(processors: float, memory: int, used: int = 0) -> tuple[str, ...]:
        folder = tmp_path / f"group-{processors}"
        folder.mkdir()
        (folder / "cpu.max").write_text(f"{int(processors * 100_000)} 100000\n")
        (folder / "memory.max").write_text(f"{memory}\n")
        (folder / "memory.current").write_text(f"{used}\n")
        return ("unshare", "-m", "sh", "-ec", f'mount --bind {folder} /sys/fs/cgroup; exec "$@"', "sh")

    return prefix


def accepts(port: int, size: int) -> int:
    """The status for a body of so many bytes, of which none is sent."""
    head = f"POST /predictions/told HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {size}\r\n\r\n"
    return ask(port, head.encode()).status


def predicted(port: int) -> str:
    body = b"POST /predictions/told HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    return ask(port, body).body.decode()


@pytest.mark.parametrize(("processors", "counted"), [(HALF, 1), (1.5, 2)])
def test_a_part_of_the_processors_and_two_gigabytes(
    within, tmp_path: Path, processors: float, counted: int
) -> None:
    archive, log = told_archive(tmp_path), tmp_path / "log"
    count = len(os.sched_getaffinity(0))
    with running(log, "serve", archive, prefix=within(processors, 2 * 10**9)) as server:
        assert server.is_ready()
        expected = str(counted) if counted < count else "not set"  # as libraries count by themselves
        assert predicted(server.port) == expected
        assert accepts(server.port, 251 * 10**6) == 413
    told = f"2 GB of memory and {processors} of {count} processors by the control group"
    if counted < count:
        told += f"; threads and workers are counted for {counted}"
    assert f"{told}\n" in log.read_text()


def test_as_many_processors_as_there_are(within, tmp_path: Path) -> None:
    archive, log = told_archive(tmp_path), tmp_path / "log"
    with running(log, "serve", archive, prefix=within(4096, 10**15)) as server:
        assert predicted(server.port) == "not set"
    assert "control group" not in log.read_text()


def test_an_operators_own_number_stays(within, tmp_path: Path) -> None:
    archive, log = told_archive(tmp_path), tmp_path / "log"
    variables = {"OMP_NUM_THREADS": "7"}
    with running(log, "serve", archive, prefix=within(HALF, 10**9), variables=variables) as server:
        assert predicted(server.port) == "7"


def test_a_model_that_does_not_fit_into_the_group(within, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "big"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text("def handle(inputs):\n    return inputs\n")
    (folder / "serving.properties").write_text("engine=Python\nrequired_memory_mb=900\n")
    log = tmp_path / "log"
    with running(
        log, "serve", folder, told_archive(tmp_path), prefix=within(HALF, 2 * 10**9, 15 * 10**8)
    ) as server:
        server.await_line(re.compile(r"needs 900 MB of memory.*there are 477 MB free", re.DOTALL))


@pytest.mark.parametrize("command", ["djl-serving", "torchserve"])
def test_the_commands_of_the_others_count_as_java_does(within, tmp_path: Path, command: str) -> None:
    store = told_archive(tmp_path / "store").parent
    ports = [free_port() for _ in range(5)]
    if command == "djl-serving":
        words = ["-s", str(store)]
        variables = {"SERVING_INFERENCE_ADDRESS": f"http://127.0.0.1:{ports[0]}"}
        variables["SERVING_MANAGEMENT_ADDRESS"] = variables["SERVING_INFERENCE_ADDRESS"]
        up = re.compile("API bind to")
    else:
        roles = zip(("inference", "management", "metrics"), ports, strict=False)
        lines = [f"{role}_address=http://127.0.0.1:{port}" for role, port in roles]
        lines += [f"grpc_inference_port={ports[3]}", f"grpc_management_port={ports[4]}"]
        (tmp_path / "config.properties").write_text("\n".join(lines))
        words = [
            "--start",
            "--foreground",
            "--model-store",
            str(store),
            "--models",
            "all",
            "--disable-token-auth",
        ]
        words += ["--ncs", "--ts-config", str(tmp_path / "config.properties")]
        variables = {"LOG_LOCATION": str(tmp_path / "logs"), "METRICS_LOCATION": str(tmp_path / "logs")}
        up = re.compile("Metrics API bind to|Torch worker started|API bind to")
    log = tmp_path / "log"
    given = {**environment(), **variables}
    with started(log, *within(HALF, 2 * 10**9), *COMMAND, command, *words, variables=given) as process:
        server = LoggedProcess(process, log)
        server.await_line(re.compile("Number of CPUs: 1$", re.MULTILINE))
        server.await_line(re.compile("by the control group"))
        if command == "torchserve":
            server.await_line(re.compile("Default workers per model: 1$", re.MULTILINE))
        server.await_line(up)
