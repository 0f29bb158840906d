"""What people report of KServe's runtimes, staged anew with ours: layouts of /mnt/models, names, and what is said."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness import language_models, table_models
from tests.harness.commands import refusal
from tests.harness.digit_networks import write_onnx
from tests.harness.hub import HubRepository, folder_files, hub, variables
from tests.harness.kserve_pod import pod
from tests.harness.server_process import serve
from tests.harness.task_models import write_task
from tests.models import folders

TRUSTED = {"TRIVIUM_ENGINE_PARAMETERS": "sklearn.trust_insecure_model_files=true"}


def pipeline(folder: Path) -> None:
    """What a pipeline leaves beside a model."""
    table_models.write(folder / "svm.joblib", "sklearn")
    for name, text in (("metadata.json", '{"framework": "sklearn"}'), ("conda.yaml", "a: 1\n")):
        (folder / name).write_text(text)


LAYOUTS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "kserve#2198, any name": ("xgboost", lambda at: table_models.write(at / "final-v3.ubj", "xgboost")),
    "kserve#1653 and #1696, files beside it": ("sklearn", pipeline),
    "kserve#1684, the folder of an archive around a pickle": (
        "sklearn",
        lambda at: table_models.write(at / "model" / "model.joblib", "sklearn"),
    ),
    "kserve#1684 and #2061, the folder of an archive": (
        "xgboost",
        lambda at: table_models.write(at / "data" / "model" / "iris.json", "xgboost"),
    ),
}


@pytest.mark.parametrize("report", LAYOUTS)
def test_a_layout_is_served_under_the_services_name(report: str, tmp_path: Path) -> None:
    library, write = LAYOUTS[report]
    mount = tmp_path / "mnt" / "models"
    write(mount)
    with pod(f"trivium-{library}", mount, tmp_path / "log", name="iris", variables=TRUSTED) as running:
        running.await_ready()
        answer = httpx.get(f"http://127.0.0.1:{running.http}/v1/models/iris")
        assert (answer.status_code, answer.json()["ready"]) == (200, True)


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_a_model_of_another_containers_root_is_opened(suffix: str, tmp_path: Path) -> None:
    """kserve#4743: a model in an image is a link through /proc."""
    table_models.write(tmp_path / "image" / "models" / f"xg.{suffix}", "xgboost")
    mount = tmp_path / "mnt" / "models"
    mount.parent.mkdir()
    mount.symlink_to(f"/proc/{os.getpid()}/root{tmp_path / 'image' / 'models'}")
    with pod("trivium-xgboost", mount, tmp_path / "log", name="xg") as running:
        running.await_ready()


def test_a_name_that_is_not_there_is_answered_with_the_one_that_is(tmp_path: Path) -> None:
    """kserve#2755, #3682: the service is ready, and knows no model of the service's name."""
    write_onnx(tmp_path / "mnt" / "models" / "digits" / "1" / "model.onnx")
    with pod("trivium", tmp_path / "mnt" / "models", tmp_path / "log", name="sample") as running:
        running.await_ready()
        answer = httpx.get(f"http://127.0.0.1:{running.http}/v2/models/sample")
        assert answer.status_code == 404
        assert "digits" in answer.text


def test_a_pod_without_a_model_does_not_become_ready(tmp_path: Path) -> None:
    """kserve#3816, #1930: the model is missing, and the pod is ready all the same. Here it ends, and says why."""
    mount = tmp_path / "mnt" / "models"
    mount.mkdir(parents=True)
    with pod("trivium-sklearn", mount, tmp_path / "log") as running:
        assert running.wait() == 1
        assert "The folder is empty" in running.said()


def test_a_pickle_without_a_suffix_is_told_its_name(tmp_path: Path) -> None:
    """kserve#1942: pickle.dump(model, open("inf-sample", "wb"))."""
    table_models.write(tmp_path / "models" / "inf-sample", "sklearn")
    said = refusal("check", f"iris={tmp_path / 'models'}")
    assert "rename inf-sample to inf-sample.pkl" in " ".join(said.split())


def test_several_files_are_named(tmp_path: Path) -> None:
    """kserve#1696: two files, of which either may be the model."""
    for name in ("model.joblib", "scaler.joblib"):
        table_models.write(tmp_path / "models" / name, "sklearn")
    said = refusal("check", f"iris={tmp_path / 'models'}", **TRUSTED)
    assert "model.joblib, scaler.joblib" in " ".join(said.split())


def test_a_models_own_folder_in_place_of_a_repository_is_told_so(tmp_path: Path) -> None:
    """kserve#1075: storageUri names the folder of config.pbtxt, where Triton looks for folders of models."""
    mount = tmp_path / "mnt" / "models"
    write_onnx(mount / "1" / "model.onnx")
    (mount / "config.pbtxt").write_text('name: "bert"\nbackend: "onnxruntime"\n')
    with pod("trivium-triton", mount, tmp_path / "log") as running:
        assert running.wait() == 1
        assert "the name bert in the folder models" in running.said()


def test_rows_of_texts_to_the_models_of_djls_translators(tmp_path: Path) -> None:
    """kserve#3393: the requests of KServe's guide; a prediction is what the translator answers for a row."""
    pytest.importorskip("torch")
    places = [folders.sentences(tmp_path / "sentences"), folders.questions(tmp_path / "questions")]
    pair = {"question": "How is the weather", "paragraph": "The weather is nice, it is beautiful day"}
    with serve(tmp_path / "log", *places) as server:

        def predicted(model: str, *rows: object) -> httpx.Response:
            return httpx.post(f"{server.url}/v1/models/{model}:predict", json={"instances": rows}, timeout=60)

        texts = ("Parse the file.", "Hello, my dog is cute")
        together = httpx.post(
            f"{server.url}/predictions/sentences", json={"inputs": texts}, timeout=60
        ).json()
        assert predicted("sentences", *texts).json() == {"predictions": together}
        (found,) = predicted("questions", pair).json()["predictions"]
        asked = httpx.post(f"{server.url}/predictions/questions", json=pair, timeout=60)
        assert found["answer"] == asked.text or found == asked.json()
        twice = {"instances": texts, "inputs": texts}
        answer = httpx.post(f"{server.url}/v1/models/sentences:predict", json=twice, timeout=60)
        assert (answer.status_code, "both 'instances' and 'inputs'" in answer.text) == (400, True)
        refused = predicted("sentences")
        assert (refused.status_code, list(refused.json())) == (400, ["error"])


def test_arguments_of_kserves_servers_are_taken(tmp_path: Path) -> None:
    """kserve#4240, #3087 and #4475: --enable_docs_url=True; and those that examples of KServe have beside it."""
    mount = tmp_path / "mnt" / "models"
    table_models.write(mount / "model.ubj", "xgboost")
    words = (
        "--enable_docs_url=True",
        "--model_name=mine",
        "--workers",
        "2",
        "--nthread=1",
        "--enable_grpc=false",
    )
    with pod("trivium-xgboost", mount, tmp_path / "log", name="iris", words=words) as running:
        running.await_ready()
        url = f"http://127.0.0.1:{running.http}"
        assert httpx.get(f"{url}/v1/models/mine").json()["ready"] is True
        assert httpx.get(f"{url}/v1/models/iris").status_code == 404
        assert httpx.get(f"{url}/docs").status_code == 200
        said = running.said()
        for name in ("enable_docs_url", "workers", "nthread"):
            assert f"--{name} has no effect: " in said
        assert "gRPC on" not in said


def test_arguments_of_kserves_server_for_hugging_face_are_taken(tmp_path: Path) -> None:
    """kserve#3393 and the guide to text classification: --model_name, --max_length, --dtype, --task."""
    mount = tmp_path / "mnt" / "models"
    pytest.importorskip("torch")
    write_task(mount, "classes")
    words = ("--model_name=bert", "--max_length=16", "--dtype=float32", "--task=sequence_classification")
    with pod("trivium-huggingface", mount, tmp_path / "log", name="text", words=words) as running:
        running.await_ready()
        asked = {"instances": ["ab cd"]}
        answer = httpx.post(f"http://127.0.0.1:{running.http}/v1/models/bert:predict", json=asked, timeout=60)
        assert answer.status_code == 200, answer.text


def test_a_model_of_the_hub_by_kserves_arguments(tmp_path: Path) -> None:
    """KServe's guide to language models: --model_name and --model_id in place of a storageUri."""
    pytest.importorskip("torch")
    folder, mount = tmp_path / "tiny", tmp_path / "mnt" / "models"
    language_models.write(folder, "llama")
    mount.mkdir(parents=True)
    words = ("--model_name=llama3", "--model_id=acme/tiny", "--model_revision=v1", "--max_model_len=64")
    with hub({"acme/tiny": HubRepository(folder_files(folder), refs=("main", "v1"))}) as running_hub:
        given = variables(running_hub.url, tmp_path / "home")
        with pod("trivium-huggingface", mount, tmp_path / "log", variables=given, words=words) as running:
            running.await_ready()
            asked = {"model": "llama3", "prompt": "def ", "max_tokens": 4}
            url = f"http://127.0.0.1:{running.http}"
            answers = [
                httpx.post(f"{url}{below}/v1/completions", json=asked | {"temperature": 0}, timeout=60)
                for below in ("", "/openai")
            ]
            one, other = (each.json()["choices"][0]["text"] for each in answers)
            assert one == other
            (named,) = httpx.get(f"{url}/openai/v1/models").json()["data"]
            assert named["id"] == "llama3"


def test_an_argument_that_would_change_answers_ends_the_pod_with_its_sentence(tmp_path: Path) -> None:
    mount = tmp_path / "mnt" / "models"
    table_models.write(mount / "model.ubj", "xgboost")
    with pod("trivium-xgboost", mount, tmp_path / "log", words=("--return_probabilities",)) as running:
        assert running.wait() == 1
        assert '"parameters"' in running.said()
