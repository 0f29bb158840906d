"""No input of 64 MiB holds up other connections, legal or hostile, on either wire, for whatever kind of model."""

from collections.abc import Iterator

import pytest
from tests.harness.hostile_input import KINDS, HostileCase, cases
from tests.harness.hostile_models import write_models
from tests.harness.server_process import ServerProcess, serve
from tests.harness.stall_watch import send_all, watched

pytestmark = pytest.mark.alone
MOST_SECONDS = 0.25
_ATTEMPTS = 3
"""A machine with much else to do may stop the server in the middle of its work; the same input does not stall thrice by
chance.
"""
SAMPLE, CORPUS = len(KINDS), 10 * len(KINDS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = write_models(tmp_path_factory.mktemp("stalls") / "models")
    with serve(tmp_path_factory.mktemp("logs") / "log", root) as serving:
        yield serving


def stall_of(server: ServerProcess, case: HostileCase) -> float:
    """The longest wait of others while the case is sent: the shortest of some attempts."""
    port = server.port if case.wire == "http" else int(server.grpc_address.rpartition(":")[2])
    longest = float("inf")
    for _ in range(_ATTEMPTS):
        with watched(server) as watch:
            send_all(server, port, case.pieces, 60.0)
        longest = min(longest, watch.longest)
        if longest <= MOST_SECONDS:
            break
    return longest


def check(server: ServerProcess, corpus: Iterator[HostileCase]) -> None:
    found = {case.name: stall_of(server, case) for case in corpus}
    slow = {name: round(seconds, 3) for name, seconds in found.items() if seconds > MOST_SECONDS}
    print(f"{len(found)} inputs; the longest wait was {max(found.values()):.3f} s")
    assert not slow, f"others waited for longer than {MOST_SECONDS} s:\n{slow}\n{server.said()[-4000:]}"


def test_no_input_holds_up_others(server: ServerProcess) -> None:
    check(server, cases(SAMPLE))


@pytest.mark.soak
def test_no_input_of_the_whole_corpus_holds_up_others(server: ServerProcess) -> None:
    check(server, cases(CORPUS))
