"""Folders that MLflow wrote, in the real server, against what `mlflow models serve` answered (`make mlflow`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.server_process import ServerProcess, serve

FOLDERS = Path(__file__).parents[1] / "fixtures" / "mlflow"
RECORDED: dict[str, list[dict[str, Any]]] = json.loads((FOLDERS / "answers.json").read_text())
REQUESTS = [(model, one) for model, asked in RECORDED.items() for one in asked]
DIFFERENCES = {("sklearn", "bare rows"), ("lightgbm", "bare rows")}
"""A list of rows without a field, which MLflow refuses, is served: it is a form of every model here."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    for library in ("xgboost", "lightgbm", "sklearn", "skops", "onnxruntime"):
        pytest.importorskip(library)
    with serve(tmp_path_factory.mktemp("served") / "log", FOLDERS) as served:
        yield served


def asked(server: ServerProcess, model: str, one: dict[str, Any]) -> httpx.Response:
    return httpx.post(
        f"{server.url}/invocations",
        params={"model_name": model},
        content=one["body"],
        headers={"Content-Type": one["kind"]},
        timeout=60,
    )


@pytest.mark.parametrize(
    ("model", "one"), REQUESTS, ids=[f"{model}: {one['name']}" for model, one in REQUESTS]
)
def test_status_and_predictions_are_those_of_mlflow(
    server: ServerProcess, model: str, one: dict[str, Any]
) -> None:
    answer = asked(server, model, one)
    if (model, one["name"]) in DIFFERENCES:
        assert (answer.status_code, one["status"]) == (200, 400)
        return
    assert answer.status_code == one["status"], answer.text
    if one["status"] == 200:
        assert close(answer.json(), json.loads(one["answer"])), answer.text
    elif one["status"] == 400:
        assert set(answer.json()) == {"error_code", "message"}
        assert answer.json()["error_code"] == json.loads(one["answer"])["error_code"]


def test_forty_requests_are_compared_and_at_most_five_differ() -> None:
    assert len(REQUESTS) == 40
    assert len(DIFFERENCES) <= 5


def close(found: object, wanted: object) -> bool:
    """Are they the same, with numbers as near as single precision is?"""
    if isinstance(wanted, dict):
        assert isinstance(found, dict)
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        assert isinstance(found, list)
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return type(found) is type(wanted) and found == pytest.approx(wanted, rel=1e-6)
