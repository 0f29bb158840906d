"""DJL's work-load manager as a library: a folder with a handler, run inside this program."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import trivium

Say = Callable[[str], None]

MODEL_PY = """
from djl_python import Output

factor = None


def handle(inputs):
    global factor
    if inputs.is_empty():
        factor = float(inputs.get_property("factor"))
        return None
    if inputs.get_property("content-type") == "tensor/ndlist":
        scaled = [array * factor for array in inputs.get_as_numpy()]
        return Output().add_as_numpy(scaled).add_property("content-type", "tensor/ndlist")
    return Output().add(inputs.get_as_string() * int(factor))
"""
SERVING_PROPERTIES = """
engine=Python
factor=2
minWorkers=1
maxWorkers=2
"""


def folder(root: Path) -> Path:
    """Write the model as DJL has it: a handler, and its properties beside it."""
    place = root / "scale"
    place.mkdir()
    (place / "model.py").write_text(MODEL_PY)
    (place / "serving.properties").write_text(SERVING_PROPERTIES)
    return place


async def work(server: trivium.Server, place: Path, say: Say) -> None:
    """Register, run with a body and with tensors, scale, count and unregister, on a server that holds nothing yet."""
    await server.register(place)  # ModelInfo and registerWorkerPool
    answer = await server.run("scale", b"ab", "text/plain")  # runJob
    assert isinstance(answer, trivium.Raw)
    say(f"body: {bytes(answer.parts[0].data).decode()}")
    tensors = await server.infer("scale", {"x": np.array([1.0, 2.0], np.float32)})
    say(f"tensors: {tensors.items[0].array.tolist()}")

    await server.scale("scale", 2, 4)
    (group,) = server.describe("scale").groups
    say(f"workers: {group.minimum} to {group.maximum}")
    counts = server.statistics("scale")
    say(f"requests: {counts.success.count}, failures: {counts.fail.count}, waiting: {counts.queued_items}")
    await server.unregister("scale")  # unregisterWorkerPool
    say(f"left: {[status.model for status in server.list().versions]}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        async with trivium.serving() as server:
            await work(server, folder(Path(root)), print)


if __name__ == "__main__":
    asyncio.run(main())
