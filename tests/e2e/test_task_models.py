"""Models of texts in the real server: bare folders and DJL's, by its routes and by v2, whole and streamed."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.harness.server_process import ServerProcess, serve
from tests.harness.task_models import write_task

TEXT = "the statement is a name"
FEW = {"max_new_tokens": 6}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    t5 = write_task(folder / "t5", "t5")
    bare = [write_task(folder / kind, kind) for kind in ("classes", "features")]
    options = ("engine=Python", f"option.model_id={t5}", "option.rolling_batch=disable")
    for name, more in (
        ("static", ("batch_size=4", "option.max_batch_delay=20", "option.task=summarization")),
        ("streamed", ("option.enable_streaming=huggingface",)),
        ("embedding", (f"option.model_id={bare[1]}", "option.task=text-embedding")),
    ):
        made = folder / name
        made.mkdir()
        lines = dict(line.split("=", 1) for line in (*options, *more))
        (made / "serving.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    words = ("--engine-parameters", "hf-tasks.threads=1")
    djl = [folder / name for name in ("static", "streamed", "embedding")]
    with serve(folder / "log", t5, bare[0], *djl, *words) as served:
        yield served


def asked(server: ServerProcess, model: str, document: object, route: str = "predictions") -> httpx.Response:
    return httpx.post(f"{server.url}/{route}/{model}", json=document, timeout=60)


def test_a_bare_folder_answers_by_the_task_of_its_class(server: ServerProcess) -> None:
    answer = asked(server, "t5", {"inputs": TEXT, "parameters": FEW})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()[0]["generated_text"]
    (found,) = asked(server, "classes", {"inputs": TEXT}).json()
    assert found["label"].startswith("LABEL_")


def test_a_djl_folder_answers_at_each_of_its_routes(server: ServerProcess) -> None:
    document = {"inputs": [TEXT, "a class"], "parameters": {**FEW, "num_beams": 2}}
    answer = asked(server, "static", document)
    assert answer.status_code == 200, answer.text
    texts = [one["summary_text"] for one in answer.json()]
    assert len(texts) == 2
    header = {"X-Amzn-SageMaker-Target-Model": "static"}
    invoked = httpx.post(
        f"{server.url}/invocations?model_name=static", json=document, headers=header, timeout=60
    )
    assert invoked.json() == answer.json()
    called_a_form = httpx.post(
        f"{server.url}/predictions/static",
        content=json.dumps(document),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        timeout=60,
    )
    assert called_a_form.json() == answer.json(), "as curl -d sends it"


def test_requests_share_calls_and_one_fault_is_its_own(server: ServerProcess) -> None:
    documents = [{"inputs": f"{TEXT} {i}", "parameters": FEW} for i in range(8)]
    alone = [asked(server, "static", document).json() for document in documents]
    wrong = {"inputs": TEXT, "parameters": {"max_new_token": 3}}
    with ThreadPoolExecutor(9) as pool:
        found = list(pool.map(lambda one: asked(server, "static", one), [*documents, wrong]))
    assert [one.json() for one in found[:8]] == alone
    assert found[8].status_code == 400
    assert "parameters.max_new_tokens" in found[8].text


def test_an_answer_leaves_in_lines(server: ServerProcess) -> None:
    document = {"inputs": [TEXT, "a class"], "parameters": FEW}
    whole = [one["generated_text"] for one in asked(server, "t5", document).json()]
    with httpx.stream("POST", f"{server.url}/predictions/streamed", json=document, timeout=60) as answer:
        assert answer.headers["content-type"] == "application/jsonlines"
        lines = [json.loads(line)["outputs"] for line in answer.iter_lines()]
    assert len(lines) > 1
    assert ["".join(line[i] for line in lines) for i in range(2)] == whole
    refused = asked(server, "streamed", {"inputs": TEXT, "parameters": {"num_beams": 2}})
    assert refused.status_code == 400
    assert "num_beams" in refused.text


def test_a_client_of_tensors(server: ServerProcess) -> None:
    told = httpx.get(f"{server.url}/v2/models/t5").json()
    assert [one["name"] for one in told["inputs"]] == ["text_input", "parameters"]
    texts = {"name": "text_input", "datatype": "BYTES", "shape": [2], "data": [TEXT, "a class"]}
    said = {"name": "parameters", "datatype": "BYTES", "shape": [1], "data": [json.dumps(FEW)]}
    answer = httpx.post(f"{server.url}/v2/models/t5/infer", json={"inputs": [texts, said]}, timeout=60)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    expected = asked(server, "t5", {"inputs": texts["data"], "parameters": FEW}).json()
    assert [json.loads(one) for one in output["data"]] == expected
    answer = httpx.post(f"{server.url}/v2/models/embedding/infer", json={"inputs": [texts]}, timeout=60)
    (output,) = answer.json()["outputs"]
    assert (output["datatype"], output["shape"]) == ("FP32", [2, 32])
    rows = asked(server, "embedding", {"inputs": texts["data"]}).json()
    assert output["data"] == pytest.approx([one for row in rows for one in row], abs=1e-5)
