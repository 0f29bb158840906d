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
    root: Path, *parameters: tuple[str, str], file: str = "xgboost.json", more: str = ""
) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    folder = root / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / file).write_text("")
    text = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n' for name, value in parameters
    )
    (folder / "config.pbtxt").write_text(CONFIG + text + more)
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


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (("model_type", "treelite_checkpoint"), "checkpoints of Treelite are not read"),
        (("model_type", "xgboost_binary"), "one of xgboost, xgboost_json"),
        (("is_classifier", "yes"), "true or false"),
        (("output_class", "2"), "true or false"),
        (("predict_proba", "maybe"), "true or false"),
        (("predict_proba", "true"), "of a model that is no classifier"),
        (("threshold", "high"), "a probability, from 0 to 1"),
        (("threshold", "1.5"), "a probability, from 0 to 1"),
        (("threshold", "nan"), "a probability, from 0 to 1"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_line_and_mend(
    tmp_path: Path, parameter: tuple[str, str], words: str
) -> None:
    spec, said = read(tmp_path, parameter)
    assert spec is None
    (finding,) = [one for one in said if words in str(one)]
    assert finding.line == 8
    assert finding.hint


def test_a_model_of_trees_has_one_input_and_one_output(tmp_path: Path) -> None:
    more = 'output [{ name: "output__1" data_type: TYPE_FP32 dims: [ 1 ] }]\n'
    spec, said = read(tmp_path, ("model_type", "xgboost_json"), more=more)
    assert spec is None
    assert any("2 outputs of a model of trees" in str(one) for one in said)
