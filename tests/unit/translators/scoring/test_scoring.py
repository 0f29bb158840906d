"""The scoring bodies of MLflow: what each form becomes, and what a wrong one is told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.translators.scoring.kind import KIND
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.spec import Batching, ModelSpec, TensorSpec, TranslatorSpec

TABLE = (TensorSpec("input-0", DataType.FP64, (-1, 2)),)
COLUMNS = [["a", "double", True], ["b", "double", True]]
WHOLE = [["a", "long", True], ["b", "double", False]]
ROWS = [[1.0, 2.0], [3.0, 4.0]]


def spec_of(
    inputs: tuple[TensorSpec, ...] = TABLE, columns: Any = (), tensors: Any = (), answers: str = "list"
) -> ModelSpec:
    arguments = {
        "columns": list(columns),
        "tensors": [[name, "FP32", [-1, 2]] for name in tensors],
        "answers": answers,
        "input": "",
    }
    wanted = TranslatorSpec(KIND.name, arguments)
    return replace(make_spec(Batching(), inputs=inputs), root=Path(), translator=wanted)


def before(spec: ModelSpec, body: object, kind: str = "application/json") -> Any:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    (made,) = KIND.open(spec).before([Infer(model="m", payload=Raw((RawPart(data, kind),)))])
    return made


def arrays(spec: ModelSpec, body: object, kind: str = "application/json") -> dict[str, Any]:
    made = before(spec, body, kind)
    assert not isinstance(made, ServeError), made.message
    (tensors,) = made.rows
    assert all(one.array.dtype == one.datatype.dtype for one in tensors.items)
    return {one.name: one.array.tolist() for one in tensors.items}


SPLIT = {"dataframe_split": {"columns": ["a", "b"], "index": [0, 1], "data": ROWS}}
TURNED = {"dataframe_split": {"columns": ["b", "more", "a"], "data": [[2, 9, 1], [4, 9, 3]]}}
RECORDS = [{"a": 1, "b": 2}, {"b": 4, "a": 3}]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (SPLIT, "application/json"),
        (SPLIT, "application/json; charset=utf-8"),
        (SPLIT, ""),
        (TURNED, "application/json"),
        ({"dataframe_records": RECORDS}, "application/json"),
        ({"inputs": {"a": [1, 3], "b": [2, 4]}}, "application/json"),
        ({"inputs": RECORDS}, "application/json"),
        ({"inputs": ROWS, "params": {"k": 1}}, "application/json"),
        ({"instances": RECORDS}, "application/json"),
        ({"instances": ROWS}, "application/json"),
        ("b,a\n2,1\n4,3\n", "text/csv"),
        ('"a","b"\r\n1,2\r\n\r\n3.0,4e0', "text/csv; charset=utf-8"),
    ],
)
def test_columns_become_one_matrix_in_the_order_of_the_signature(body: object, kind: str) -> None:
    assert arrays(spec_of(columns=COLUMNS), body, kind) == {"input-0": ROWS}


@pytest.mark.parametrize(
    "body",
    [
        SPLIT,
        {"dataframe_records": RECORDS},
        {"inputs": ROWS},
        {"instances": ROWS},
        {"inputs": {"input-0": ROWS}},
    ],
)
def test_without_a_signature_columns_keep_their_order(body: object) -> None:
    assert arrays(spec_of(), body) == {"input-0": ROWS}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"dataframe_split": {"columns": ["x"], "index": [0, 1], "data": [[1], [-1]]}}, "application/json"),
        ("x\n1\n-1\n", "text/csv"),
    ],
)
def test_a_column_of_integers_is_read_from_json_and_csv_alike(body: object, kind: str) -> None:
    """Source: mlflow/mlflow issue 5525."""
    inputs = (TensorSpec("input-0", DataType.FP64, (-1, 1)),)
    assert arrays(spec_of(inputs, [["x", "integer", True]]), body, kind) == {"input-0": [[1.0], [-1.0]]}


def test_the_body_of_mlflow_1_is_told_the_forms_of_today() -> None:
    made = before(spec_of(columns=COLUMNS), {"columns": ["a", "b"], "index": [0], "data": [[1, 2]]})
    assert isinstance(made, ServeError)
    assert "columns, index, data" in made.message
    assert "dataframe_split" in made.message


def test_columns_without_names_go_by_position() -> None:
    unnamed = [["", "double", True]] * 2
    assert arrays(spec_of(columns=unnamed), SPLIT) == {"input-0": ROWS}
    assert arrays(spec_of(columns=unnamed), {"inputs": ROWS}) == {"input-0": ROWS}


def test_what_lacks_in_an_optional_column_is_no_number() -> None:
    found = arrays(spec_of(columns=WHOLE), {"dataframe_records": [{"a": 1, "b": None}, {"a": 2}]})["input-0"]
    assert [row[0] for row in found] == [1, 2]
    assert np.isnan([row[1] for row in found]).all()


def test_each_column_is_an_input_where_the_model_has_several() -> None:
    inputs = (TensorSpec("a", DataType.FP32, (-1, 1)), TensorSpec("city", DataType.BYTES, (-1,)))
    columns = [["a", "float", True], ["city", "string", True]]
    body = {"dataframe_split": {"columns": ["city", "a"], "data": [["Köln", 1.5]]}}
    assert arrays(spec_of(inputs, columns), body) == {"a": [[1.5]], "city": ["Köln".encode()]}


def test_tensors_by_name_and_a_list_for_the_only_one() -> None:
    inputs = (TensorSpec("x", DataType.FP32, (-1, 2)),)
    spec = spec_of(inputs, tensors=["x"], answers="named")
    for body in ({"inputs": {"x": ROWS}}, {"inputs": ROWS}, {"instances": [{"x": row} for row in ROWS]}):
        assert arrays(spec, body) == {"x": ROWS}


REFUSED: list[tuple[Any, object, str, str]] = [
    ((), "{", "no JSON", "BAD_REQUEST"),
    ((), "3", "a number", "BAD_REQUEST"),
    ((), {"a": 1}, "exactly one", "BAD_REQUEST"),
    ((), {"inputs": ROWS, "instances": ROWS}, "inputs, instances", "BAD_REQUEST"),
    ((), {"inputs": ROWS, "signature_name": "x"}, "signature_name", "BAD_REQUEST"),
    ((), {"dataframe_split": ROWS}, "a list", "BAD_REQUEST"),
    ((), {"dataframe_split": {"columns": ["a"]}}, "data", "BAD_REQUEST"),
    ((), {"dataframe_split": {"columns": ["a", "a"], "data": ROWS}}, "twice", "BAD_REQUEST"),
    ((), {"dataframe_split": {"columns": ["a"], "data": ROWS}}, "Row 0", "BAD_REQUEST"),
    ((), {"dataframe_records": {"a": 1}}, "an object", "BAD_REQUEST"),
    ((), {"dataframe_records": [1]}, "no objects", "BAD_REQUEST"),
    ((), {"inputs": [["x", "y"]]}, "cannot be read as FP64", "BAD_REQUEST"),
    ((), {"inputs": [[1, 2], [3]]}, "cannot be read as FP64", "BAD_REQUEST"),
    ((), {"inputs": [[1, 2, 3]]}, "[1, 3]", "INVALID_PARAMETER_VALUE"),
    (COLUMNS, {"dataframe_records": [{"a": 1}]}, "'b'", "INVALID_PARAMETER_VALUE"),
    (COLUMNS, {"dataframe_records": [{"a": 1, "b": "x"}]}, "'x' in row 0", "BAD_REQUEST"),
    (COLUMNS, {"inputs": {"a": [1], "b": [1, 2]}}, "as many in each", "BAD_REQUEST"),
    (COLUMNS, {"inputs": [[1]]}, "the model takes 2", "INVALID_PARAMETER_VALUE"),
    (WHOLE, {"dataframe_records": [{"a": 1.5}]}, "no long", "BAD_REQUEST"),
]


@pytest.mark.parametrize(("columns", "body", "word", "error_code"), REFUSED)
def test_a_wrong_body_is_the_client_s_fault(columns: Any, body: object, word: str, error_code: str) -> None:
    made = before(spec_of(columns=columns), body)
    assert isinstance(made, ServeError)
    assert (made.reason, made.metadata["error_code"]) == (reasons.SCORING, error_code)
    assert word in made.message


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "empty"), ("a,b\n1\n", "Line 2"), ("a,a\n1,2", "twice"), ('a,b\n"1,2', "cannot be read")],
)
def test_a_wrong_csv_names_the_line(text: str, word: str) -> None:
    made = before(spec_of(), text, "text/csv")
    assert isinstance(made, ServeError)
    assert word in made.message


@pytest.mark.parametrize("body", [ROWS, {"input-0": ROWS}])
def test_bodies_of_other_forms_are_answered_as_those_of_other_models(body: object) -> None:
    spec = spec_of()
    made = before(spec, body)
    outputs = Tensors.of({"predict": np.array([1, 2])})
    assert made.rows[0]["input-0"].tolist() == ROWS
    assert KIND.open(spec).after(made, [outputs]) is outputs


def written(spec: ModelSpec, body: object, **outputs: Any) -> Any:
    answer = KIND.open(spec).after(before(spec, body), [Tensors.of(outputs)])
    assert isinstance(answer, Raw)
    return json.loads(bytes(answer.parts[0].data))


def test_predictions_are_the_first_output_of_a_table() -> None:
    both = {"predict": np.array([1, 2]), "predict_proba": np.array([[0.5, 0.5]] * 2)}
    assert written(spec_of(), {"inputs": ROWS}, **both) == {"predictions": [1, 2]}
    assert written(spec_of(), {"inputs": ROWS}, predict=np.array(["a", "b"])) == {"predictions": ["a", "b"]}
    assert written(spec_of(), {"inputs": ROWS}, predict=np.array([1, np.nan])) == {"predictions": [1, None]}


def test_predictions_of_graphs_are_named_and_rows_where_rows_were_sent() -> None:
    inputs = (TensorSpec("x", DataType.FP32, (-1, 2)),)
    outputs = {"label": np.array([1, 2]), "score": np.array([[0.5], [0.25]])}
    named = {"label": [1, 2], "score": [[0.5], [0.25]]}
    rows = [{"label": 1, "score": 0.5}, {"label": 2, "score": 0.25}]
    spec = spec_of(inputs, answers="named")
    assert written(spec, {"inputs": ROWS}, **outputs) == {"predictions": named}
    assert written(spec, SPLIT, **outputs) == {"predictions": rows}
    told = spec_of(inputs, tensors=["x"], answers="named")
    assert written(told, {"inputs": {"x": ROWS}}, **outputs) == {"predictions": named}


def test_predictions_of_torch_have_numbers_for_names() -> None:
    spec = spec_of((TensorSpec("x", DataType.FP32, (-1, 2)),), answers="rows")
    scores = np.array([[0.5, 0.25], [1.0, 2.0]])
    assert written(spec, {"inputs": ROWS}, y=scores) == {"predictions": scores.tolist()}
    assert written(spec, SPLIT, y=scores) == {"predictions": [{"0": 0.5, "1": 0.25}, {"0": 1.0, "1": 2.0}]}


def tensors(spec: ModelSpec, **columns: Any) -> Any:
    """Return what becomes of a tensor for each column, as MLServer's clients send them."""
    assert spec.translator is not None
    split = replace(spec, translator=replace(spec.translator, inputs=spec.inputs))
    given = Tensors.of({name: np.asarray(values) for name, values in columns.items()})
    (made,) = KIND.open(split).before([Infer(model="m", payload=given)])
    return made


def test_tensors_of_columns_become_the_one_matrix_in_the_order_of_the_signature() -> None:
    made = tensors(spec_of(columns=COLUMNS), b=np.array([[2], [4]], np.float32), a=[1, 3])
    (given,) = made.rows
    (one,) = given.items
    assert (one.name, one.datatype, one.array.tolist()) == ("input-0", DataType.FP64, ROWS)


def test_a_column_that_lacks_is_no_number() -> None:
    made = tensors(spec_of(columns=WHOLE), a=[1, 3])
    assert np.isnan(made.rows[0].items[0].array[:, 1]).all()


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"a": [1, 2], "b": [1.0]}, "several lengths"),
        ({"a": [1.5], "b": [1.0]}, "no long"),
    ],
)
def test_columns_that_make_no_matrix_are_refused(columns: dict[str, Any], word: str) -> None:
    made = tensors(spec_of(columns=WHOLE), **columns)
    assert isinstance(made, ServeError)
    assert (made.reason, word in made.message) == (reasons.SCORING, True)
