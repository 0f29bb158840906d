"""The tutorial from end to end: `python -m examples.food11.story`. Writes docs/benchmarks/food11.md and its plots.

A FastAPI endpoint at 1 and 16 senders, on PyTorch and on ONNX; then the model servers' answers to it: the same handler
as a Python-backend model, more instances, ONNX, bursts, batching, and what the statistics say of each batch size.
"""

import json
import tempfile
import urllib.request
from pathlib import Path

import click
import numpy as np
import tritonclient.http as client
from examples.food11 import report, stacks
from examples.food11.load import Heard, Question, at_times, bursts, closed
from examples.food11.make_models import make
from examples.food11.pictures import as_text, prepare, sample
from examples.food11.report import Story

ONNX, PYTHON = "food_classifier_onnx", "food_classifier"
BATCHED, TWICE = "food_classifier_onnx_batched", "food_classifier_twice"
BATCHING = "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 2000 }\n"


def tell(seconds: float, rounds: int) -> Story:
    """Runs everything; `seconds` for each closed loop, `rounds` of three seconds for the bursts."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        heard = [*baseline(folder, seconds)]
        repository = folder / "repository"
        stacks.variant(repository, PYTHON, TWICE, {"count: 1": "count: 2"})
        stacks.variant(repository, ONNX, BATCHED, {}, BATCHING)
        with stacks.tritonserver(repository) as address:
            heard += served(address, seconds)
            capacity = heard[-1].rate
            arrivals = bursts(0.5 * capacity, 1.6 * capacity, rounds)
            stormy = [
                at_times(f"{model}, bursts", onnx(address, model), arrivals) for model in (ONNX, BATCHED)
            ]
            return Story(
                heard, stormy, capacity, {model: batches(address, model) for model in (ONNX, BATCHED)}
            )


def baseline(folder: Path, seconds: float) -> list[Heard]:
    """Both FastAPI endpoints, at 1 and 16 senders."""
    found = []
    body = json.dumps({"image": as_text(sample())}).encode()
    for name, app, file in (
        ("FastAPI, PyTorch", "fastapi_torch", "food11.pth"),
        ("FastAPI, ONNX", "fastapi_onnx", "food11.onnx"),
    ):
        with stacks.fastapi(app, folder / file) as url:
            question = Question(f"{url}/predict", body, {"Content-Type": "application/json"})
            found += [closed(name, question, senders, seconds) for senders in (1, 16)]
    return found


def served(address: str, seconds: float) -> list[Heard]:
    """The models of the repository, the plain ONNX one last."""
    questions = [(name, python(address, name)) for name in (PYTHON, TWICE)]
    questions += [(name, onnx(address, name)) for name in (BATCHED, ONNX)]
    return [closed(name, question, n, seconds) for name, question in questions for n in (1, 16)]


def python(address: str, model: str) -> Question:
    """A picture file in base64."""
    texts = client.InferInput("INPUT_IMAGE", [1, 1], "BYTES")
    texts.set_data_from_numpy(np.array([[as_text(sample())]], dtype=object))
    return question(address, model, texts)


def onnx(address: str, model: str) -> Question:
    """A picture as the network takes it."""
    picture = prepare(sample())[None]
    values = client.InferInput("input", list(picture.shape), "FP32")
    values.set_data_from_numpy(picture)
    return question(address, model, values)


def question(address: str, model: str, values: client.InferInput) -> Question:
    """As Triton's own client would ask it."""
    body, length = client.InferenceServerClient.generate_request_body([values])
    headers = {"Inference-Header-Content-Length": str(length), "Content-Type": "application/octet-stream"}
    return Question(f"http://{address}/v2/models/{model}/infer", body, headers)


def batches(address: str, model: str) -> list[tuple[int, int, float]]:
    """By batch size: executions, and milliseconds of one."""
    with urllib.request.urlopen(f"http://{address}/v2/models/{model}/stats", timeout=10) as answer:
        (stats,) = json.load(answer)["model_stats"]
    found = []
    for row in stats["batch_stats"]:
        infer = row["compute_infer"]
        found.append((row["batch_size"], infer["count"], infer["ns"] / infer["count"] / 1e6))
    return found


@click.command()
@click.option("--seconds", default=8.0, show_default=True, help="of each closed loop")
@click.option("--rounds", default=6, show_default=True, help="of three seconds each, calm and busy")
@click.option("--into", type=click.Path(path_type=Path), default=Path("docs/benchmarks"), show_default=True)
def main(seconds: float, rounds: int, into: Path) -> None:
    """Run the whole story and write it down."""
    print(report.write(tell(seconds, rounds), into))


if __name__ == "__main__":
    main()
