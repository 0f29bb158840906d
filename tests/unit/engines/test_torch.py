"""TorchScript on tiny modules made here: names, datatypes, batches, devices, and whose fault is whose."""

import gc
import pickle
import sys
import weakref
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.torch_models import (
    HERE,
    ROWS,
    batched,
    described,
    run,
    scripted,
    spec,
    tensors,
    traced,
)

from trivium.engines.torch import engine
from trivium.engines.torch.engine import ENGINE
from trivium.engines.torch.facts import SCRIPTED
from trivium.engines.torch.module_file import device_of
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Device, Isolation, ModelFacts, TensorSpec

torch = pytest.importorskip("torch")
# PyTorch 2.9 and later would rather have torch.export.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

FP32 = DataType.FP32


class Identity(torch.nn.Module):
    def forward(self, x):
        return x


class SumAndDifference(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x - y


class Keyed(torch.nn.Module):
    def forward(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": inputs["a"] + inputs["b"], "a": inputs["a"]}


class Writing(torch.nn.Module):
    def forward(self, x):
        return x.add_(1)


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.weight, self.calls, self.weight


def refusal(call, *args):
    with pytest.raises(ServeError) as caught:
        call(*args)
    return caught.value


def ones(*shape, dtype="<f4"):
    return np.ones(shape, dtype)


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x"), ("INPUT__0", "INPUT__1"), ("first", "second")])
def test_inputs_by_name_index_or_order(tmp_path, names):
    one = scripted(tmp_path, SumAndDifference(), tensors(*names), tensors("OUTPUT__1", "OUTPUT__0"))
    asked = {names[0]: 3 * ones(2), names[1]: ones(2)}
    (outcome,) = run(one, asked)
    difference = -2 if names[0] == "y" else 2
    assert [tensor.name for tensor in outcome.items] == ["OUTPUT__1", "OUTPUT__0"]
    assert (outcome["OUTPUT__1"].tolist(), outcome["OUTPUT__0"].tolist()) == ([difference] * 2, [4, 4])


def test_dictionaries(tmp_path):
    one = scripted(tmp_path, Keyed(), tensors("b", "a"), tensors("sum"))
    (outcome,) = run(one, {"a": ones(2), "b": 2 * ones(2)})
    assert [(tensor.name, tensor.array.tolist()) for tensor in outcome.items] == [("sum", [3, 3])]
    (outcome,) = run(spec(tmp_path), {"a": ones(2), "b": ones(2)})
    assert [tensor.name for tensor in outcome.items] == ["a", "sum"]


def test_without_declared_tensors_those_that_come_count(tmp_path):
    one = scripted(tmp_path, SumAndDifference())
    runner = ENGINE.open(one, HERE)
    for names in (("x", "y"), ("INPUT__0", "INPUT__1"), ("", "arr_1")):
        (outcome,) = run(one, {names[0]: ones(3), names[1]: ones(3)}, runner=runner)
        assert outcome["OUTPUT__0"].tolist() == [2, 2, 2]
    error = refusal(lambda: run(one, {"x": ones(3)}, runner=runner))
    assert error.code is Code.INVALID
    assert "'y' lacks" in error.message
    for at in range(200):
        run(one, {f"a{at}": ones(1), f"b{at}": ones(1)}, runner=runner)
    assert len(runner.model.arranged) <= 64


@pytest.mark.parametrize(
    "datatype",
    [one for one in DataType if one not in (DataType.BYTES, DataType.BF16)],
    ids=lambda one: one.wire,
)
def test_numbers_of_every_datatype_pass(tmp_path, datatype):
    both = tensors("x", datatype=datatype), tensors("y", datatype=datatype)
    given = np.array([0, 1], datatype.dtype)
    (outcome,) = run(scripted(tmp_path, Identity(), *both), {"x": given})
    (output,) = outcome.items
    assert (output.datatype, output.array.dtype, output.array.tolist()) == (
        datatype,
        datatype.dtype,
        given.tolist(),
    )


def test_bf16_passes_as_its_bits(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), tensors("x", "y"), tensors("s", datatype=DataType.BF16))
    bits = np.array([0x3F80, 0x4000], "<u2")  # 1 and 2
    given = [Tensor(name, DataType.BF16, (2,), bits) for name in "xy"]
    (outcome,) = ENGINE.open(one, HERE).run(Batch([1], [Infer("m", Tensors(tuple(given)))], [1])).outcomes
    assert (outcome.items[0].datatype, outcome["s"].tolist()) == (DataType.BF16, [0x4000, 0x4080])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 2, 3)])
def test_shapes_pass(tmp_path, shape):
    (outcome,) = run(scripted(tmp_path, Identity()), {"x": ones(*shape)})
    assert outcome.items[0].shape == outcome.items[0].array.shape == shape


def test_answers_are_contiguous(tmp_path):
    class Transposed(torch.nn.Module):
        def forward(self, x):
            return x.t()

    (outcome,) = run(scripted(tmp_path, Transposed()), {"x": np.arange(6, dtype="<f4").reshape(2, 3)})
    assert outcome.items[0].array.flags.c_contiguous
    assert outcome.items[0].array.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_several_items_are_stacked_and_split(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), tensors("x", "y"), tensors("s", "d"), batching=ROWS)
    outcomes = run(one, {"x": ones(1, 2), "y": ones(1, 2)}, {"x": 5 * ones(2, 2), "y": ones(2, 2)})
    assert [outcome["s"].tolist() for outcome in outcomes] == [[[2, 2]], [[6, 6], [6, 6]]]
    assert [outcome["d"].tolist() for outcome in outcomes] == [[[0, 0]], [[4, 4], [4, 4]]]


def test_without_a_batch_dimension_items_run_one_by_one(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), tensors("x", "y", dims=(-1,)), tensors("s"))
    good, bad = {"x": ones(2), "y": ones(2)}, {"x": ones(2), "y": ones(3)}
    first, refused, last = run(one, good, bad, {"x": ones(3), "y": ones(3)})
    assert (first["s"].tolist(), last["s"].tolist()) == ([2, 2], [2, 2, 2])
    assert refused.code is Code.MODEL_FAILED


@pytest.mark.parametrize("rows", [(1,), (1, 2)])
def test_later_batches_leave_earlier_answers_alone(tmp_path, rows):
    one = scripted(tmp_path, Identity(), tensors("x"), tensors("y"), batching=ROWS)
    runner = ENGINE.open(one, HERE)
    first = run(one, *({"x": ones(count, 2)} for count in rows), runner=runner)
    run(one, *({"x": 9 * ones(count, 2)} for count in rows), runner=runner)
    assert [outcome["y"].tolist() for outcome in first] == [[[1, 1]] * count for count in rows]


def test_answers_do_not_share_the_modules_memory(tmp_path):
    one = scripted(tmp_path, Weighted())
    runner = ENGINE.open(one, HERE)
    (first,) = run(one, {"x": ones(2)}, runner=runner)
    run(one, {"x": ones(2)}, runner=runner)
    assert first["OUTPUT__1"].tolist() == [1]


def test_a_batch_of_one_reaches_the_module_uncopied(tmp_path):
    one = scripted(tmp_path, Identity(), tensors("x"), tensors("y"))
    given = ones(2)
    (outcome,) = run(one, {"x": given})
    assert np.shares_memory(outcome["y"], given)


@pytest.mark.parametrize("is_writeable", [True, False])
def test_a_module_that_writes_into_its_input_gets_a_copy(tmp_path, is_writeable):
    one = scripted(tmp_path, Writing(), tensors("x"), tensors("y"))
    given = ones(2)
    given.flags.writeable = is_writeable
    (outcome,) = run(one, {"x": given})
    assert (outcome["y"].tolist(), given.tolist()) == ([2, 2], [1, 1])


def test_arrays_at_any_address_give_right_results(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), tensors("x", "y"), tensors("s"))
    values = np.arange(1000, dtype="<f4")
    array = np.frombuffer(bytearray(b"\0" + values.tobytes()), "<f4", offset=1)
    assert not array.flags.aligned
    given = [Tensor(name, FP32, array.shape, array) for name in "xy"]
    (outcome,) = ENGINE.open(one, HERE).run(Batch([1], [Infer("m", Tensors(tuple(given)))], [1])).outcomes
    assert outcome["s"].tolist() == (values * 2).tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"INFERENCE_MODE": "false"},
        {"DISABLE_OPTIMIZED_EXECUTION": "true"},
        {"ENABLE_CACHE_CLEANING": "true", "INTRA_OP_THREAD_COUNT": "1"},
    ],
)
def test_options_change_no_answer(tmp_path, parameters):
    threads = torch.get_num_threads()
    one = scripted(tmp_path, Weighted(), tensors("x"), tensors("y"), parameters=parameters)
    try:
        (outcome,) = run(one, {"x": 3 * ones(2)})
    finally:
        torch.set_num_threads(threads)
    assert outcome["y"].tolist() == [3, 3]


def watched_loads(monkeypatch):
    """Weak references to the modules that are loaded from now on."""
    load, loaded = torch.jit.load, []

    def watched(*args, **options):
        module = load(*args, **options)
        loaded.append(weakref.ref(module))
        return module

    monkeypatch.setattr(torch.jit, "load", watched)
    return loaded


def test_weights_are_shared_where_that_is_asked(tmp_path, monkeypatch):
    one = scripted(tmp_path, Weighted(), parameters={"ENABLE_WEIGHT_SHARING": "true"})
    loaded = watched_loads(monkeypatch)
    first, second = ENGINE.open(one, HERE), ENGINE.open(one, HERE)
    assert len(loaded) == 1
    first.close()
    assert run(one, {"x": ones(2)}, runner=second)[0]["OUTPUT__0"].tolist() == [1, 1]
    second.close()
    gc.collect()
    assert loaded[0]() is None, "nobody uses it any more"
    plain = replace(one, parameters={})
    for _ in range(2):
        ENGINE.open(plain, HERE)
    assert len(loaded) == 3, "each has weights of its own"


# -- whose fault is whose ----------------------------------------------------------------------------------


def test_what_fails_inside_is_the_models_fault_in_one_line(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), tensors("x", "y"), tensors("s"))
    error = refusal(lambda: run(one, {"x": ones(2), "y": ones(3)}))
    assert error.code is Code.MODEL_FAILED
    assert error.message.startswith("Model 'm': PyTorch did not run it: ")
    assert "The size of tensor a (2) must match" in error.message
    assert "\n" not in error.message


def test_too_little_memory_has_a_code_of_its_own(tmp_path):
    class Greedy(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(x.numel(), 1125899906842624)

    error = refusal(lambda: run(scripted(tmp_path, Greedy()), {"x": ones()}))
    assert error.code is Code.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("module", "outputs", "words"),
    [
        (
            Identity(),
            tensors("y", datatype=DataType.INT64),
            "output 'y' as torch.float32 (torch.strided), expected INT64",
        ),
        (Identity(), tensors("y", "z"), "forward returned 1 tensors, and the outputs are y, z"),
        (Keyed(), tensors("y"), "forward returned sum, a, and 'y' lacks"),
    ],
)
def test_outputs_that_are_not_as_declared_are_the_models_fault(tmp_path, module, outputs, words):
    one = scripted(tmp_path, module, (), outputs)
    names = "ab" if isinstance(module, Keyed) else "x"
    error = refusal(lambda: run(one, {name: ones(2) for name in names}))
    assert error.code is Code.MODEL_FAILED
    assert words in error.message


def test_what_v2_cannot_carry_is_the_models_fault(tmp_path):
    class Complex(torch.nn.Module):
        def forward(self, x):
            return torch.complex(x, x)

    class Text(torch.nn.Module):
        def forward(self, x) -> str:
            return "a"

    for module, words in ((Complex(), "as torch.complex64"), (Text(), "forward returned a str")):
        error = refusal(lambda module=module: run(scripted(tmp_path, module), {"x": ones(2)}))
        assert error.code is Code.MODEL_FAILED
        assert words in error.message


def test_an_output_without_the_batch_is_the_models_fault(tmp_path):
    class Sum(torch.nn.Module):
        def forward(self, x):
            return x.sum(0)

    one = scripted(tmp_path, Sum(), tensors("x"), tensors("y"), batching=ROWS)
    assert "'y'" in refusal(lambda: run(one, {"x": ones(3, 2)})).message


# -- opening -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        (tensors("x"), (), "forward takes x: Tensor, y: Tensor, and 'y' lacks"),
        (tensors("a", "b", "c"), (), "and the inputs are a, b, c"),
        (tensors("IN__0", "IN__2"), (), "do not count from 0"),
        (tensors("x", datatype=DataType.BYTES), (), "'x' is BYTES"),
        ((), tensors("y", datatype=DataType.BYTES), "'y' is BYTES"),
    ],
)
def test_a_configuration_that_cannot_be_fails_the_load(tmp_path, inputs, outputs, words):
    one = scripted(tmp_path, SumAndDifference(), inputs, outputs)
    error = refusal(ENGINE.open, one, HERE)
    assert error.code is Code.LOAD_FAILED
    assert "Model 'm'" in error.message
    assert words in error.message


def exported(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/serialized_exported_program.json", "{}")


def empty(path):
    with zipfile.ZipFile(path, "w"):
        pass


@pytest.mark.parametrize("call", [ENGINE.facts, lambda one: ENGINE.open(one, HERE)])
@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: None, "there is no file"),
        (lambda path: path.write_bytes(b""), "it is no archive"),
        (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "perhaps a pickle"),
        (lambda path: torch.save({"w": torch.ones(1)}, path), "a pickle written by torch.save"),
        (exported, "in the form before PyTorch 2.8, which holds pickles"),
        (empty, "the archive holds no model"),
    ],
)
def test_what_is_no_torchscript_is_told_and_never_unpickled(tmp_path, monkeypatch, write, words, call):
    write(tmp_path / "model.pt")
    monkeypatch.setattr(torch, "load", None)
    error = refusal(call, spec(tmp_path))
    assert error.code is Code.LOAD_FAILED
    assert "Model 'm': " in error.message
    assert words in error.message


def test_damaged_code_is_told(tmp_path):
    one = traced(tmp_path, Identity(), torch.ones(1, 2))
    with zipfile.ZipFile(tmp_path / "model.pt") as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        for name, data in held.items():
            archive.writestr(name, b"def" if name.endswith(".py") else data)
    for call in (ENGINE.facts, lambda one: ENGINE.open(one, HERE)):
        error = refusal(call, one)
        assert error.code is Code.LOAD_FAILED
        assert "cannot open" in error.message


def test_a_module_without_forward_is_told(tmp_path):
    class Other(torch.nn.Module):
        @torch.jit.export
        def other(self, x):
            return x

    error = refusal(ENGINE.open, scripted(tmp_path, Other()), HERE)
    assert "its module has no method forward" in error.message


@pytest.mark.parametrize("call", [ENGINE.facts, lambda one: ENGINE.open(one, HERE)])
def test_without_the_library_the_command_is_told(tmp_path, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "torch", None)
    error = refusal(call, spec(tmp_path))
    assert error.code is Code.UNSUPPORTED
    assert "-m pip install 'torch>=" in error.message


class Cuda:
    """A torch with some GPUs, as far as a placement asks."""

    def __init__(self, count):
        self.cuda = self
        self.count = count
        self.device = torch.device

    def is_available(self):
        return self.count > 0

    def device_count(self):
        return self.count


def gpu(number):
    return Placement("m_0", Isolation.THREAD, Device.GPU, number)


def test_placements_become_devices(tmp_path):
    one = spec(tmp_path)
    assert device_of(Cuda(0), one, HERE) == torch.device("cpu")
    assert device_of(Cuda(2), one, gpu(1)) == torch.device("cuda", 1)
    error = refusal(device_of, Cuda(2), one, gpu(2))
    assert error.code is Code.LOAD_FAILED
    assert "m_0 is to run on GPU 2, but this PyTorch sees 2 GPUs" in error.message
    assert "has no CUDA, or sees no GPU" in refusal(device_of, Cuda(0), one, gpu(0)).message


# -- facts -------------------------------------------------------------------------------------------------


def test_a_traced_file_tells_its_tensors(tmp_path):
    one = traced(tmp_path, SumAndDifference(), torch.ones(1, 2), torch.ones(1, 2))
    facts = ENGINE.facts(one)
    assert facts.inputs == tensors("x", "y", dims=(-1, 2))
    assert facts.outputs == tensors("OUTPUT__0", "OUTPUT__1", dims=(-1, 2))
    assert facts.batchable
    assert "those that it was traced with" in facts.remarks[0]
    (outcome,) = run(one, {"x": ones(3, 2), "y": ones(3, 2)})
    assert outcome["OUTPUT__0"].shape == (3, 2)
    assert len(run(batched(one), *[{"x": ones(1, 2), "y": ones(1, 2)}] * 3)) == 3


def test_a_traced_file_that_takes_one_size_only(tmp_path):
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.view(1, 6).long()

    facts = ENGINE.facts(traced(tmp_path, Fixed(), torch.ones(1, 2, 3)))
    assert facts.inputs == (TensorSpec("x", FP32, (1, 2, 3)),)
    assert facts.outputs == (TensorSpec("OUTPUT__0", DataType.INT64, (1, 6)),)
    assert not facts.batchable


def test_a_traced_file_with_no_rows(tmp_path):
    class Sum(torch.nn.Module):
        def forward(self, x):
            return x.sum()

    facts = ENGINE.facts(traced(tmp_path, Sum(), torch.ones(2)))
    assert (facts.outputs, facts.batchable) == ((TensorSpec("OUTPUT__0", FP32, ()),), False)
    facts = ENGINE.facts(traced(tmp_path, Identity(), torch.ones(())))
    assert (facts.inputs, facts.batchable) == ((TensorSpec("x", FP32, ()),), False)


def test_a_file_that_does_not_run_on_zeros(tmp_path):
    class Picky(torch.nn.Module):
        def forward(self, x):
            return torch.multinomial(x, 1)

    facts = ENGINE.facts(traced(tmp_path, Picky(), torch.ones(1, 1)))
    assert (facts.inputs, facts.outputs) == (tensors("x", dims=(1, 1)), ())
    assert "could not be run on zeros" in facts.remarks[0]


def test_a_scripted_file_tells_names(tmp_path):
    one = scripted(tmp_path, SumAndDifference(), parameters={"k": "v"})
    facts = ENGINE.facts(one)
    assert facts == ModelFacts(facts.inputs, facts.outputs, False, facts.notes, remarks=(SCRIPTED,))
    assert all(tensor.open for tensor in (*facts.inputs, *facts.outputs))
    assert [tensor.name for tensor in facts.inputs] == ["x", "y"]
    assert [tensor.name for tensor in facts.outputs] == ["OUTPUT__0", "OUTPUT__1"]
    assert len(facts.notes) == 1
    keyed = {"a": torch.ones(1), "b": torch.ones(1)}
    torch.jit.trace(Keyed(), (keyed,), strict=False).save(str(tmp_path / "model.pt"))
    (tensor,) = ENGINE.facts(one).inputs
    assert tensor.many


def test_a_closed_runner_lets_its_module_go(tmp_path, monkeypatch):
    loaded = watched_loads(monkeypatch)
    runner = ENGINE.open(scripted(tmp_path, Identity()), HERE)
    assert loaded[-1]() is not None
    runner.close()
    gc.collect()
    assert loaded[-1]() is None
    assert [one.name for one in described(tmp_path).inputs] == ["x"]
    assert engine.ENGINE.name == "torch"


@pytest.mark.parametrize(
    ("named", "notes"),
    [
        ("", ()),
        ("config.txt", ()),
        (
            "config.txt,a, more",
            (
                "the archive lacks the extra files a, more (it has config.txt): they are empty to a translator",
            ),
        ),
    ],
)
def test_extra_files_that_the_archive_lacks_are_told(tmp_path, named, notes):
    torch.jit.save(
        torch.jit.script(Identity()),
        str(tmp_path / "model.pt"),
        _extra_files={"config.txt": '{"stride": 32}'},
    )
    facts = ENGINE.facts(spec(tmp_path, parameters={"extra_files": named} if named else {}))
    assert facts.notes == notes


def test_an_archive_without_extra_files_has_none(tmp_path):
    one = scripted(tmp_path, Identity(), parameters={"extra_files": "a"})
    (note,) = ENGINE.facts(one).notes
    assert "(it has none)" in note
