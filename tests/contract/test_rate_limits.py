"""The rate limiter over real workers of several models: what runs at one time never needs more than there is."""

import asyncio

import pytest
from tests.harness.python_models import ask, place, scene

from trivium.types.errors import ServeError
from trivium.types.operations import SequenceRef

NOTES = """
    def initialize(self, args):
        self.path = os.path.join(os.path.dirname(args["model_repository"]), "log")
    def execute(self, requests):
        self.note(1)
        time.sleep(0.003)
        self.note(-1)
        return [answer(OUT=of(r, "IN")) for r in requests]
    def note(self, sign):
        with open(self.path, "a") as file:
            file.write("%d\\n" % (sign * USES))
"""


def model(root, name, uses, instances=2, more=""):
    needs = f'resources {{ name: "R" global: true count: {uses} }}'
    place(
        root,
        name,
        NOTES.replace("USES", str(uses)),
        f"instance_group {{ kind: KIND_CPU count: {instances} rate_limiter {{ {needs} {more} }} }}",
    )


def most_at_once(root):
    used = most = 0
    for line in (root / "log").read_text().split():
        used += int(line)
        most = max(most, used)
    assert used == 0
    return most


@pytest.mark.parametrize(("there", "most"), [("R:4", 4), ("R:6", 6), ("", 4)])
def test_resources_are_never_exceeded_and_everybody_gets_some(tmp_path, there, most):
    model(tmp_path, "small", 1, 3)
    model(tmp_path, "large", 4, 2, "priority: 2")

    async def play(server):
        calls = [ask(name, i) for i in range(40) for name in ("small", "large")]
        await asyncio.gather(*map(server.execute, calls))
        assert server.statistics("small").rows == server.statistics("large").rows == 40

    scene(play, tmp_path, rate_limit="execution_count", rate_limit_resources=there)
    assert 4 <= most_at_once(tmp_path) <= most


def test_it_is_off_by_default(tmp_path):
    model(tmp_path, "large", 4, 2)

    async def play(server):
        await asyncio.gather(*(server.execute(ask("large", i)) for i in range(40)))

    scene(play, tmp_path)
    assert most_at_once(tmp_path) == 8


def test_an_instance_that_could_never_run_does_not_load(tmp_path):
    model(tmp_path, "large", 4)

    async def play(server):
        raise AssertionError("it loaded")

    with pytest.raises(ServeError, match="There is 3 of the resource 'R', and an instance needs 4"):
        scene(play, tmp_path, rate_limit="execution_count", rate_limit_resources="R:3")


def test_sequences_wait_for_the_instance_that_has_them(tmp_path):
    needs = 'rate_limiter { resources { name: "R" global: true count: 4 } }'
    place(
        tmp_path,
        "seq",
        NOTES.replace("USES", "4"),
        f"instance_group {{ kind: KIND_CPU count: 3 {needs} }} sequence_batching {{ oldest {{ }} }}",
    )
    model(tmp_path, "small", 1, 2)

    async def sequence(server, name):
        for i in range(5):
            await server.execute(ask("seq", i, sequence=SequenceRef(name, i == 0, i == 4)))

    async def play(server):
        calls = [sequence(server, name) for name in range(1, 10)]
        calls += [server.execute(ask("small", i)) for i in range(40)]
        await asyncio.gather(*calls)
        assert server.statistics("seq").rows == 45

    scene(play, tmp_path, rate_limit="execution_count")
    assert most_at_once(tmp_path) == 4
