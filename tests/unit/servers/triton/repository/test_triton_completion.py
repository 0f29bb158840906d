"""The ONNX rules of completion and validation, on facts made up here (sheet "triton", section 2.4, step C)."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.description import config_json
from trivium.servers.triton.words.texts import error_text
from trivium.types.batch_shapes import BatchInput, BatchShapes, ShapeFact
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.spec import Batching, Defaults, ModelFacts, ModelSpec, TensorSpec

X = TensorSpec("x", DataType.FP32, (-1, 4))
Y = TensorSpec("y", DataType.INT64, (-1, 2))
BATCHABLE = ModelFacts((X,), (Y,), batchable=True)
FIXED = ModelFacts((TensorSpec("x", DataType.FP32, (1, 4)),), (Y,), batchable=False)

DEFAULTS = Defaults()
INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: %s }\n'
OUTPUT = 'output { name: "y" data_type: TYPE_INT64 dims: %s }\n'


def read(tmp_path: Path, config: str, defaults: Defaults = DEFAULTS) -> ModelSpec:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").touch()
    (folder / "config.pbtxt").write_text(config)
    (spec,) = FORMAT.read(folder, defaults).specs
    return spec


@pytest.mark.parametrize(
    ("config", "rows", "batching", "dims"),
    [
        ("", 4, Batching(True, 4, True), (4,)),
        ("", 1, Batching(True, 1, False), (4,)),
        ("max_batch_size: 8", 4, Batching(True, 8, False), (4,)),
        ("max_batch_size: 8 dynamic_batching { }", 4, Batching(True, 8, True), (4,)),
        (INPUT % "[ 4 ]", 4, Batching(True, 4, True), (4,)),
        (INPUT % "[ 4 ]" + "max_batch_size: 8", 4, Batching(True, 8, False), (4,)),
        (INPUT % "[ -1, 4 ]" + OUTPUT % "[ -1, 2 ]", 4, Batching(), (-1, 4)),
        (INPUT % "4" + OUTPUT % "2" + "max_batch_size: 16", 4, Batching(True, 16, False), (4,)),
    ],
)
def test_completes(tmp_path: Path, config: str, rows: int, batching: Batching, dims: tuple[int, ...]) -> None:
    spec = FORMAT.finish(read(tmp_path, config, Defaults(max_rows=rows)), BATCHABLE)
    assert (spec.batching, spec.inputs[0].dims) == (batching, dims)
    assert [tensor.name for tensor in spec.outputs] == ["y"]
    printed = msgspec.json.decode(config_json(spec))
    assert printed["max_batch_size"] == (batching.max_rows if batching.batch_axis else 0)
    assert printed["input"][0]["dims"] == list(dims)
    assert ("dynamic_batching" in printed) == batching.merge


@pytest.mark.parametrize(("dims", "rows"), [("[ -1, 4 ]", 0), ("[ 4 ]", 4)])
def test_openvino_keeps_dims_that_have_the_first_of_the_file(tmp_path: Path, dims: str, rows: int) -> None:
    config = 'backend: "openvino" default_model_filename: "model.onnx"\n' + INPUT % dims
    spec = FORMAT.finish(read(tmp_path, config), BATCHABLE)
    assert (spec.engine, spec.batching.batch_axis) == ("openvino", bool(rows))
    assert spec.outputs[0].dims == ((2,) if rows else (-1, 2))


def test_says_what_came_from_the_file(tmp_path: Path) -> None:
    before = read(tmp_path, "")
    spec = FORMAT.finish(before, BATCHABLE)
    for field in ("inputs[0].dims", "outputs[0].datatype", "batching.max_rows", "batching.merge"):
        assert "auto-completed from the model file" in str(spec.origin[field])
    assert spec.scheduling.preferred_rows == (4,)
    assert spec.origin["engine"] == before.origin["engine"]
    assert msgspec.json.decode(config_json(before))["max_batch_size"] == 0


def test_a_model_that_cannot_batch(tmp_path: Path) -> None:
    spec = FORMAT.finish(read(tmp_path, ""), FIXED)
    assert (spec.batching, spec.inputs, spec.outputs) == (Batching(), FIXED.inputs, FIXED.outputs)


def test_a_tensor_of_the_batch_alone(tmp_path: Path) -> None:
    facts = ModelFacts((X,), (TensorSpec("y", DataType.INT64, (-1,)),), batchable=True)
    spec = FORMAT.finish(read(tmp_path, ""), facts)
    assert (spec.outputs[0].dims, spec.outputs[0].inner) == ((1,), ())
    assert msgspec.json.decode(config_json(spec))["output"][0]["reshape"] == {"shape": []}
    assert spec.reports == ()


def test_a_scalar_of_a_model_that_cannot_batch(tmp_path: Path) -> None:
    spec = FORMAT.finish(read(tmp_path, ""), ModelFacts((X,), (TensorSpec("y", DataType.INT64, ()),), False))
    assert (spec.outputs[0].dims, spec.outputs[0].inner) == ((1,), ())
    printed = msgspec.json.decode(config_json(spec))["output"][0]
    assert (printed["dims"], "reshape" in printed) == ([1], False), "as Triton completes it"


SCALAR = ModelFacts((TensorSpec("x", DataType.FP32, ()),), (TensorSpec("y", DataType.INT64, ()),), False)
MIXED = ModelFacts((X, TensorSpec("s", DataType.FP32, ())), (Y,), batchable=False)


@pytest.mark.parametrize("dims", ["1", "[ 1 ]", "[ 1, 1 ]", "1 reshape { }", "1 reshape { shape: [ ] }"])
@pytest.mark.parametrize("reshape", ["", "reshape { shape: 1 }"])
def test_every_form_of_a_scalar(tmp_path: Path, dims: str, reshape: str) -> None:
    config = INPUT % dims + OUTPUT % f"1 {reshape}"
    spec = FORMAT.finish(read(tmp_path, config), SCALAR)
    shown = (1, 1) if dims == "[ 1, 1 ]" else (1,)
    assert (spec.inputs[0].dims, spec.inputs[0].inner) == (shown, ())
    assert (spec.outputs[0].dims, spec.outputs[0].inner) == ((1,), ())
    assert spec.reports == ()


def test_a_scalar_beside_a_batch_is_for_all_rows(tmp_path: Path) -> None:
    config = INPUT % "4" + 'input { name: "s" data_type: TYPE_FP32 dims: 1 }' + OUTPUT % "2"
    spec = FORMAT.finish(read(tmp_path, f"{config} max_batch_size: 8 dynamic_batching {{ }}"), MIXED)
    assert [tensor.inner for tensor in spec.inputs] == [None, ()]
    assert (spec.batching.max_rows, spec.batching.merge) == (8, False)
    assert [report.key for report in spec.reports] == ["dynamic_batching"]


def test_a_scalar_has_one_element(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        FORMAT.finish(read(tmp_path, INPUT % "2" + OUTPUT % "1"), SCALAR)
    (finding,) = refusal.value.findings
    assert (finding.key, finding.found) == ("input[0].dims", "the shape [2] for x")
    answer = error_text(refusal.value, {})
    assert answer is not None
    assert "scalar tensor 'x', should only provide 1 in the model configuration" in answer.text


def test_what_the_model_file_has_is_the_reshape(tmp_path: Path) -> None:
    config = INPUT % "[ 2, 2 ] reshape { shape: 4 }" + OUTPUT % "2" + "max_batch_size: 2"
    spec = FORMAT.finish(read(tmp_path, config), BATCHABLE)
    assert (spec.inputs[0].dims, spec.inputs[0].inner) == ((2, 2), (4,))
    (tmp_path / "other").mkdir()
    config = INPUT % "4 reshape { shape: [ 2, 2 ] }" + OUTPUT % "2" + "max_batch_size: 2"
    with pytest.raises(ConfigError, match=r"\(\[-1\] for the batch, then reshape \[2, 2\]\) for x"):
        FORMAT.finish(read(tmp_path / "other", config), BATCHABLE)


def test_an_optional_input_need_not_be_configured(tmp_path: Path) -> None:
    facts = ModelFacts((X, TensorSpec("w", DataType.FP32, (-1, 1), optional=True)), (Y,), batchable=True)
    config = INPUT % "4" + OUTPUT % "2" + "max_batch_size: 2"
    assert len(FORMAT.finish(read(tmp_path, config), facts).inputs) == 1


REFUSED = [
    ("\nmax_batch_size: 8", FIXED, 2, "max_batch_size", "cannot batch"),
    (INPUT % "4" + OUTPUT % "2" + "max_batch_size: 8", FIXED, 3, "max_batch_size", "has the shape [1, 4]"),
    (INPUT % "[ -1, 5 ]" + OUTPUT % "[ -1, 2 ]", BATCHABLE, 1, "input[0].dims", "[-1, 5]"),
    (INPUT % "5" + OUTPUT % "2" + "max_batch_size: 8", BATCHABLE, 1, "input[0].dims", "[-1] for the batch"),
    (INPUT % "4" + OUTPUT % "[ 2, 2 ]" + "max_batch_size: 8", BATCHABLE, 2, "output[0].dims", "[-1, 2, 2]"),
    (INPUT % "[ -1, 4 ]", BATCHABLE, 1, "input[0].dims", "the shape [-1, -1, 4]"),
    (
        "\n" + INPUT.replace("FP32", "FP16") % "[ -1, 4 ]" + OUTPUT % "[ -1, 2 ]",
        BATCHABLE,
        2,
        "data_type",
        "FP16",
    ),
    (
        INPUT.replace('"x"', '"z"') % "[ -1, 4 ]" + OUTPUT % "[ -1, 2 ]",
        BATCHABLE,
        1,
        "input[0].name",
        "input z",
    ),
    (INPUT.replace('"x"', '"z"') % "[ -1, 4 ]" + OUTPUT % "[ -1, 2 ]", BATCHABLE, 1, "input", "no input x"),
    (
        'model_warmup {\ninputs { key: "q" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        BATCHABLE,
        2,
        "model_warmup[0].inputs[0].key",
        "the input q",
    ),
]


@pytest.mark.parametrize(("config", "facts", "line", "key", "found"), REFUSED)
def test_contradictions(
    tmp_path: Path, config: str, facts: ModelFacts, line: int, key: str, found: str
) -> None:
    spec = read(tmp_path, config)
    with pytest.raises(ConfigError) as raised:
        FORMAT.finish(spec, facts)
    named = [each for each in raised.value.findings if each.key.endswith(key) and found in each.found]
    assert [(finding.file, finding.line) for finding in named] == [
        (str(tmp_path / "m" / "config.pbtxt"), line)
    ]
    assert named[0].expected
    assert named[0].hint


RAGGED = (
    'max_batch_size: 2 input { name: "x" data_type: TYPE_FP32 dims: -1\nallow_ragged_batch: true }'
    + OUTPUT % "2"
)
TOLD = 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_INT32 source_input: "x" }'


def test_inputs_that_the_server_makes_are_no_clients(tmp_path: Path) -> None:
    flat, told = TensorSpec("x", DataType.FP32, (-1,)), TensorSpec("n", DataType.INT32, (-1,))
    spec = FORMAT.finish(read(tmp_path, RAGGED + TOLD), ModelFacts((flat, told), (Y,), True))
    assert spec.inputs == (TensorSpec("x", DataType.FP32, (-1,), ragged=True),)
    assert spec.batch_shapes == BatchShapes((BatchInput(("n",), ShapeFact.COUNTS, DataType.INT32, "x"),))


def test_a_ragged_input_has_one_dimension_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the ragged input x, which has the shape \[-1, 4\]") as error:
        FORMAT.finish(read(tmp_path, RAGGED), BATCHABLE)
    (finding,) = error.value.findings
    assert (finding.key, finding.line) == ("input[0].allow_ragged_batch", 2)


@pytest.mark.parametrize(
    ("config", "facts", "words"),
    [
        (
            "max_batch_size: 8",
            FIXED,
            "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
        ),
        (
            INPUT.replace('"x"', '"q"') % "4" + OUTPUT % "2" + "max_batch_size: 8",
            BATCHABLE,
            "unexpected inference input 'q', allowed inputs are: x",
        ),
        (
            INPUT.replace("FP32", "FP16") % "4" + OUTPUT % "2" + "max_batch_size: 8",
            BATCHABLE,
            "unable to load model 'm', configuration expects datatype TYPE_FP16 for input 'x', model provides "
            "TYPE_FP32",
        ),
        (
            INPUT % "[ 4, 4 ]" + OUTPUT % "2" + "max_batch_size: 8",
            BATCHABLE,
            "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,4]) but the model configuration "
            "specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
            "tensor shape, making complete shape [-1,4,4])",
        ),
    ],
)
def test_a_client_is_told_in_the_originals_words(
    tmp_path: Path, config: str, facts: ModelFacts, words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        FORMAT.finish(read(tmp_path, config), facts)
    answer = error_text(error.value, {})
    assert answer is not None
    assert answer.text == (
        f"load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: {words};\n"
    )


def test_an_output_that_follows_an_input_has_any_shape_in_the_file(tmp_path: Path) -> None:
    follows = 'batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }'
    flat = ModelFacts((TensorSpec("x", DataType.FP32, (-1,)),), (replace(Y, dims=(-1,)),), True)
    assert FORMAT.finish(read(tmp_path, RAGGED + follows), flat).batch_shapes.outputs
