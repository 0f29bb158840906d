"""Side by side with the real tritonserver: every request is sent to both, and their answers are the same but for what
is in `differences`.

Both serve one repository of Python models. Where the original's environment lacks this fails; it is never skipped.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
import pytest
from tests.e2e.side_by_side.differences import ACCEPTED
from tests.e2e.side_by_side.exchange import Answer, Request, exchange
from tests.e2e.side_by_side.models import write_repository
from tests.e2e.side_by_side.original import original
from tests.e2e.side_by_side.requests import COUNT, LEAST_BAD, all_of_them, drawn
from tests.e2e.side_by_side.stories import FRESH_KEY, KEY, MEMORY_BYTES
from tests.harness.server_process import ServerProcess, serve

MOST_ACCEPTED = 15
EXPECTED = {f"{wire}: {row}": each.aspects for each in ACCEPTED for wire, row in each.requests}

Answers = list[tuple[Request, Answer, Answer]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Of both servers to all requests, the original's first."""
    scratch = tmp_path_factory.mktemp("side_by_side")
    repository = write_repository(scratch / "models")
    memories = [Path(f"/dev/shm{key}") for key in (KEY, FRESH_KEY)]
    try:
        for memory in memories:
            memory.write_bytes(bytes(MEMORY_BYTES))
        with original(repository, scratch) as (http, rpc), _ours(repository, scratch) as ours:
            with grpc.insecure_channel(rpc) as theirs, grpc.insecure_channel(ours.grpc_address) as mine:
                yield [
                    (request, exchange(request, http, theirs), exchange(request, ours.address, mine))
                    for request in all_of_them()
                ]
    finally:
        for memory in memories:
            memory.unlink(missing_ok=True)


def _ours(repository: Path, scratch: Path) -> AbstractContextManager[ServerProcess]:
    words = (
        "--profile",
        "triton",
        "--client-shared-memory",
        "--forward-headers",
        "x-own",
        "--log-level",
        "info",
    )
    return serve(scratch / "log", *words, repository, models_raise=True)


def test_what_differs_is_what_was_accepted(answers: Answers) -> None:
    found = {request.name: frozenset(theirs.differs_from(ours)) for request, theirs, ours in answers}
    differing = {name: aspects for name, aspects in found.items() if aspects}
    told = [
        f"{request.name}\n  the original: {theirs}\n  ours:         {ours}"
        for request, theirs, ours in answers
        if found[request.name] != EXPECTED.get(request.name, frozenset())
    ]
    assert differing == EXPECTED, "\n".join(told)


def test_bad_requests_are_refused_and_good_ones_are_not(answers: Answers) -> None:
    for request, _, ours in answers:
        is_refused = ours.status not in ("200", "OK") or bool(ours.text)
        if request.name not in EXPECTED:
            assert is_refused == request.is_bad, f"{request.name}: {ours}"


def test_there_are_enough_of_each_kind() -> None:
    requests = drawn()
    kinds = Counter((bool(request.method), request.is_bad) for request in requests)
    assert len(requests) == COUNT
    assert kinds[False, True] + kinds[True, True] >= LEAST_BAD
    assert min(kinds.values()) >= 10
    assert requests == drawn()
    assert {request.name for request in all_of_them()} >= EXPECTED.keys()
    assert len(ACCEPTED) <= MOST_ACCEPTED
