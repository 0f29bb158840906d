"""The example `examples/food11`, whole: every endpoint and page says the same of a picture, and the story runs."""

import io
import json
import shlex
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from examples.food11 import report, stacks, story
from examples.food11.flask_page import app as page
from examples.food11.make_models import make
from examples.food11.network import LABELS
from examples.food11.pictures import as_text, sample

FOLDER = Path(__file__).parents[2] / "examples" / "food11"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("food11")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def address(models: Path) -> Iterator[str]:
    with stacks.tritonserver(models / "repository") as found:
        yield found


def predict(url: str, image: str) -> tuple[int, dict[str, object]]:
    body = json.dumps({"image": image}).encode()
    request = urllib.request.Request(f"{url}/predict", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_every_way_says_the_same_of_a_picture(
    models: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_SERVER_URL", address)
    pictures = [sample(seed) for seed in range(100, 106)]
    expected = [page.prepared_there(picture) for picture in pictures]
    assert len({label for label, _ in expected}) > 1
    assert {label for label, _ in expected} <= set(LABELS)
    for picture, (label, chance) in zip(pictures, expected, strict=True):
        assert page.prepared_here(picture) == (label, pytest.approx(chance, abs=1e-3))
    for app, file in (("fastapi_torch", "food11.pth"), ("fastapi_onnx", "food11.onnx")):
        with stacks.fastapi(app, models / file) as url:
            for picture, (label, chance) in zip(pictures, expected, strict=True):
                status, said = predict(url, as_text(picture))
                assert status == 200
                assert said == {"prediction": label, "probability": pytest.approx(chance, abs=1e-3)}
            assert predict(url, as_text(b"no picture"))[0] == 400
            assert predict(url, "%%%")[0] == 400
            with urllib.request.urlopen(f"{url}/docs", timeout=10) as answer:
                assert b"swagger" in answer.read()


@pytest.mark.parametrize("model", ["food_classifier", "food_classifier_onnx"])
def test_the_page_shows_the_label_in_both_forms(
    address: str, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("TRITON_SERVER_URL", address)
    monkeypatch.setenv("FOOD11_MODEL_NAME", model)
    label, _ = page.classify(sample(3))
    browser = page.app.test_client()
    assert b"<form" in browser.get("/").data
    shown = browser.post("/predict", data={"file": (io.BytesIO(sample(3)), "soup.jpg")})
    assert shown.status_code == 200
    assert label.encode() in shown.data
    assert model.encode() in shown.data
    assert browser.get("/test").status_code == 200
    assert browser.post("/predict", data={}).status_code == 400
    assert browser.post("/predict", data={"file": (io.BytesIO(b"none"), "x.jpg")}).status_code in (400, 502)


def test_the_story_is_told_with_every_figure(tmp_path: Path) -> None:
    told = story.tell(seconds=0.4, rounds=1)
    assert [row.failures for row in (*told.closed, *told.stormy)] == [0] * (len(told.closed) + 2)
    assert len(told.closed) == 12
    assert all(row.latencies for row in told.closed)
    assert [size for size, _, _ in told.batches[story.ONNX]] == [1]
    assert sum(count for _, count, _ in told.batches[story.ONNX]) > 0
    text = report.write(told, tmp_path)
    assert "FastAPI, PyTorch" in text
    assert {"food11.md", "food11-senders.svg", "food11-bursts.svg", "food11-batches.svg"} == {
        file.name for file in tmp_path.iterdir()
    }


@pytest.mark.parametrize("file", sorted((FOLDER / "compose").glob("*.yaml")), ids=lambda file: file.name)
def test_a_compose_file_names_what_there_is(file: Path) -> None:
    services = yaml.safe_load(file.read_text())["services"]
    for service in services.values():
        build = service["build"]
        root = (file.parent / build["context"]).resolve()
        assert (root / "pyproject.toml").exists()
        assert (root / build["dockerfile"]).exists()
        for word in shlex.split(service["command"]):
            if word.startswith("examples."):
                module = word.partition(":")[0]
                assert (root / (module.replace(".", "/") + ".py")).exists()
