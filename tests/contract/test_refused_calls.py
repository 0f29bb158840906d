"""Calls of Triton models by Triton models that come to nothing at the door: what is told, and what is left."""

import pytest
from tests.harness.python_models import ask, out, place, scene

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Statistics

DOUBLES = "    def execute(self, requests):\n        return [answer(OUT=of(r, 'IN') * 2) for r in requests]\n"
SEVERAL = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(OUT=of(request, 'IN')))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CALLS = """
    def execute(self, requests):
        return [self.call(request) for request in requests]
    def call(self, request):
        inputs = [pb_utils.Tensor('IN', of(request, 'IN'))]
        called = pb_utils.InferenceRequest(model_name='m', requested_output_names=['OUT'], inputs=inputs)
        response = called.exec(decoupled=False)
        if response.has_error():
            return pb_utils.InferenceResponse(error=response.error())
        return answer(OUT=pb_utils.get_output_tensor_by_name(response, 'OUT').as_numpy())
"""
DECOUPLED = "model_transaction_policy { decoupled: true }"


def repository(root, body, config=""):
    """The model `m`, and `caller`, which calls it."""
    place(root, "m", body, config)
    place(root, "caller", CALLS, "")
    return root


def says(line):
    """A model that doubles, and whose `is_ready` is that line."""
    return DOUBLES + f"    def is_ready(self):\n        {line}\n"


async def told(server, **fields):
    """What a call came to."""
    with pytest.raises(ServeError) as caught:
        await server.execute(ask("caller", 21, **fields))
    return caught.value


async def runs(server):
    """Of `m`, however they ended."""
    (report,) = (await server.execute(Statistics("m"))).answer.versions
    return report.executions


def test_one_that_is_not_ready_is_not_called(tmp_path):
    switch = tmp_path / "off"
    root = repository(tmp_path / "models", says(f"return not os.path.exists({str(switch)!r})"))

    async def play(server):
        assert out(await server.execute(ask("caller", 21))) == 42
        switch.touch()
        error = await told(server)
        assert error.code is Code.MODEL_FAILED
        assert error.message == (
            "Model m - Error when running inference: Failed for execute the inference request. Model 'm' is not ready. "
            "Model 'm_0_0' is not ready (user-defined check failed)."
        )
        assert await runs(server) == 1
        switch.unlink()
        assert out(await server.execute(ask("caller", 4))) == 8

    scene(play, root)


def test_a_caller_that_ends_meanwhile_waits_for_no_answer(tmp_path):
    """The model that still thinks about it is not run, and serves on."""
    asked, go = tmp_path / "asked", tmp_path / "go"
    waits = f"open({str(asked)!r}, 'a').write('x')\n        while not os.path.exists({str(go)!r}):\n"
    root = repository(tmp_path / "models", says(waits + "            time.sleep(0.002)\n        return True"))

    async def play(server):
        assert (await told(server, deadline=0.5)).code is Code.EXPIRED
        assert asked.exists()
        assert out(await server.execute(ask("m", 1))) == 2
        go.touch()
        assert out(await server.execute(ask("caller", 21))) == 42
        assert await runs(server) == 2

    scene(play, root)


def test_one_that_answers_in_several_parts_is_not_called_for_one(tmp_path):
    async def play(server):
        error = await told(server)
        assert "Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls" in error.message
        assert await runs(server) == 0

    scene(play, repository(tmp_path / "models", SEVERAL, DECOUPLED))


def test_one_that_is_not_there_is_told_with_one_like_it(tmp_path):
    place(tmp_path, "caller", CALLS, "")
    place(tmp_path, "mm", DOUBLES, "")

    async def play(server):
        message = (await told(server)).message
        assert message.endswith("Model 'm' is not ready. There is no model 'm'. Did you mean 'mm'?")

    scene(play, tmp_path)


def test_one_of_another_shape_says_so_in_tritons_words(tmp_path):
    root = repository(tmp_path, DOUBLES)
    ends = 'input { name: "IN" data_type: TYPE_INT32 dims: 2 } output { name: "OUT" data_type: TYPE_INT32 dims: 2 }'
    place(root, "n", DOUBLES, "", ends)
    (root / "caller" / "1" / "model.py").write_text(
        (root / "caller" / "1" / "model.py").read_text().replace("'m'", "'n'")
    )

    async def play(server):
        message = (await told(server)).message
        assert (
            "Model n - Error when running inference: [request id: <id_unknown>] unexpected shape" in message
        )
        assert "Expected [-1,2], got [1,1]. " in message

    scene(play, root)
