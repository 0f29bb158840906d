"""DJL's scikit-learn handler, called as a worker calls it, around a model that a model.py makes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.djl_child import SHIMS, forget

SUMS = """
class Sums:
    def predict(self, rows):
        return rows.sum(axis=1)
"""
MODEL = SUMS + "def model_fn(model_dir):\n    return Sums()\n"


@pytest.fixture(autouse=True)
def shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SHIMS))
    yield
    forget()
    for name in [name for name in sys.modules if name.startswith("model_")]:
        del sys.modules[name]


def handler(folder: Path, text: str = MODEL, **options: str) -> Any:
    """Return a handler that has started with this model.py."""
    from djl_python.sklearn_handler import SklearnHandler

    (folder / "model.py").write_text(text)
    made = SklearnHandler()
    made.initialize({"model_dir": str(folder), **options})
    return made


def ask(made: Any, body: bytes | str, content_type: str = "application/json", accept: str = "*/*") -> Any:
    """Return the content type and the body of an answer."""
    from djl_python import Input

    inputs = Input()
    inputs.properties.update({"content-type": content_type, "accept": accept})
    inputs.content.add("data", body.encode() if isinstance(body, str) else body)
    output = made.inference(inputs)
    return output.get_property("Content-Type"), bytes(output.content.value_at(0)).decode()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"inputs": [[1, 2], [3, 4]]}', "application/json"),
        ("[[1, 2], [3, 4]]", "application/json; charset=utf-8"),
        ("[[1, 2], [3, 4]]", ""),
        ("1,2\n3,4", "text/csv"),
    ],
)
def test_requests_and_answers_in_json_and_csv(tmp_path: Path, body: str, content_type: str) -> None:
    made = handler(tmp_path)
    kind, found = ask(made, body, content_type)
    assert kind == "application/json"
    assert json.loads(found) == {"predictions": [3, 7]}
    kind, found = ask(made, body, content_type, "text/csv")
    assert kind == "text/csv"
    assert [float(line) for line in found.split("\n")] == [3, 7]


def test_a_single_row_and_a_tensor(tmp_path: Path) -> None:
    from djl_python.np_util import to_nd_list

    made = handler(tmp_path)
    assert json.loads(ask(made, "[1, 2]")[1]) == {"predictions": [3]}
    rows = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    assert json.loads(ask(made, bytes(to_nd_list([rows])), "tensor/ndlist")[1]) == {"predictions": [3, 7]}


def test_the_default_form_is_an_option_and_another_is_refused(tmp_path: Path) -> None:
    made = handler(tmp_path, default_accept="text/csv")
    assert ask(made, "[1, 2]")[0] == "text/csv"
    assert ask(made, "[1, 2]", accept="application/json, */*")[0] == "application/json"
    with pytest.raises(ValueError, match=r"Accept is image/png\. Send application/json or text/csv"):
        ask(made, "[1, 2]", accept="image/png")


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("{", "application/json", "the body is no JSON"),
        ('{"instances": [[1]]}', "application/json", 'has no "inputs"; its keys: instances'),
        ("5", "application/json", "is a ndarray, and no rows"),
        ("a,b\n1,2", "text/csv", "non-numeric"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, body: str, content_type: str, text: str) -> None:
    made = handler(tmp_path)
    with pytest.raises(ValueError, match=text):
        ask(made, body, content_type)


def test_decorated_functions_go_before_those_of_sagemaker(tmp_path: Path) -> None:
    text = f"""{SUMS}
from djl_python.input_parser import init_handler, input_formatter, prediction_handler
from djl_python.output_formatter import output_formatter
import numpy as np

@init_handler
def load(model_dir, **kwargs):
    return Sums()

@input_formatter
def read(inputs, **kwargs):
    return np.array(inputs.get_as_json()["features"])

@prediction_handler
def predict(rows, model, **kwargs):
    return {{"sum": model.predict(rows), "rows": len(rows)}}

@output_formatter
def write(predictions):
    return {{"mine": predictions}}

def model_fn(model_dir):
    raise AssertionError
"""
    made = handler(tmp_path, text)
    assert not made.is_sagemaker_script
    assert json.loads(ask(made, '{"features": [1, 2]}', accept="image/png")[1]) == {
        "mine": {"sum": [3], "rows": 1}
    }


def test_a_posted_script_with_names_of_its_own_is_used(tmp_path: Path) -> None:
    """thomaschoi143/ml-deployment-workshop, script.py: `output_fn(prediction, content_type)`, which DJL passes over."""
    text = MODEL + (
        "import json\ndef output_fn(prediction, content_type):\n"
        "    return json.dumps({'prediction': prediction.tolist()})\n"
    )
    kind, found = ask(handler(tmp_path, text), "[[1, 2]]", accept="application/json")
    assert (kind, json.loads(found)) == ("application/json", {"prediction": [3]})


def test_a_posted_script_that_gives_lists_and_a_type_is_served(tmp_path: Path) -> None:
    """aws/sagemaker-python-sdk, using_sklearn: input_fn and predict_fn may be anything that agree with each other."""
    text = MODEL + (
        "import json\n"
        "def input_fn(input_data, content_type='application/json'):\n"
        "    return json.loads(input_data)['instances']\n"
        "def predict_fn(input_object, model):\n    return [sum(row) for row in input_object]\n"
        "def output_fn(prediction, accept):\n    return ';'.join(map(str, prediction)), 'text/plain'\n"
    )
    assert ask(handler(tmp_path, text), '{"instances": [[1, 2], [3, 4]]}') == ("text/plain", "3;7")


def test_a_list_of_input_fn_is_made_an_array(tmp_path: Path) -> None:
    text = MODEL + "def input_fn(body, kind):\n    return [[1, 2]]\n"
    assert json.loads(ask(handler(tmp_path, text), b"")[1]) == {"predictions": [3]}


def test_a_function_that_cannot_be_called_or_fails_is_named_with_its_line(tmp_path: Path) -> None:
    from djl_python.custom_formatter_handling import CustomFormatterError

    with pytest.raises(TypeError, match=r"cannot be called as output_fn\(prediction, accept\)"):
        handler(tmp_path, MODEL + "def output_fn(prediction): ...\n")
    with pytest.raises(CustomFormatterError, match=r"model.py could not be loaded: ZeroDivisionError"):
        handler(tmp_path, "1 / 0")
    made = handler(tmp_path, MODEL + "def input_fn(body, kind):\n    raise KeyError('features')\n")
    with pytest.raises(
        CustomFormatterError, match=r"input_fn failed: KeyError: 'features' \(.*model.py, line 8\)"
    ):
        ask(made, "[1]")


def test_a_model_without_predict_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a object, which has no method predict"):
        handler(tmp_path, "def model_fn(model_dir):\n    return object()\n")


class Marks:
    """Unpickles by writing a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("trust", ["", "false", "yes"])
def test_a_pickle_is_not_opened_without_the_word(tmp_path: Path, trust: str) -> None:
    import pickle

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Marks(tmp_path / "marker")))
    with pytest.raises(ValueError, match=r"option\.trust_insecure_model_files=true in serving\.properties"):
        handler(tmp_path, "", trust_insecure_model_files=trust)
    assert not (tmp_path / "marker").exists()
    with pytest.raises(ValueError, match="no method predict"):
        handler(tmp_path, "", trust_insecure_model_files="true")
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("files", "options", "text"),
    [
        ((), {}, "no file does"),
        (("a.skops", "b.skops"), {}, "2 files end so: a.skops, b.skops"),
        (("a.skops",), {"model_format": "onnx"}, "is none of skops, joblib, pickle, cloudpickle"),
        (("a.skops",), {}, "cannot be read by skops"),
    ],
)
def test_which_file_is_opened(
    tmp_path: Path, files: tuple[str, ...], options: dict[str, str], text: str
) -> None:
    pytest.importorskip("skops")
    for file in files:
        (tmp_path / file).touch()
    with pytest.raises(ValueError, match=text):
        handler(tmp_path, "", **options)


def test_skops_opens_what_needs_no_trust_and_asks_for_the_rest(tmp_path: Path) -> None:
    """skops-dev/skops, issue 498: a classifier of neighbours needs two types of scikit-learn's own named."""
    skops = pytest.importorskip("skops.io")
    neighbors = pytest.importorskip("sklearn.neighbors")
    linear = pytest.importorskip("sklearn.linear_model")
    rows, wanted = np.array([[0.0, 0.0], [1.0, 1.0]] * 5), np.array([0, 1] * 5)
    skops.dump(linear.LogisticRegression().fit(rows, wanted), tmp_path / "model.skops")
    assert json.loads(ask(handler(tmp_path, ""), "[[1, 1]]")[1]) == {"predictions": [1]}
    skops.dump(
        neighbors.KNeighborsClassifier(algorithm="kd_tree").fit(rows, wanted), tmp_path / "model.skops"
    )
    with pytest.raises(ValueError, match="has types that are not trusted") as refused:
        handler(tmp_path, "")
    written = str(refused.value).partition("option.skops_trusted_types=")[2].partition(" in ")[0]
    made = handler(tmp_path, "", skops_trusted_types=written)
    assert json.loads(ask(made, "[[1, 1]]")[1]) == {"predictions": [1]}
