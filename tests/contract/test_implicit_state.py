"""Implicit state: sums that the server keeps for models which keep nothing, over both engines that take it."""

import asyncio
import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.harness.python_models import ask, out, place, scene

from trivium.types.errors import Code, ServeError
from trivium.types.operations import Describe, Infer, SequenceRef, WantedOutput
from trivium.types.payload import Tensors

SUMS = """
    def execute(self, requests):
        return [self.one(r) for r in requests]
    def one(self, r):
        total = of(r, "IN") + of(r, "SUM_IN")
        assert total.shape == (1, 1), total.shape
        if of(r, "IN").item() == 13:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("no 13"))
        return answer(OUT=total, SUM_OUT=total)
"""
STATE = """state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: 1 %s }"""
FILE = 'initial_state { name: "first" data_type: TYPE_INT32 dims: 1 data_file: "first.bin" }'
OLDEST = "oldest { max_candidate_sequences: 8 }"
KINDS = {"direct": "", "oldest": OLDEST}


def onnx_sums(path):
    """OUT = SUM_OUT = IN + SUM_IN."""
    save_onnx(path, [helper.make_node("Add", ["IN", "SUM_IN"], [name]) for name in ("OUT", "SUM_OUT")])


def save_onnx(path, nodes, text=(), opset=17):
    kinds = {name: TensorProto.STRING if name in text else TensorProto.INT32 for name in NAMES}
    ends = {name: helper.make_tensor_value_info(name, kind, ["n", 1]) for name, kind in kinds.items()}
    graph = helper.make_graph(nodes, "g", [ends["IN"], ends["SUM_IN"]], [ends["OUT"], ends["SUM_OUT"]])
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), str(path))


NAMES = ("IN", "SUM_IN", "OUT", "SUM_OUT")


def put(root, engine, kind, first="", more=""):
    batching = f"sequence_batching {{ {STATE % first} {KINDS[kind]} }} {more}"
    if engine == "python":
        place(root, "m", SUMS, batching)
    else:
        place(
            root, "m", "", f'backend: "onnxruntime" instance_group {{ count: 2 kind: KIND_CPU }} {batching}'
        )
        onnx_sums(root / "m" / "1" / "model.onnx")


async def sums(server, name, values, dice):
    found = []
    for i, value in enumerate(values):
        ref = SequenceRef(name, i == 0, i == len(values) - 1)
        found.append(out(await server.execute(ask("m", value, sequence=ref))))
        await asyncio.sleep(dice.choice([0, 0, 0.002]))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["python", "onnx"])
def test_every_sequence_has_its_own(tmp_path, engine, kind):
    put(tmp_path, engine, kind)

    async def play(server):
        dice = random.Random(1)
        values = {name: [dice.randrange(12) for _ in range(dice.randrange(1, 8))] for name in range(1, 31)}
        found = await asyncio.gather(*(sums(server, name, values[name], dice) for name in values))
        assert found == [np.cumsum(rows).tolist() for rows in values.values()]
        part = await server.execute(Describe("m"))
        assert [tensor.name for tensor in (*part.answer.spec.inputs, *part.answer.spec.outputs)] == [
            "IN",
            "OUT",
        ]

    scene(play, tmp_path)


@pytest.mark.parametrize("engine", ["python", "onnx"])
def test_the_first_state_comes_from_a_file_and_a_failure_leaves_it_as_it_is(tmp_path, engine):
    put(tmp_path, engine, "oldest", FILE)
    (tmp_path / "m" / "initial_state").mkdir()
    (tmp_path / "m" / "initial_state" / "first.bin").write_bytes(np.array([1000], "<i4").tobytes())

    async def play(server):
        only = (WantedOutput("OUT"),)
        assert out(await server.execute(ask("m", 1, sequence=SequenceRef(5, True)))) == 1001
        if engine == "python":
            with pytest.raises(ServeError, match="no 13"):
                await server.execute(ask("m", 13, sequence=SequenceRef(5)))
        part = await server.execute(ask("m", 2, sequence=SequenceRef(5), outputs=only))
        assert [tensor.name for tensor in part.payload.items] == ["OUT"]
        assert out(part) == 1003
        assert out(await server.execute(ask("m", 7, sequence=SequenceRef(5, True)))) == 1007
        hidden = (WantedOutput("SUM_OUT"),)
        with pytest.raises(ServeError) as caught:
            await server.execute(ask("m", 1, sequence=SequenceRef(5), outputs=hidden))
        assert caught.value.code is Code.INVALID

    scene(play, tmp_path)


def test_an_onnx_model_with_text_has_its_state_in_a_process(tmp_path):
    """OUT is IN and the state as text, SUM_OUT is SUM_IN + SUM_IN + 1."""
    ends = 'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
    batching = f"sequence_batching {{ {STATE % ''} {OLDEST} }} {WARM.replace('INT32', 'STRING')}"
    place(tmp_path, "m", "", f'backend: "onnxruntime" {batching} instance_group {{ kind: KIND_CPU }}', ends)
    one = helper.make_tensor("v", TensorProto.INT32, [1, 1], [1])
    nodes = [
        helper.make_node("Cast", ["SUM_IN"], ["text"], to=TensorProto.STRING),
        helper.make_node("StringConcat", ["IN", "text"], ["OUT"]),
        helper.make_node("Constant", [], ["one"], value=one),
        helper.make_node("Add", ["SUM_IN", "SUM_IN"], ["twice"]),
        helper.make_node("Add", ["twice", "one"], ["SUM_OUT"]),
    ]
    save_onnx(tmp_path / "m" / "1" / "model.onnx", nodes, text=("IN", "OUT"), opset=20)

    def said(text, **fields):
        array = np.array([[text.encode()]], object)
        return Infer(model="m", payload=Tensors.of({"IN": array}), **fields)

    async def play(server):
        for name in (1, 2):
            for i, expected in enumerate(("a0", "a1", "a3")):
                ref = SequenceRef(name, i == 0, i == 2)
                part = await server.execute(said("a", sequence=ref))
                assert [tensor.name for tensor in part.payload.items] == ["OUT"]
                assert part.payload["OUT"].item() == expected.encode()
        instances = (await server.execute(Describe("m", in_full=True))).answer.instances
        assert instances
        assert all(instance.process for instance in instances)

    scene(play, tmp_path)


def test_a_file_that_does_not_fit_fails_the_load(tmp_path):
    put(tmp_path, "python", "oldest", FILE)
    (tmp_path / "m" / "initial_state").mkdir()
    (tmp_path / "m" / "initial_state" / "first.bin").write_bytes(b"123")

    async def play(server):
        raise AssertionError("it loaded")

    with pytest.raises(ServeError, match=r"initial state 'SUM_IN': .*first.bin does not fit"):
        scene(play, tmp_path)


WARM = """model_warmup { name: "w" batch_size: 2
  inputs { key: "IN" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }"""


def test_a_warm_up_has_a_state_too(tmp_path):
    put(tmp_path, "onnx", "direct", more=WARM)

    async def play(server):
        assert out(await server.execute(ask("m", 1, sequence=SequenceRef(5, True)))) == 1

    scene(play, tmp_path)


GROWS = """
    def execute(self, requests):
        return [self.one(r) for r in requests]
    def one(self, r):
        seen = np.concatenate([of(r, "SEEN_IN"), of(r, "IN")], axis=1)
        return answer(OUT=of(r, "IN") * 0 + seen.shape[1], SEEN_OUT=seen)
"""


def test_a_state_may_grow(tmp_path):
    state = 'state { input_name: "SEEN_IN" output_name: "SEEN_OUT" data_type: TYPE_INT32 dims: -1 }'
    place(tmp_path, "m", GROWS, f"sequence_batching {{ {state} {OLDEST} }}")

    async def play(server):
        dice = random.Random(2)
        found = await asyncio.gather(*(sums(server, name, range(name), dice) for name in range(1, 9)))
        assert found == [list(range(2, name + 2)) for name in range(1, 9)]
        assert server.statistics("m").fail.count == 0

    scene(play, tmp_path)
