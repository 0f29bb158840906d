"""Ensembles over real models: what flows, what fails, what is counted, and what is refused at load."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from tests.harness.triton_server import serving

from trivium import catalogue
from trivium.catalogue import configured
from trivium.codecs import binary
from trivium.servers.triton.words.description import config_json
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Load, Ready, Unload, WantedOutput
from trivium.types.payload import STRINGS_AT_ONCE, PackedTensor, Tensors

LEFT = ServeError(Code.CANCELLED, "by the test")
MODEL = """
import json, time, numpy as np, triton_python_backend_utils as pb_utils
from pathlib import Path
class TritonPythonModel:
    def initialize(self, args):
        self.folder = Path(args["model_repository"])
        self.decoupled = json.loads(args["model_config"]).get("model_transaction_policy", {}).get("decoupled")
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            y = pb_utils.get_input_tensor_by_name(request, "y")
            y = 0 if y is None else y.as_numpy()
            told = json.loads(request.parameters())
            with (self.folder / "seen").open("a") as seen:
                seen.write("%s %s\\n" % (request.request_id(), request.parameters()))
            if told.get("fail") and x.flat[0] == told["fail"]:
                answers.append(pb_utils.InferenceResponse([], pb_utils.TritonError("as told")))
                continue
            while told.get("hold") and not request.is_cancelled():
                time.sleep(0.002)
            tensors = [pb_utils.Tensor("sum", x + y), pb_utils.Tensor("twice", 2 * x)]
            answers.append(pb_utils.InferenceResponse(tensors[: 1 if told.get("short") else 2]))
        if self.decoupled:
            for request, answer in zip(requests, answers):
                sender = request.get_response_sender()
                for _ in range(json.loads(request.parameters()).get("parts", 1)):
                    sender.send(answer)
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            return None
        return answers
"""
ADD = """
backend: "python" max_batch_size: 4 instance_group { kind: KIND_CPU }
input [ { name: "x" data_type: TYPE_FP32 dims: 2 }, { name: "y" data_type: TYPE_FP32 dims: 2 optional: true } ]
output [ { name: "sum" data_type: TYPE_FP32 dims: 2 }, { name: "twice" data_type: TYPE_FP32 dims: 2 } ]
"""
IDENTITY = """
backend: "identity" max_batch_size: 8 dynamic_batching { }
input { name: "i" data_type: TYPE_FP32 dims: 2 } output { name: "o" data_type: TYPE_FP32 dims: -1 }
"""
ENDS = """
platform: "ensemble" max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: 2 }
"""
OUT = 'output { name: "%s" data_type: TYPE_FP32 dims: 2 }\n'


def step(model, inputs, outputs, version=-1):
    maps = [("input_map", inputs), ("output_map", outputs)]
    text = " ".join(f'{name} {{ key: "{k}" value: "{v}" }}' for name, map_ in maps for k, v in map_.items())
    return f'step {{ model_name: "{model}" model_version: {version} {text} }}\n'


DIAMOND = (
    ENDS
    + OUT % "OUT"
    + OUT % "SIDE"
    + "ensemble_scheduling {\n"
    + step("add", {"x": "a", "y": "b"}, {"sum": "OUT"})  # written first, and runs last
    + step("first", {"i": "IN"}, {"o": "a"})
    + step("add", {"x": "IN"}, {"twice": "b", "sum": "unused"})
    + step("first", {"i": "b"}, {"o": "SIDE"})
    + "}\n"
)


def folder(root: Path, name: str, config: str, version="1") -> None:
    where = root / name / version
    where.mkdir(parents=True, exist_ok=True)
    (root / name / "config.pbtxt").write_text(config)
    if "python" in config:
        (where / "model.py").write_text(MODEL)


def repository(root: Path, **configs: str) -> Path:
    """Folders of the two plain models and of these."""
    for name, config in {"add": ADD, "first": IDENTITY.replace("-1", "2"), **configs}.items():
        folder(root, name, config)
    return root


def scene(play, root, **configs):
    async def run():
        async with serving(repository(root, **configs)) as server:
            await play(server)

    asyncio.run(run())


def ask(value=1.0, rows=1, model="graph", outputs=(), **fields):
    payload = Tensors.of({"IN": np.full((rows, 2), value, "<f4")})
    wanted = tuple(map(WantedOutput, outputs))
    return Infer(model=model, payload=payload, outputs=wanted, **fields)


async def error(awaitable):
    with pytest.raises(ServeError) as caught:
        await awaitable
    return caught.value


def refusal(root, **configs):
    """Why the ensemble does not load."""

    async def run():
        async with serving(repository(root, **configs)):
            pass

    return asyncio.run(error(run()))


def test_tensors_flow_by_name_and_steps_run_when_their_inputs_exist(tmp_path):
    async def play(server):
        answers = await asyncio.gather(*(server.execute(ask(value=i, rows=1 + i % 3)) for i in range(20)))
        for i, part in enumerate(answers):
            assert (part.model, part.version) == ("graph", "1")
            assert [tensor.name for tensor in part.payload.items] == ["OUT", "SIDE"]
            assert part.payload["OUT"].tolist() == [[3.0 * i] * 2] * (1 + i % 3)
            assert part.payload["SIDE"].tolist() == [[2.0 * i] * 2] * (1 + i % 3)
        whole, add = server.statistics("graph"), server.statistics("add")
        assert (whole.success.count, whole.executions, whole.queued_items) == (20, 20, 0)
        assert whole.rows == sum(1 + i % 3 for i in range(20))
        assert add.success.count == 40
        assert server.statistics("first").success.count == 40
        assert (
            whole.success.ns * 2 > add.success.ns
        )  # an ensemble's time covers its steps, of which two were here

    scene(play, tmp_path, graph=DIAMOND)


def test_steps_that_nobody_asked_for_do_not_run(tmp_path):
    async def play(server):
        part = await server.execute(ask(outputs=("SIDE",)))
        assert [tensor.name for tensor in part.payload.items] == ["SIDE"]
        assert server.statistics("add").success.count == 1
        assert server.statistics("first").success.count == 1
        assert "OTHER" in (await error(server.execute(ask(outputs=("OTHER",))))).message

    scene(play, tmp_path, graph=DIAMOND)


def test_id_parameters_and_priority_come_to_the_steps(tmp_path):
    async def play(server):
        await server.execute(ask(id="one", parameters={"a": 1}, outputs=("SIDE",)))
        assert (tmp_path / "add" / "seen").read_text() == 'one {"a":1}\n'

    scene(play, tmp_path, graph=DIAMOND)


def test_an_error_in_a_step_fails_the_request_and_no_other(tmp_path):
    async def play(server):
        outcomes = await asyncio.gather(
            *(server.execute(ask(value=i, parameters={"fail": 7})) for i in range(1, 10)),
            return_exceptions=True,
        )
        failed = [i for i, outcome in enumerate(outcomes, 1) if isinstance(outcome, ServeError)]
        assert failed == [7]
        assert outcomes[6].code is Code.MODEL_FAILED
        assert outcomes[6].message.startswith("In model 'graph', step 'add': as told")
        report = server.statistics("graph")
        assert (report.success.count, report.executions, report.fail.count) == (8, 8, 1)

    scene(play, tmp_path, graph=DIAMOND)


def test_a_step_that_answers_without_an_output_fails_the_request(tmp_path):
    async def play(server):
        told = await error(server.execute(ask(parameters={"short": True})))
        assert told.code is Code.MODEL_FAILED
        assert "step 'add': It answered without twice." in told.message

    scene(play, tmp_path, graph=DIAMOND)


def test_a_cancelled_request_cancels_its_steps(tmp_path):
    async def play(server):
        parts = []
        ticket = server.submit(ask(parameters={"hold": True}), parts.append)
        async with asyncio.timeout(60):
            while not (tmp_path / "add" / "seen").exists():
                await asyncio.sleep(0.002)
            ticket.cancel(LEFT)
            assert [part.error for part in parts] == [LEFT]
            while server.statistics("add").fail.count == 0:
                await asyncio.sleep(0.002)
            assert (await server.execute(ask())).payload["OUT"].tolist() == [[3.0, 3.0]]
        assert server.statistics("graph").failures == {"cancelled": 1}

    scene(play, tmp_path, graph=DIAMOND)


def test_a_deadline_ends_the_steps_too(tmp_path):
    async def play(server):
        told = await error(server.execute(ask(parameters={"hold": True}, deadline=0.1)))
        assert told.code is Code.EXPIRED
        async with asyncio.timeout(60):
            assert (await server.execute(ask())).payload["OUT"].tolist() == [[3.0, 3.0]]

    scene(play, tmp_path, graph=DIAMOND)


def test_what_is_in_flight_ends_well_when_the_server_goes_down(tmp_path):
    async def run():
        async with serving(repository(tmp_path, graph=DIAMOND, first=SLOW)) as server:
            answers = [asyncio.ensure_future(server.execute(ask(model="graph"))) for _ in range(3)]
            await asyncio.sleep(0)
        return await asyncio.gather(*answers)

    assert [part.payload["OUT"].tolist() for part in asyncio.run(run())] == [[[3.0, 3.0]]] * 3


def test_unloaded_with_its_members_an_ensemble_ends_what_is_in_flight(tmp_path):
    async def play(server):
        answer = asyncio.ensure_future(server.execute(ask()))
        await asyncio.sleep(0)
        await server.execute(Unload("graph", with_dependents=True))
        assert (await answer).payload["OUT"].tolist() == [[3.0, 3.0]]
        async with asyncio.timeout(60):
            while "ready" in (states := {row.state.value for row in server.list().versions}):
                await asyncio.sleep(0.002)
        assert states <= {"unloaded", "unloading"}

    scene(play, tmp_path, graph=DIAMOND, first=SLOW)


SLOW = IDENTITY.replace("-1", "2") + 'parameters { key: "execute_delay_ms" value { string_value: "30" } }'
NESTED = ENDS + OUT % "OUT" + "ensemble_scheduling {\n" + step("graph", {"IN": "IN"}, {"OUT": "OUT"}) + "}\n"


def test_an_ensemble_may_be_a_step(tmp_path):
    async def play(server):
        part = await server.execute(ask(model="a_nested"))
        assert part.payload["OUT"].tolist() == [[3.0, 3.0]]
        assert server.statistics("graph").success.count == 1
        assert server.statistics("first").success.count == 1  # SIDE was not asked for

    scene(play, tmp_path, a_nested=NESTED, graph=DIAMOND)


def test_what_depends_on_an_unloaded_model_is_not_ready(tmp_path):
    async def play(server):
        await server.execute(Unload("first"))
        for name in ("graph", "a_nested"):
            ready = (await server.execute(Ready(name))).answer
            assert not ready.ready
            assert "depends on model" in ready.reason
        told = await error(server.execute(ask(model="a_nested")))
        assert told.code is Code.NOT_READY
        assert "In model 'a_nested', step 'graph': In model 'graph', step 'first'" in told.message
        states = {row.model: row.state.value for row in server.list().versions}
        assert states == {"add": "ready", "first": "unloaded", "graph": "failed", "a_nested": "failed"}
        await server.execute(Load("a_nested"))  # brings back what it lacks
        assert (await server.execute(Ready("graph"))).answer.ready
        assert (await server.execute(ask(model="a_nested"))).payload["OUT"].tolist() == [[3.0, 3.0]]

    scene(play, tmp_path, a_nested=NESTED, graph=DIAMOND)


LOOP = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        call = pb_utils.InferenceRequest(
            model_name="graph", requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", x)])
        answer = call.exec()
        return [pb_utils.InferenceResponse([], answer.error()) if answer.has_error() else answer]
"""


def test_a_member_that_calls_its_ensemble_is_told_of_the_circle(tmp_path):
    async def play(server):
        async with asyncio.timeout(60):
            told = await error(server.execute(ask()))
        assert "graph -> loop -> graph -> loop can never be served" in told.message
        assert server.statistics("graph").fail.count == 2

    steps = step("loop", {"x": "IN"}, {"sum": "OUT"})
    folder(tmp_path, "loop", ADD)
    (tmp_path / "loop" / "1" / "model.py").write_text(LOOP)
    scene(play, tmp_path, graph=ENDS + OUT % "OUT" + "ensemble_scheduling {" + steps + "}")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_decoupled_step_gives_the_ensemble_as_many_answers(tmp_path, count):
    async def play(server):
        parts = []
        server.submit(ask(parameters={"parts": count}), parts.append)
        async with asyncio.timeout(60):
            while not (parts and parts[-1].final):
                await asyncio.sleep(0.002)
        assert [part.payload["OUT"].tolist() for part in parts[:-1]] == [[[2.0, 2.0]]] * count
        assert (parts[-1].payload, parts[-1].error) == (None, None)
        assert server.statistics("graph").success.count == 1
        printed = {spec.name: json.loads(config_json(spec)) for spec in server.specs()}
        names = ("many", "graph", "a_nested", "plain")
        decoupled = [printed[name]["model_transaction_policy"]["decoupled"] for name in names]
        assert decoupled == [True, True, True, False]

    many = ADD + "model_transaction_policy { decoupled: true }"
    steps = step("many", {"x": "IN"}, {"twice": "OUT"})
    whole = ENDS + OUT % "OUT" + "ensemble_scheduling {" + steps + "}"
    scene(play, tmp_path, many=many, graph=whole, a_nested=NESTED, plain=graph(GOOD))


def graph(*steps, ends=ENDS, out="OUT"):
    return ends + OUT % out + "ensemble_scheduling {\n" + "".join(steps) + "}\n"


GOOD = step("first", {"i": "IN"}, {"o": "OUT"})
WRONG = {
    "no such model": (graph(step("nobody", {"i": "IN"}, {"o": "OUT"})), "There is no model 'nobody'"),
    "no such version": (graph(step("first", {"i": "IN"}, {"o": "OUT"}, 7)), "has no version 7; it has: 1"),
    "version 0": (graph(GOOD.replace("-1", "0")), "has no version 0"),
    "no such input": (
        graph(step("first", {"j": "IN"}, {"o": "OUT"})),
        "the input j, which first does not have",
    ),
    "no such output": (
        graph(step("first", {"i": "IN"}, {"p": "OUT"})),
        "the output p, which first does not have",
    ),
    "an input left out": (graph(step("add", {"y": "IN"}, {"sum": "OUT"})), "nothing for the input x of add"),
    "an output that nobody gives": (graph(GOOD, out="OTHER"), "the output OTHER, which no step gives"),
    "an input that nobody takes": (
        graph(GOOD, ends=ENDS + 'input { name: "MORE" data_type: TYPE_FP32 dims: 2 }'),
        "the input MORE, which no step takes",
    ),
    "two sources": (graph(GOOD, GOOD), "the tensor OUT from first, which is an output of first already"),
    "nothing comes in": (graph(step("first", {"i": "z"}, {"o": "OUT"})), "first never runs: nothing gives z"),
    "a circle of steps": (
        graph(GOOD, step("add", {"x": "u", "y": "IN"}, {"sum": "u"})),
        "add never runs: it waits for its own results",
    ),
    "another datatype": (
        graph(GOOD, ends=ENDS.replace("FP32", "INT32")),
        "the tensor IN is INT32 for the graph and FP32 for first",
    ),
    "another shape": (
        graph(GOOD, ends=ENDS.replace("dims: 2", "dims: 3")),
        "the tensor IN is [-1, 3] for the graph and [-1, 2] for first",
    ),
    "no batches": (
        graph(GOOD, ends=ENDS.replace("max_batch_size: 4", "max_batch_size: 0")),
        "the tensor IN is [2] for the graph and [-1, 2] for first",
    ),
    "too many rows": (
        graph(GOOD, ends=ENDS.replace("max_batch_size: 4", "max_batch_size: 9")),
        "9 rows at once, while first takes 8",
    ),
    "itself": (graph(step("graph", {"IN": "IN"}, {"OUT": "OUT"})), "graph -> graph: each needs the next"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_graph_that_cannot_run_is_refused_at_load(tmp_path, what):
    config, words = WRONG[what]
    told = refusal(tmp_path, graph=config)
    assert told.code is Code.LOAD_FAILED
    assert words in told.message


def test_ensembles_in_a_circle_are_refused_and_what_they_need_serves(tmp_path):
    def one(other):
        return graph(GOOD.replace("OUT", "a"), step(other, {"IN": "a"}, {"OUT": "OUT"}))

    told = refusal(tmp_path, graph=one("second"), second=one("graph"), third=graph(GOOD))
    assert "each needs the next" in told.message


TEXT = 'max_batch_size: 0 input { name: "%s" data_type: TYPE_STRING dims: -1 %s } '
TEXT += 'output { name: "%s" data_type: TYPE_STRING dims: -1 %s }'
SHAPED = "reshape { shape: [ 1, -1 ] }"
CHAIN = """platform: "ensemble" %s ensemble_scheduling { %s }"""
STEP = 'step { model_name: "echo" model_version: -1 input_map { key: "a" value: "%s" } '
STEP += 'output_map { key: "b" value: "%s" } } '


def test_packed_text_passes_a_graph_as_it_is(tmp_path):
    """To unpack it would keep the loop from all other requests; it is kept in the cache so, too."""
    configs = {
        "echo": f'backend: "identity" response_cache {{ enable: true }} {TEXT % ("a", SHAPED, "b", SHAPED)}',
        "chain": CHAIN % (TEXT % ("x", "", "y", ""), STEP % ("x", "z") + STEP % ("z", "y")),
    }
    for name, config in configs.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(config)
    elements = [b"text"] * (2 * STRINGS_AT_ONCE)
    sent = binary.of_strings("x", (len(elements),), [elements])

    async def play():
        async with catalogue.serving(tmp_path, config=configured(cache_bytes=2**24)) as server:
            for _ in range(2):
                part = await server.execute(Infer("chain", Tensors((sent,))))
                (came,) = part.payload.items
                assert (came.name, came.shape) == ("y", sent.shape)
                assert type(came) is PackedTensor
                assert bytes(came.packed()) == bytes(sent.packed())
            assert server.statistics("echo").cache_hit.count == 3

    asyncio.run(play())
