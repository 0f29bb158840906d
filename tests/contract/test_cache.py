"""The response cache in front of real workers: what hits, what does not, and what is counted."""

import asyncio

import numpy as np
import pytest
from tests.harness.python_models import ENDS, ask, out, place, scene

from trivium.types.errors import ServeError
from trivium.types.operations import Infer, Load, WantedOutput
from trivium.types.payload import Tensors

COUNTS = """
    def initialize(self, args):
        self.runs = 0
    def execute(self, requests):
        self.runs += 1
        return [self.one(of(r, "IN")) for r in requests]
    def one(self, x):
        if x.flat[0] == 13:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("no 13"))
        return answer(OUT=x + 100 * self.runs, TWO=x + 2)
"""
TWO = ENDS + ' output { name: "TWO" data_type: TYPE_INT32 dims: 1 }'
CACHED = "response_cache { enable: true }"


def counted(server, model="m"):
    report = server.statistics(model)
    return (
        report.cache_hit.count,
        report.cache_miss.count,
        report.executions,
        report.rows,
        report.success.count,
    )


def test_the_same_is_computed_once(tmp_path):
    place(tmp_path, "m", COUNTS, CACHED, TWO)

    async def play(server):
        assert [out(await server.execute(ask("m", value))) for value in (1, 1, 2, 1)] == [101, 101, 202, 101]
        assert counted(server) == (2, 2, 2, 2, 4)
        report = server.statistics("m")
        assert (report.queue.count, report.compute_infer.count) == (4, 2)
        assert report.cache_hit.ns > 0
        assert report.cache_miss.ns > 0
        assert report.queue.ns + report.compute_infer.ns <= report.success.ns

    scene(play, tmp_path, cache_bytes=2**20)


def test_what_else_a_request_says_is_not_looked_at_but_its_outputs_are(tmp_path):
    place(tmp_path, "m", COUNTS, CACHED, TWO)

    async def play(server):
        only = (WantedOutput("TWO"),)
        await server.execute(ask("m", 1, id="a", parameters={"p": 1}))
        assert out(await server.execute(ask("m", 1, id="b"))) == 101
        part = await server.execute(ask("m", 1, outputs=only))
        assert [tensor.name for tensor in part.payload.items] == ["TWO"]
        assert counted(server)[:2] == (1, 2)
        two_rows = Tensors.of({"IN": np.array([[1], [1]], "<i4")})
        await server.execute(Infer(model="m", payload=two_rows))
        assert counted(server)[:2] == (1, 3)

    scene(play, tmp_path, cache_bytes=2**20)


def test_failures_are_not_kept(tmp_path):
    place(tmp_path, "m", COUNTS, CACHED, TWO)

    async def play(server):
        for _ in range(2):
            with pytest.raises(ServeError, match="no 13"):
                await server.execute(ask("m", 13))
        assert counted(server) == (0, 2, 2, 0, 0)
        with pytest.raises(ServeError, match="at most 4"):
            await server.execute(Infer(model="m", payload=Tensors.of({"IN": np.zeros((5, 1), "<i4")})))
        assert server.statistics("m").fail.count == 3
        assert counted(server)[1] == 2

    scene(play, tmp_path, cache_bytes=2**20)


def test_off_by_default_and_by_model(tmp_path):
    place(tmp_path, "m", COUNTS, "", TWO)

    async def play(server):
        assert [out(await server.execute(ask("m", 1))) for _ in range(2)] == [101, 201]
        assert counted(server)[:2] == (0, 0)

    scene(play, tmp_path, cache_bytes=2**20)
    place(tmp_path, "n", COUNTS, CACHED, TWO)

    async def play_without(server):
        assert [out(await server.execute(ask("n", 1))) for _ in range(2)] == [101, 201]

    scene(play_without, tmp_path)


def test_a_reload_forgets(tmp_path):
    place(tmp_path, "m", COUNTS, CACHED, TWO)

    async def play(server):
        await server.execute(ask("m", 1))
        await server.execute(ask("m", 2))
        model = tmp_path / "m" / "1" / "model.py"
        model.write_text(model.read_text().replace("x + 100", "x + 1000"))
        await server.execute(Load("m"))
        assert out(await server.execute(ask("m", 1))) == 1001
        assert counted(server) == (0, 1, 1, 1, 1)
        await asyncio.sleep(0.05)
        assert out(await server.execute(ask("m", 1))) == 1001

    scene(play, tmp_path, cache_bytes=2**20)


ENSEMBLE = (
    """platform: "ensemble" ensemble_scheduling { step { model_name: "%s" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } } """
    + CACHED
)


def test_an_ensemble_is_answered_as_a_whole(tmp_path):
    place(tmp_path, "m", COUNTS, CACHED, TWO)
    place(tmp_path, "e", "", ENSEMBLE % "m")

    async def play(server):
        assert [out(await server.execute(ask("e", 1))) for _ in range(3)] == [101] * 3
        assert counted(server, "e") == (2, 1, 1, 1, 3)
        assert counted(server) == (0, 1, 1, 1, 1)

    scene(play, tmp_path, cache_bytes=2**20)


DECOUPLED = """
    def execute(self, requests):
        for r in requests:
            r.get_response_sender().send(answer(OUT=of(r, "IN")), flags=1)
"""


def test_an_ensemble_that_answers_in_parts_is_refused(tmp_path):
    place(tmp_path, "d", DECOUPLED, "model_transaction_policy { decoupled: true }")
    place(tmp_path, "e", "", ENSEMBLE % "d")

    async def play(server):
        raise AssertionError("it loaded")

    with pytest.raises(ServeError, match="may answer a request in several parts"):
        scene(play, tmp_path, cache_bytes=2**20)
