"""Sequences over real worker processes: Python models that keep state, as the sheet's stand-ins do."""

import asyncio
import random

import numpy as np
import pytest
from tests.harness.triton_server import serving

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Load, SequenceRef
from trivium.types.payload import Tensors

MODEL = """
import json, os, signal, numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}
        controls = json.loads(args["model_config"])["sequence_batching"]["control_input"]
        self.controls = [control["name"] for control in controls]
    def execute(self, requests):
        return [self.answer(row, request) for row, request in enumerate(requests)]
    def answer(self, row, request):
        told = {name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self.controls}
        assert all(array.shape == (1, 1) for array in told.values())
        told = {name: array.item() for name, array in told.items()}
        x = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
        if not told["READY"]:
            assert request.correlation_id() == 0 and not x.any() and not told["START"]
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", x)])
        if "CORRID" in told:
            corrid = told["CORRID"]
            assert (corrid.decode() if isinstance(corrid, bytes) else corrid) == request.correlation_id()
        assert request.flags() == (1 if told["START"] else 0) + (2 if told["END"] else 0)
        if json.loads(request.parameters()).get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        key = request.correlation_id() if self.controls[-1] == "CORRID" else row
        if told["START"]:
            self.sums[key] = 0
        self.sums[key] += x
        sum_ = self.sums.pop(key) if told["END"] else self.sums[key]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", sum_)])
"""
CONTROLS = """
max_sequence_idle_microseconds: 5000000
control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
control_input { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } }
control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
"""
ID = 'control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: %s } }\n'
OLDEST = "oldest { max_candidate_sequences: 8 }"
KINDS = {
    "direct, by row": CONTROLS,
    "direct, by id": CONTROLS + ID % "TYPE_UINT64" + "direct { }",
    "oldest, by id": CONTROLS + ID % "TYPE_INT32" + OLDEST,
    "oldest, by text": CONTROLS + ID % "TYPE_STRING" + OLDEST,
}
WARM = """
model_warmup { name: "w" batch_size: 1
  inputs { key: "INPUT" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }
"""


def scene(play, root, kind, instances=2, more=""):
    folder = root / "adder" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MODEL)
    (root / "adder" / "config.pbtxt").write_text(
        'backend: "python" max_batch_size: 4\n'
        'input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }\n'
        'output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }\n'
        f"instance_group {{ kind: KIND_CPU count: {instances} }}\nsequence_batching {{ {KINDS[kind]} }}\n{more}"
    )

    async def run():
        async with asyncio.timeout(60), serving(root) as server:
            await play(server)

    asyncio.run(run())


def ask(name, value, starts=False, ends=False, **fields):
    payload = Tensors.of({"INPUT": np.array([[value]], "<i4")})
    return Infer(model="adder", payload=payload, sequence=SequenceRef(name, starts, ends), **fields)


async def run_sequence(server, name, values, dice):
    """One request after the other; the sums that came."""
    sums = []
    for i, value in enumerate(values):
        part = await server.execute(ask(name, value, i == 0, i == len(values) - 1))
        sums.append(part.payload["OUTPUT"].item())
        await asyncio.sleep(dice.choice([0, 0, 0.002]))
    return sums


@pytest.mark.parametrize("kind", KINDS)
def test_many_interleaved_sequences(tmp_path, kind):
    async def play(server):
        dice = random.Random(1)
        names = [f"s{i}" if "text" in kind or (i % 2 and "row" in kind) else i for i in range(1, 41)]
        values = {name: [dice.randrange(100) for _ in range(dice.randrange(1, 8))] for name in names}
        came = await asyncio.gather(*(run_sequence(server, name, values[name], dice) for name in names))
        assert came == [np.cumsum(values[name]).tolist() for name in names]
        report = server.statistics("adder")
        assert report.rows == report.success.count == sum(map(len, values.values()))
        assert report.fail.count == report.wasted == 0
        assert report.executions < report.rows  # some shared an execution

    scene(play, tmp_path, kind)


@pytest.mark.parametrize("kind", ["direct, by id", "oldest, by id"])
def test_a_killed_instance_breaks_its_sequences_and_only_those(tmp_path, kind):
    async def play(server):
        for name in range(1, 5):
            await server.execute(ask(name, name, starts=True))
        outcomes = await asyncio.gather(
            server.execute(ask(1, 0, parameters={"kill": True})),
            server.execute(ask(1, 1)),
            return_exceptions=True,
        )
        assert [outcome.code for outcome in outcomes] == [Code.WORKER_DIED] * 2
        for name in (2, 4):
            assert (await server.execute(ask(name, 5))).payload["OUTPUT"].item() == name + 5
        for name in (1, 3):
            with pytest.raises(ServeError, match=f"sequence {name} of model 'adder' is broken") as caught:
                await server.execute(ask(name, 5))
            assert caught.value.code is Code.WORKER_DIED
        part = await server.execute(ask(1, 7, starts=True, ends=True))
        assert part.payload["OUTPUT"].item() == 7

    scene(play, tmp_path, kind)


def test_an_ensemble_passes_the_sequence_on(tmp_path):
    maps = 'input_map { key: "INPUT" value: "IN" } output_map { key: "OUTPUT" value: "OUT" }'
    (tmp_path / "whole" / "1").mkdir(parents=True)
    (tmp_path / "whole" / "config.pbtxt").write_text(
        'platform: "ensemble" max_batch_size: 4\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }\n'
        f'ensemble_scheduling {{ step {{ model_name: "adder" model_version: -1 {maps} }} }}'
    )

    async def play(server):
        sums = []
        for i in range(3):
            payload = Tensors.of({"IN": np.array([[5]], "<i4")})
            part = await server.execute(
                Infer(model="whole", payload=payload, sequence=SequenceRef(7, not i, i == 2))
            )
            sums.append(part.payload["OUT"].item())
        assert sums == [5, 10, 15]
        with pytest.raises(ServeError, match=r"In model 'whole', step 'adder': .* has not begun"):
            await server.execute(Infer(model="whole", payload=payload, sequence=SequenceRef(7)))

    scene(play, tmp_path, "direct, by id")


CALLER = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        sums, x = [], pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        for i in range(3):
            call = pb_utils.InferenceRequest(
                model_name="adder", requested_output_names=["OUTPUT"], inputs=[pb_utils.Tensor("INPUT", x)],
                correlation_id=9, flags=(1 if i == 0 else 0) + (2 if i == 2 else 0))
            answer = call.exec()
            assert not answer.has_error(), answer.error().message()
            sums.append(answer.output_tensors()[0].as_numpy().item())
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", 0 * x + sums[-1])])]
"""


def test_a_model_may_send_a_sequence_to_another(tmp_path):
    (tmp_path / "caller" / "1").mkdir(parents=True)
    (tmp_path / "caller" / "1" / "model.py").write_text(CALLER)
    (tmp_path / "caller" / "config.pbtxt").write_text(
        'backend: "python" max_batch_size: 4 instance_group { kind: KIND_CPU }\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }\n'
    )

    async def play(server):
        payload = Tensors.of({"IN": np.array([[5]], "<i4")})
        assert (await server.execute(Infer(model="caller", payload=payload))).payload["OUT"].item() == 15

    scene(play, tmp_path, "direct, by id")


def test_a_reload_ends_what_had_begun(tmp_path):
    async def play(server):
        await server.execute(ask(1, 5, starts=True))
        await server.execute(Load("adder"))
        with pytest.raises(ServeError, match="has not begun"):
            await server.execute(ask(1, 5))

    scene(play, tmp_path, "direct, by id", 1, WARM)
