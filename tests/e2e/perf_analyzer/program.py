"""The real perf_analyzer as a child process, and its report read.

The program comes with the wheel of the client library; two libraries that it needs come out of the environment of the
real tritonserver that `make e2e` builds. Where either lacks the test fails. Knows no model.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.side_by_side.original import ENVIRONMENT
from tests.harness.server_process import environment

PROGRAM = Path(sys.executable).with_name("perf_analyzer")
LIBRARIES = {"libcudart.so.12": "libcudart-*.so.12*", "libb64.so.0d": "libb64-*.so.0d"}
"""What it asks for, and how the wheel names it."""

SECONDS = 60.0
"""After which it is looked at, whether it sleeps."""

LOOKS = 20
"""At a thread that sleeps again and again."""

REFUSED = 99
"""Its exit status for whatever a server, or a model, does not let it do."""

_COUNTS = {
    "Inference count": "inferences",
    "Execution count": "executions",
    "Successful request count": "successes",
    "Cache hit count": "hits",
    "Cache miss count": "misses",
}
_COUNT = re.compile(r"^ +([A-Z][a-z ]+ count): (\d+)$")
_LATENCY = re.compile(r"^ +Avg request latency: (\d+) usec \((.*)\)$")
_PART = re.compile(r"([a-z/ ]+) (-?\d+) usec")
_MEMBER = re.compile(r"^  (\S+), version: (\d+)$")


@dataclass
class Block:
    """What it says of a model under "Server:". Times in microseconds; `parts` of the latency by their names."""

    inferences: int = 0
    executions: int = 0
    successes: int = 0
    hits: int = 0
    misses: int = 0
    latency: int = 0
    parts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run: its exit status, all that it printed, and its report where it came to one. `blocks` are by model; that
    of the model it was pointed at is under "".
    """

    status: int
    text: str
    requests: int
    blocks: dict[str, Block]


def libraries(folder: Path) -> Path:
    """`folder`, with links in it under the names that the program asks for."""
    found = list((ENVIRONMENT / "lib").glob("python*/site-packages/nvidia_pytriton.libs"))
    assert found, (
        f"There are no libraries for {PROGRAM} in {ENVIRONMENT}. Run `make e2e`, which builds that environment."
    )
    for name, pattern in LIBRARIES.items():
        (library,) = found[0].glob(pattern)
        (folder / name).symlink_to(library)
    return folder


class Asleep(Exception):
    """It did not end, and none of its threads waits for a server. Told a number of requests it now and then does, where
    the machine holds up its main thread: at a rate `RequestRateWorker::HandleExecuteOff` has missed that it may begin;
    elsewhere `InferenceProfiler::Measure` counts up to that number when the first of them are in and gone.
    """


def run(folder: Path, *words: str | Path) -> Run:
    """It, with these flags and the libraries in `folder`. Raises `Asleep`, or TimeoutExpired where a server may owe it
    an answer.
    """
    assert PROGRAM.exists(), f"There is no {PROGRAM}: the wheel tritonclient for manylinux1_x86_64 brings it."
    variables = environment() | {"LD_LIBRARY_PATH": os.fspath(folder)}
    with subprocess.Popen(
        [PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables
    ) as child:
        try:
            said, _ = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired as late:
            if is_asleep(child.pid):
                raise Asleep(f"{words} sleeps for ever") from late
            raise
        finally:
            child.kill()
    return read(child.returncode, said)


def is_asleep(pid: int) -> bool:
    """Does every thread of the process wait for another (`futex`, system call 202 on x86-64, for which the program is
    made) or for the time (`clock_nanosleep`, 230)? One that waits for an answer is in `poll`, or `epoll_wait`.
    """
    for _ in range(LOOKS):
        calls = [call.read_text().split()[0] for call in Path(f"/proc/{pid}/task").glob("*/syscall")]
        if waking := set(calls) - {"202", "230"}:
            if waking != {"running"}:
                return False
            time.sleep(0.01)
        else:
            return True
    return False


def read(status: int, text: str) -> Run:
    """What it printed of one measurement."""
    requests = re.search(r"^    Request count: (\d+)$", text, re.MULTILINE)
    blocks: dict[str, Block] = {}
    _, _, server = text.partition("\n  Server: \n")
    name = ""
    for line in server.splitlines():
        if member := _MEMBER.match(line):
            name = member[1]
        elif (count := _COUNT.match(line)) and count[1] in _COUNTS:
            setattr(blocks.setdefault(name, Block()), _COUNTS[count[1]], int(count[2]))
        elif latency := _LATENCY.match(line):
            block = blocks.setdefault(name, Block())
            block.latency = int(latency[1])
            block.parts = {part.strip(" +"): int(value) for part, value in _PART.findall(latency[2])}
    return Run(status, text, int(requests[1]) if requests else 0, blocks)
