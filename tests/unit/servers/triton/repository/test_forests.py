"""Models of trees by Triton's backend `fil`: which engine opens what, what it is asked, and what is refused where."""

from pathlib import Path

import pytest

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.findings import Finding
from trivium.types.spec import Defaults, ModelSpec

CONFIG = """name: "m"
backend: "fil"
max_batch_size: 8
input [{ name: "input__0" data_type: TYPE_FP32 dims: [ 4 ] }]
output [{ name: "output__0" data_type: TYPE_FP32 dims: [ 1 ] }]
instance_group [{ kind: KIND_AUTO }]
dynamic_batching {}
"""


def read(
    root: Path, *parameters: tuple[str, str], file: str = "xgboost.json", more: str = "", config: str = CONFIG
) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    folder = root / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / file).write_text("")
    text = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n' for name, value in parameters
    )
    (folder / "config.pbtxt").write_text(config + text + more)
    found = FORMAT.read(folder, Defaults())
    return (found.specs[0], ()) if found.specs else (None, found.unreadable[0].findings)


@pytest.mark.parametrize(
    ("kind", "file", "engine"),
    [
        ("xgboost", "xgboost.model", "xgboost"),
        ("xgboost_json", "xgboost.json", "xgboost"),
        ("xgboost_ubj", "xgboost.ubj", "xgboost"),
        ("lightgbm", "model.txt", "lightgbm"),
    ],
)
def test_the_kind_chooses_the_file_and_the_engine(tmp_path: Path, kind: str, file: str, engine: str) -> None:
    spec, said = read(tmp_path, ("model_type", kind), file=file)
    assert spec is not None, said
    assert (spec.engine, spec.entry) == (engine, file)
    spec, said = read(
        tmp_path / "named", ("model_type", kind), file="a.b", more='default_model_filename: "a.b"'
    )
    assert spec is not None, said
    assert (spec.engine, spec.entry) == (engine, "a.b")


@pytest.mark.parametrize(
    ("parameters", "asked", "line"),
    [
        ((), {"answer": "values"}, None),
        ((("is_classifier", "true"),), {"answer": "classes"}, 9),
        ((("output_class", "true"),), {"answer": "classes"}, 9),
        (
            (("output_class", "true"), ("predict_proba", "true"), ("storage_type", "AUTO")),
            {"answer": "probabilities"},
            10,
        ),
        (
            (("is_classifier", "true"), ("threshold", "0.3")),
            {"answer": "classes", "threshold": "0.3"},
            9,
        ),
        ((("is_classifier", "false"), ("predict_proba", "false")), {"answer": "values"}, None),
    ],
)
def test_the_parameters_say_what_is_asked_of_the_trees(
    tmp_path: Path, parameters: tuple[tuple[str, str], ...], asked: dict[str, str], line: int | None
) -> None:
    spec, said = read(tmp_path, ("model_type", "xgboost_json"), *parameters)
    assert spec is not None, said
    assert spec.parameters == asked
    told = [one.key for one in spec.reports if "chooses kernels" in one.found]
    assert len(told) == sum(name == "storage_type" for name, _ in parameters)
    assert spec.origin["parameters[answer]"].line == line


KIND = ("model_type", "xgboost_json")


@pytest.mark.parametrize(
    ("parameter", "words", "hint"),
    [
        (("model_type", "treelite_checkpoint"), "checkpoints of Treelite are not read", "Save the model"),
        (("model_type", "xgboost_binary"), "one of xgboost, xgboost_json", "Write one"),
        (("model_type", "xgboost-json"), "one of xgboost, xgboost_json", "Write one"),
        (("model_type", "XGBoost_JSON"), "one of xgboost, xgboost_json", "Write one"),
        (("model_type", "sklearn"), "one of xgboost, xgboost_json", "Write one"),
        (("is_classifier", "yes"), "true or false", "Write one"),
        (("output_class", "2"), "true or false", "Write one"),
        (("predict_proba", "maybe"), "true or false", "Write one"),
        (("predict_proba", "true"), "of a model that is no classifier", "is_classifier"),
        (("threshold", "high"), "a probability, from 0 to 1", "Correct it"),
        (("threshold", "1.5"), "a probability, from 0 to 1", "Correct it"),
        (("threshold", "nan"), "a probability, from 0 to 1", "Correct it"),
        (("threshold", "0,5"), "a probability, from 0 to 1", "Correct it"),
        (("storage_type", "QUICK"), "AUTO, DENSE, SPARSE", "changes no answer"),
        (("algo", "FASTEST"), "ALGO_AUTO, BATCH_TREE_REORG", "changes no answer"),
        (("chunk_size", "many"), "a number", "changes no answer"),
        (("blocks_per_sm", "0.5"), "a number", "changes no answer"),
        (("use_experimental_optimizations", "perhaps"), "true", "changes no answer"),
        (("xgboost_allow_unknown_field", "perhaps"), "true or false", "Write one"),
        (("predic_proba", "true"), "no parameter of the backend fil", "Did you mean predict_proba?"),
        (("ouput_class", "true"), "no parameter of the backend fil", "Did you mean output_class?"),
        (("treshold", "0.3"), "no parameter of the backend fil", "Did you mean threshold?"),
        (("modeltype", "xgboost"), "no parameter of the backend fil", "Did you mean model_type?"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_line_and_mend(
    tmp_path: Path, parameter: tuple[str, str], words: str, hint: str
) -> None:
    spec, said = read(tmp_path, parameter)
    assert spec is None
    (finding,) = [one for one in said if words in str(one)]
    assert finding.line == 8
    assert hint in finding.hint


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("TYPE_FP32 dims: [ 4 ]", "TYPE_STRING dims: [ 4 ]", 4, "an input of TYPE_BYTES"),
        ("TYPE_FP32 dims: [ 4 ]", "TYPE_FP16 dims: [ 4 ]", 4, "an input of TYPE_FP16"),
        ('backend: "fil"', 'backend: "FIL"', 2, "Did you mean fil?"),
        ('backend: "fil"', 'backend: "fill"', 2, "Did you mean fil?"),
        ('backend: "fil"', 'platform: "fil"', 2, "backend"),
        ("KIND_AUTO", "KIND_GPU", 6, "without GPUs"),
    ],
)
def test_a_wrong_configuration_is_named_with_its_line_and_mend(
    tmp_path: Path, before: str, after: str, line: int, words: str
) -> None:
    spec, said = read(tmp_path, KIND, config=CONFIG.replace(before, after, 1))
    assert spec is None
    (finding,) = [one for one in said if words in str(one)]
    assert finding.line == line
    assert finding.hint


def test_a_model_of_trees_has_one_input_and_one_output(tmp_path: Path) -> None:
    more = 'output [{ name: "output__1" data_type: TYPE_FP32 dims: [ 1 ] }]\n'
    spec, said = read(tmp_path, ("model_type", "xgboost_json"), more=more)
    assert spec is None
    assert any("2 outputs of a model of trees" in str(one) for one in said)
