"""Sharp edges of DJL Serving that translators and binary mode touch, each by its number in section 14 of the sheet.

Edge 20, of gangs, is where their groups are made: `tests/unit/servers/djl/folder/test_djl_groups.py`.
"""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.djl_table import tensor_forms as forms
from tests.e2e.djl_table import tensor_rows
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.raw_http import connect, post, read_answer
from tests.models import folders

pytest.importorskip("torch")
WEATHER = {"question": "How is the weather", "paragraph": "The weather is nice, it is beautiful day"}
JSON = "Content-Type: application/json\r\n"
ECHO = """
import numpy as np

class Echo:
    def process_input(self, ctx, input):
        ctx.attachments["word"] = input.get_as_string()
        return [np.array([len(ctx.attachments["word"]), 0], np.float32)]

    def process_output(self, ctx, arrays):
        return {"word": ctx.attachments["word"], "doubled": arrays[0].tolist()}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DjlServing]:
    root = tmp_path_factory.mktemp("edges")
    store = tensor_rows.lay_out(root / "store")
    folders.questions(store / "questions")
    echo = store / "echo"
    echo.mkdir()
    shutil.copy(store / "doubled" / "doubled.onnx", echo / "echo.onnx")
    (echo / "translator.py").write_text(ECHO)
    (echo / "serving.properties").write_text(
        "batch_size=4\nmax_batch_delay=100\nminWorkers=1\nmaxWorkers=1\n"
    )
    with djl_serving(root / "log", "-s", store) as running:
        yield running


def test_edge_12_a_loose_file_makes_a_store_the_model_and_a_nested_folder_is_unwrapped(
    tmp_path: Path,
) -> None:
    """So with packages whose translators need the files beside the model: they are found where the model is."""
    store = folders.digits_onnx(tmp_path / "digits")
    archive = tmp_path / "packed.zip"
    folders.sentences(tmp_path / "sentences", "OnnxRuntime")
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (tmp_path / "sentences").iterdir():
            packed.write(file, f"sentences/{file.name}")
    with djl_serving(tmp_path / "log", "-s", store) as server:
        assert [row["modelName"] for row in server.manage("GET", "/models").document["models"]] == ["digits"]
        assert server.manage("POST", f"/models?url=file://{archive}").status == 200
        rows = server.infer("POST", "/predictions/packed", b'{"inputs": "Parse the file."}', JSON).document
        assert rows[0].keys() == {"className", "probability"}


def test_edge_13_what_comes_in_is_told_by_its_bytes_and_what_goes_out_by_exact_headers(
    server: DjlServing,
) -> None:
    """Framing is big-endian, data in its stated order, layouts of two bytes a letter."""
    array = {"x": np.array([[1, 2]], np.float32)}
    for order in "<>":
        sent = forms.ndlist(array, order=order)
        answer = server.infer("POST", "/predictions/doubled", sent, "Content-Type: tensor/npz\r\n")
        assert answer.fields["content-type"] == "tensor/npz"
        np.testing.assert_array_equal(np.load(io.BytesIO(answer.body))["y"], [[2, 4]])
        near = server.infer("POST", "/predictions/doubled", sent, "Accept: tensor/npz, */*\r\n")
        assert near.fields["content-type"] == "tensor/ndlist"
        np.testing.assert_array_equal(forms.read_ndlist(near.body)["y"], [[2, 4]])


def test_edge_14_each_request_of_a_batch_gets_its_own_answer(server: DjlServing) -> None:
    """A fault is that of its request alone, whoever else is in the batch."""
    words = ["a", "bb", "", "dddd"]
    plugs = [connect(server.port) for _ in words]
    for plug, word in zip(plugs, words, strict=True):
        plug.sendall(post("/predictions/echo", word.encode()))
    answers = [read_answer(plug) for plug in plugs]
    for plug, word, answer in zip(plugs, words, answers, strict=True):
        plug.close()
        if not word:
            assert (answer.status, answer.document["type"]) == (400, "TranslateException")
        else:
            assert answer.document == {"word": word, "doubled": [2.0 * len(word), 0.0]}


def test_edge_17_an_answer_is_bare_text_or_json_for_a_client_that_asks_for_it(server: DjlServing) -> None:
    body = json.dumps(WEATHER).encode()
    bare = server.infer("POST", "/predictions/questions", body, JSON)
    assert (bare.status, bare.body) == (200, b"nice")
    asked = server.infer("POST", "/predictions/questions", body, f"{JSON}Accept: application/json\r\n")
    assert asked.document == {"answer": "nice"}
    several = server.infer("POST", "/predictions/questions", json.dumps([WEATHER]).encode(), JSON)
    assert several.document == [{"answer": "nice"}]


def test_edge_22_a_model_with_a_translator_has_no_description_and_v2_says_its_tensors(
    server: DjlServing,
) -> None:
    answer = server.infer("OPTIONS", "/predictions/questions")
    assert (answer.status, answer.body) == (200, b"{}\n")
    for word in ("version", "versions"):
        assert server.infer("GET", f"/v2/models/doubled/{word}/1/ready").status == 200
    assert [one["name"] for one in server.infer("GET", "/v2/models/doubled").document["inputs"]] == ["x"]
