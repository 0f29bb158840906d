"""Programs of torch.export, and packages of AOTInductor: what they tell, how they run, and what is not read of them."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.torch_models import HERE, batched, run, spec, tensors

from trivium.engines.torch.engine import ENGINE
from trivium.engines.torch.programs import of_compiled
from trivium.types.batch_shapes import BatchInput, BatchOutput, BatchShapes, ShapeFact
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.spec import TensorSpec

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
FILE = "model.pt2"


class SumAndDifference(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x - y


class Keyed(torch.nn.Module):
    def forward(self, inputs):
        return {"sum": inputs["b"] + inputs["a"], "less": inputs["b"] - inputs["a"]}


class ByName(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), 3.0))

    def forward(self, x, *, scale):
        return x * scale * self.weight


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.ones(2))

    def forward(self, x):
        self.kept.add_(x)
        return self.kept


def export(folder, module, *example, varies=False, **named):
    rows = torch.export.Dim("rows", min=1, max=64)
    shapes = tuple({0: rows} for _ in example) if varies else None
    program = torch.export.export(module.eval(), example, named or None, dynamic_shapes=shapes)
    torch.export.save(program, str(folder / FILE))
    return described(folder)


def described(folder):
    bare = spec(folder, entry=FILE)
    facts = ENGINE.facts(bare)
    return replace(bare, inputs=facts.inputs, outputs=facts.outputs)


def floats(*values):
    return np.array(values, np.float32)


def test_a_program_tells_what_it_takes(tmp_path):
    one = export(tmp_path, SumAndDifference(), torch.ones(2, 3), torch.ones(2, 3), varies=True)
    assert one.inputs == tensors("x", "y", dims=(-1, 3))
    assert one.outputs == tensors("OUTPUT__0", "OUTPUT__1", dims=(-1, 3))
    assert ENGINE.facts(one).batchable
    fixed = export(tmp_path, SumAndDifference(), torch.ones(2, 3), torch.ones(2, 3))
    assert fixed.inputs == tensors("x", "y", dims=(2, 3))
    assert not ENGINE.facts(fixed).batchable


def test_a_program_with_extra_files_is_served_as_one_without(tmp_path):
    """`torch.export.save(..., extra_files={...})` puts texts into the archive, which are never run."""
    program = torch.export.export(SumAndDifference().eval(), (torch.ones(2, 3), torch.ones(2, 3)))
    torch.export.save(program, str(tmp_path / FILE), extra_files={"config.txt": "{}", "a/labels.txt": "cat"})
    facts = ENGINE.facts(spec(tmp_path, entry=FILE, parameters={"extra_files": "config.txt,a/labels.txt"}))
    assert ([one.name for one in facts.inputs], facts.notes) == (["x", "y"], ())
    ones = np.ones((2, 3), "<f4")
    (outcome,) = run(spec(tmp_path, entry=FILE), {"x": ones, "y": ones})
    assert [float(one.array.sum()) for one in outcome.items] == [12, 0]


@pytest.mark.parametrize("names", [("x", "y"), ("IN__0", "IN__1"), ("first", "second")])
def test_a_program_runs_batches_by_any_naming(tmp_path, names):
    one = batched(export(tmp_path, SumAndDifference(), torch.ones(2, 2), torch.ones(2, 2), varies=True))
    one = replace(one, inputs=tensors(*names))
    first, second = run(
        one,
        {names[0]: floats([1, 2]), names[1]: floats([3, 4])},
        {names[0]: floats([5, 6], [7, 8]), names[1]: floats([1, 1], [1, 1])},
    )
    assert first["OUTPUT__0"].tolist() == [[4, 6]]
    assert second["OUTPUT__1"].tolist() == [[4, 5], [6, 7]]


def test_inputs_by_name_reach_positions(tmp_path):
    one = export(tmp_path, SumAndDifference(), torch.ones(2), torch.ones(2))
    one = replace(one, inputs=tensors("y", "x"))
    (answer,) = run(one, {"y": floats(1, 2), "x": floats(5, 5)})
    assert answer["OUTPUT__1"].tolist() == [4, 3]


def test_arguments_by_name_alone(tmp_path):
    one = export(tmp_path, ByName(), torch.ones(2), scale=torch.ones(2))
    assert [tensor.name for tensor in one.inputs] == ["x", "scale"]
    (answer,) = run(one, {"scale": floats(2, 3), "x": floats(1, 1)})
    assert answer["OUTPUT__0"].tolist() == [6, 9]


def test_a_dictionary_in_and_out(tmp_path):
    one = export(tmp_path, Keyed(), {"a": torch.ones(2), "b": torch.ones(2)})
    assert [tensor.name for tensor in one.outputs] == ["sum", "less"]
    one = replace(one, inputs=tensors("b", "a"))
    (answer,) = run(one, {"b": floats(3, 3), "a": floats(1, 2)})
    assert (answer["sum"].tolist(), answer["less"].tolist()) == ([4, 5], [2, 1])


def test_an_answer_is_no_view_of_the_models_own_memory(tmp_path):
    runner = ENGINE.open(export(tmp_path, Own(), torch.ones(2)), HERE)
    one = spec(tmp_path, tensors("x"), (), entry=FILE)
    (first,) = run(one, {"x": floats(1, 1)}, runner=runner)
    (second,) = run(one, {"x": floats(1, 1)}, runner=runner)
    assert (first["OUTPUT__0"].tolist(), second["OUTPUT__0"].tolist()) == ([2, 2], [3, 3])


def test_names_that_do_not_fit_fail_the_load(tmp_path):
    one = replace(export(tmp_path, SumAndDifference(), torch.ones(2), torch.ones(2)), inputs=tensors("x"))
    with pytest.raises(ServeError, match="'y' lacks") as caught:
        ENGINE.open(one, HERE)
    assert caught.value.code is Code.LOAD_FAILED


def test_ragged_requests(tmp_path):
    class Ragged(torch.nn.Module):
        def forward(self, x, n):
            return x * 2, n * 1

    rows, everything = torch.export.Dim("rows", max=64), torch.export.Dim("everything", max=64)
    example = (torch.ones(5), torch.ones(3, dtype=torch.int32))
    program = torch.export.export(Ragged(), example, dynamic_shapes=({0: everything}, {0: rows}))
    torch.export.save(program, str(tmp_path / FILE))
    told = BatchInput(("n",), ShapeFact.COUNTS, DataType.INT32, "x")
    one = replace(
        batched(described(tmp_path)),
        inputs=(TensorSpec("x", DataType.FP32, (-1,), ragged=True),),
        outputs=(TensorSpec("OUTPUT__0", DataType.FP32, (-1,)), TensorSpec("OUTPUT__1", DataType.INT32, ())),
        batch_shapes=BatchShapes((told,), (BatchOutput(("OUTPUT__0",), "x"),)),
    )
    first, second = run(one, {"x": floats([1, 2, 3])}, {"x": floats([4])})
    assert (first["OUTPUT__0"].tolist(), second["OUTPUT__0"].tolist()) == ([[2, 4, 6]], [[8]])
    assert (first["OUTPUT__1"].tolist(), second["OUTPUT__1"].tolist()) == ([3], [1])


# -- what is not read --------------------------------------------------------------------------------------


class Trap:
    """Unpickling it would be seen."""

    def __reduce__(self):
        return exec, ("raise SystemExit('it was unpickled')",)


def trap():
    data = io.BytesIO()
    torch.save(Trap(), data)
    return data.getvalue()


def rewritten(path, change):
    """The archive with other members."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held = change(held)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)


def pickled_weight(held):
    name = "model/data/weights/model_weights_config.json"
    told = json.loads(held[name])
    told["config"]["weight"]["use_pickle"] = True
    return {**held, name: json.dumps(told), "model/data/weights/weight_0": trap()}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda held: {**held, "model/data/sample_inputs/model.pt": trap()}, "data/sample_inputs/model.pt"),
        (lambda held: {**held, "model/data/constants/custom_obj_0": trap()}, "data/constants/custom_obj_0"),
        (lambda held: {**held, "model/data/weights/model.pt": trap()}, "data/weights/model.pt"),
        (lambda held: {**held, "other/models/model.json": b"{}"}, "there twice"),
        (pickled_weight, "'weight' is no plain data"),
    ],
)
def test_what_could_run_code_is_not_read(tmp_path, change, found):
    export(tmp_path, ByName(), torch.ones(2), scale=torch.ones(2))
    rewritten(tmp_path / FILE, change)
    for call in (ENGINE.facts, lambda one: ENGINE.open(one, HERE)):
        with pytest.raises(ServeError, match=found) as caught:
            call(spec(tmp_path, entry=FILE))
        assert "could run any code" in caught.value.message


def test_what_could_fill_the_memory_is_not_read(tmp_path, monkeypatch):
    export(tmp_path, ByName(), torch.ones(2), scale=torch.ones(2))
    bomb = "model/data/sample_inputs/model.pt"
    with zipfile.ZipFile(tmp_path / FILE) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name != bomb}
    with zipfile.ZipFile(tmp_path / FILE, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)
        archive.writestr(bomb, bytes(2**20), zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("a member was read"))
    for call in (ENGINE.facts, lambda one: ENGINE.open(one, HERE)):
        with pytest.raises(ServeError, match=r"sample_inputs/model\.pt.*fill the memory"):
            call(spec(tmp_path, entry=FILE))


def test_a_damaged_program_is_told(tmp_path):
    export(tmp_path, ByName(), torch.ones(2), scale=torch.ones(2))
    rewritten(tmp_path / FILE, lambda held: {**held, "model/models/model.json": b"{}"})
    for call in (ENGINE.facts, lambda one: ENGINE.open(one, HERE)):
        with pytest.raises(ServeError, match="cannot open") as caught:
            call(spec(tmp_path, entry=FILE))
        assert caught.value.code is Code.LOAD_FAILED


# -- AOTInductor -------------------------------------------------------------------------------------------


class Package:
    """What aoti_load_package gives, without a compiler: a call, and the trees of its arguments and results."""

    def __init__(self, module, *example):
        program = torch.export.export(module, example)
        self._module = program.module()
        trees = torch.utils._pytree.treespec_dumps
        self.loader = self
        self.get_call_spec = lambda: [trees(program.call_spec.in_spec), trees(program.call_spec.out_spec)]

    def __call__(self, *given, **named):
        return self._module(*given, **named)


def test_a_package_takes_its_arguments_by_position():
    program = of_compiled(torch, Package(SumAndDifference(), torch.ones(2), torch.ones(2)))
    assert [argument.name for argument in program.arguments] == ["ARGUMENT__0", "ARGUMENT__1"]
    total, less = program.call(torch.ones(2) * 3, torch.ones(2))
    assert (total.tolist(), less.tolist()) == ([4, 4], [2, 2])
    assert program.writes


def test_a_package_tells_nothing_of_itself(tmp_path):
    with zipfile.ZipFile(tmp_path / FILE, "w") as archive:
        archive.writestr("model/data/aotinductor/model/x.so", b"")
    facts = ENGINE.facts(spec(tmp_path, entry=FILE))
    assert (facts.inputs, facts.outputs) == ((), ())
    assert "AOTInductor has arguments without names" in facts.remarks[0]
    with pytest.raises(ServeError, match="cannot open") as caught:
        ENGINE.open(spec(tmp_path, entry=FILE), HERE)
    assert caught.value.code is Code.LOAD_FAILED
