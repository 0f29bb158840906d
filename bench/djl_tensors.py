"""What binary mode and a translator cost beside the same session in a process with nothing else in it.

One client sends its requests one after the other; between two of them it does the same work itself, so that whatever
else the machine does is in both. Run alone, it writes its section of the page anew.
"""

import http.client
import io
import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from bench import mobilenet, repository, servers
from onnx import TensorProto, helper
from PIL import Image

from trivium import ndlist
from trivium_worker import pictures as steps

ROUNDS, CALLS = 5, 20
TINY_CALLS = 300
SECTION = "## Tensors and pictures\n"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "djl.md"
SYNSET = [f"class {place}" for place in range(mobilenet.CLASSES)]
PICTURE = """engine=OnnxRuntime
translatorFactory=ai.djl.modality.cv.translator.ImageClassificationTranslatorFactory
resize=256,256
centerCrop=true
normalize=true
applySoftmax=true
minWorkers=1
maxWorkers=1
"""
LIMITS = {"NDList": 1.2, "picture": 1.25, "tiny": 1.5, "workflow": 1.0}
ECHO = """from djl_python import Output

def handle(inputs):
    return None if inputs.is_empty() else Output().add(inputs.get_as_bytes())
"""
ECHOES = ("first", "second", "third")
FLOW = {
    "models": {name: f"{{model_dir}}/../{name}" for name in ECHOES},
    "workflow": {"a": ["first", "in"], "b": ["second", "a"], "out": ["third", "b"]},
}

MEANING = """
What a request costs beyond its model was 1.6 to 4.3 ms here, whatever the model: a smaller one, of the shape of
MobileNetV2, took 4.0 ms by itself and 6.2 ms through binary mode on the same machine (1.52), and its pictures 10.2
and 14.5 ms (1.37).
"""

Call = Callable[[], object]


def store(folder: Path) -> Path:
    """Write the classifier as it is, the same one behind a translator, a tiny model, and a workflow of echoes."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tensors", "pictures", "tiny", "flow", *ECHOES):
        (folder / name).mkdir(parents=True)
    for name in ECHOES:
        (folder / name / "model.py").write_text(ECHO)
        (folder / name / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=1\n")
    (folder / "flow" / "workflow.json").write_text(json.dumps(FLOW))
    build(folder / "tensors" / "tensors.onnx")
    shutil.copy(folder / "tensors" / "tensors.onnx", folder / "pictures" / "pictures.onnx")
    (folder / "tensors" / "serving.properties").write_text("minWorkers=1\nmaxWorkers=1\n")
    (folder / "pictures" / "serving.properties").write_text(PICTURE)
    (folder / "pictures" / "synset.txt").write_text("\n".join(SYNSET) + "\n")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "tiny", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, folder / "tiny" / "tiny.onnx")
    return folder


def build(path: Path) -> None:
    """Write a model of the shape of ResNet-18, the guide's, with seeded random weights."""
    graph = mobilenet.Graph()
    last = graph.node("Relu", [graph.conv("input", (3, 64), 7, 2)])
    last = graph.node("MaxPool", [last], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for out in (64, 128, 256, 512):
        for stride in (2 if out > channels else 1, 1):
            branch = graph.node("Relu", [graph.conv(last, (channels, out), 3, stride)])
            branch = graph.conv(branch, (out, out), 3)
            beside = last if out == channels else graph.conv(last, (channels, out), 1, stride)
            last = graph.node("Relu", [graph.node("Add", [beside, branch])])
            channels = out
    last = graph.node("Flatten", [graph.node("GlobalAveragePool", [last])])
    weights = [graph.weight(512, len(SYNSET), fan_in=512 * 512), graph.weight(len(SYNSET), fan_in=512)]
    graph.node("Gemm", [last, *weights])
    graph.nodes[-1].output[0] = "output"
    image, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *shape])
        for name, shape in (("input", (3, 224, 224)), ("output", (len(SYNSET),)))
    )
    made = helper.make_graph(graph.nodes, "resnet18", [image], [scores], graph.weights)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """Serve a store, and give the port."""
    command = [sys.executable, "-m", "trivium.cli.main", "djl-serving", "-s", str(folder)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(servers.ROOT / "src"),
        "SERVING_INFERENCE_ADDRESS": "http://127.0.0.1:0",
    }
    log = repository.CACHE / "tensors.log"
    with servers.started(command, log, environment) as process:
        address = servers.await_line(log, process, r"BOTH API bind to: (\S+)", 300)
        yield int(address.rsplit(":", 1)[1])


def asking(port: int, model: str, body: bytes) -> Call:
    """Return a call that sends a body on a connection of its own, and reads the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def call() -> bytes:
        connection.request("POST", f"/predictions/{model}", body)
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        return data

    return call


def ratios(served: Call, alone: Call, calls: int = CALLS) -> list[tuple[float, float]]:
    """Milliseconds of both, medians of each round; the calls take turns."""
    for _ in range(calls // 4):
        served()
        alone()
    return [_round(served, alone, calls) for _ in range(ROUNDS)]


def _round(served: Call, alone: Call, calls: int) -> tuple[float, float]:
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(calls):
        for call, times in zip((served, alone), found, strict=True):
            times.append(_took(call))
    return statistics.median(found[0]), statistics.median(found[1])


def _took(call: Call) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def tiny_beside(tiny: Call, heavy: Call) -> list[tuple[float, float]]:
    """Milliseconds of a tiny request beside pictures that follow one another, and of one without them."""
    found = []
    for _ in range(ROUNDS):
        unloaded = statistics.median(_took(tiny) for _ in range(TINY_CALLS))
        is_over = threading.Event()
        load = threading.Thread(target=_until, args=(is_over, heavy))
        load.start()
        loaded = statistics.median(_took(tiny) for _ in range(TINY_CALLS))
        is_over.set()
        load.join()
        found.append((loaded, unloaded))
    return found


def _until(is_over: threading.Event, call: Call) -> None:
    while not is_over.is_set():
        call()


def measured() -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of each case and of what it is held against, round by round."""
    folder = store(repository.CACHE / "tensors")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = str(folder / "tensors" / "tensors.onnx")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    image = np.random.default_rng(24).random((1, 3, 224, 224), np.float32)
    made = io.BytesIO()
    Image.effect_noise((400, 300), 60).convert("RGB").save(made, "JPEG")
    jpeg, list_of_one = made.getvalue(), ndlist.encode([image])

    def by_steps() -> str:
        picture = steps.center_crop(steps.resize(steps.open_picture(jpeg), 256, 256), 224, 224)
        array = steps.normalize(steps.to_tensor(picture), steps.IMAGENET_MEAN, steps.IMAGENET_STD)
        scores = session.run(["output"], {"input": array[None]})[0][0]
        return json.dumps(steps.classifications(SYNSET, steps.softmax(scores), 5))

    with serving(folder) as port:
        pictures = asking(port, "pictures", jpeg)
        names = [[row["className"] for row in json.loads(text)] for text in (pictures(), by_steps())]
        assert names[0] == names[1], "both do the same work"
        tensors = asking(port, "tensors", list_of_one)
        tiny = asking(port, "tiny", ndlist.encode([np.ones((1, 2), np.float32)]))
        return {
            "NDList": ratios(tensors, lambda: session.run(["output"], {"input": image})),
            "picture": ratios(pictures, by_steps),
            "tiny": tiny_beside(tiny, pictures),
            "workflow": by_workflow(port),
        }


def by_workflow(port: int) -> list[tuple[float, float]]:
    """Milliseconds of one request to a workflow of three echoes, and of three requests to the echoes."""
    text = bytes(64)
    flow = asking(port, "flow", text)
    echoes = [asking(port, name, text) for name in ECHOES]
    assert flow() == text
    return ratios(flow, lambda: [echo() for echo in echoes], TINY_CALLS)


def section(found: dict[str, list[tuple[float, float]]]) -> str:
    """Return the section of the page."""
    titles = {
        "NDList": "an NDList of 602,112 bytes to a classifier / its session",
        "picture": "a picture through the classification translator / the same steps and session",
        "tiny": "a tiny request beside such pictures / without them",
        "workflow": "a request to a workflow of three echoes / three requests to the echoes",
    }
    lines = [
        SECTION,
        f"A classifier of the shape of ResNet-18, the guide's, on one thread. One client, {ROUNDS} rounds of {CALLS}",
        "requests on a connection that is kept; between two of them it runs the same session, with the same steps",
        f"of Pillow and numpy, in its own process. A tiny request ({TINY_CALLS} in a round) is two numbers to a model",
        "that adds them, beside a second connection on which one picture follows the other. The echoes are",
        f"handlers, one behind the other, and answer 64 bytes ({TINY_CALLS} in a round). Milliseconds, the median of",
        "the rounds' medians; the ratio is the median of the rounds' ratios, in brackets the smallest and the largest.",
        "",
        "| | ms | against ms | ratio | expected at most |",
        "|---|---|---|---|---|",
    ]
    for name, rounds in found.items():
        both = [statistics.median(each) for each in zip(*rounds, strict=True)]
        parts = [a / b for a, b in rounds]
        ratio = f"**{statistics.median(parts):.2f}** ({min(parts):.2f} to {max(parts):.2f})"
        lines.append(f"| {titles[name]} | {both[0]:.2f} | {both[1]:.2f} | {ratio} | {LIMITS[name]} |")
    return "\n".join([*lines, MEANING])


def main() -> None:
    """Write the section anew, and leave the rest of the page as it is."""
    before = PAGE.read_text().partition(SECTION)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section(measured())}")


if __name__ == "__main__":
    main()
