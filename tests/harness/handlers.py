"""User code for the tests of the whole server, as text, and where it is put.

`ODD` does what the id of a request says.
"""

from pathlib import Path

CONFIG = """
backend: "python"
max_batch_size: {rows}
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }} ]
instance_group [ {{ count: {count} kind: KIND_CPU }} ]
"""

ODD = """
import ctypes, gc, os, signal, subprocess, sys, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils

KEPT = []


def answer(request):
    x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", x)])


class TritonPythonModel:
    def execute(self, requests):
        ids = [request.request_id() for request in requests]
        for name in ids:
            act = getattr(self, "do_" + name, None)
            if act is not None:
                made = act(requests)
                if made != "go on":
                    return made
        return [answer(request) for request in requests]

    def do_raise(self, requests):
        raise ValueError("as told")

    def do_error(self, requests):
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("as told")) for _ in requests]

    def do_too_many(self, requests):
        return [answer(requests[0])] * (len(requests) + 1)

    def do_no_list(self, requests):
        return answer(requests[0])

    def do_no_response(self, requests):
        return ["text"] * len(requests)

    def do_nothing(self, requests):
        return None

    def do_no_tensor(self, requests):
        return [pb_utils.InferenceResponse(["text"])]

    def do_no_output(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("z", np.zeros(1, "f4"))])]

    def do_exit(self, requests):
        print("I leave", file=sys.stderr, flush=True)
        os._exit(3)

    def do_sys_exit(self, requests):
        sys.exit("no more")

    def do_kill(self, requests):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_crash(self, requests):
        ctypes.string_at(0)

    def do_close(self, requests):
        os.closerange(0, 2**16)  # all that it has: its connection has the number that it had with the server

    def do_flood(self, requests):
        for number in range(50_000):
            print("flood", number, "x" * 80)
        sys.stdout.flush()
        return "go on"

    def do_errors(self, requests):
        for number in range(50_000):
            print("error", number, file=sys.stderr)
        return "go on"

    def do_long_line(self, requests):
        sys.stderr.write("y" * 5_000_000)
        return "go on"

    def do_fork(self, requests):
        if os.fork() == 0:
            return "go on"
        os.wait()
        return "go on"

    def do_child(self, requests):
        subprocess.Popen(["sleep", "300"], close_fds=False)
        return "go on"

    def do_threads(self, requests):
        for _ in range(20):
            threading.Thread(target=time.sleep, args=(300,)).start()
        return "go on"

    def do_leak(self, requests):
        KEPT.append(bytearray(2**30))
        KEPT[-1][:: 4096] = bytes(2**18)
        return "go on"

    def do_memory(self, requests):
        raise MemoryError("not enough")

    def do_slow(self, requests):
        time.sleep(1)
        return "go on"
"""

IN_THE_BACKGROUND = """
import asyncio, sys
import triton_python_backend_utils as pb_utils


async def leave():
    sys.exit("the background has left")


class TritonPythonModel:
    async def execute(self, requests):
        if requests[0].request_id() == "leave":
            self.task = asyncio.get_running_loop().create_task(leave())
            await asyncio.sleep(0.01)
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        return answers
"""
"""A coroutine whose request can start a task that asks for the exit, in the thread of all coroutines."""

ENDLESS = """
import os, time
from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    where = os.path.join(os.path.dirname(__file__), "stopped")

    def pieces():
        try:
            while True:
                yield b"more " * 200
                time.sleep(0.001)
        finally:
            open(where, "w").close()

    output = Output()
    output.add_stream_content(pieces(), lambda piece: piece)
    return output
"""

HANGS = """
import time
from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    if inputs.get_as_bytes() == b"hang":
        time.sleep(300)
    return Output().add(b"well")
"""

VENDORED = """
import numpy as np
import triton_python_backend_utils as pb_utils
import vendored


class TritonPythonModel:
    def execute(self, requests):
        told = np.full((1, 4), vendored.VERSION, "f4")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", told)]) for _ in requests]
"""

IMPORTS_FOR_LONG = "import time\ntime.sleep(3)\n" + VENDORED.replace("import vendored\n", "").replace(
    "vendored.VERSION", "3"
)


def triton(root: Path, name: str, text: str, rows: int = 1, count: int = 1) -> Path:
    """A model of the Python backend in a repository; its version's folder."""
    version = root / name / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(text)
    (root / name / "config.pbtxt").write_text(CONFIG.format(rows=rows, count=count))
    return version


def djl(root: Path, name: str, text: str, properties: str = "") -> Path:
    """A folder of DJL's."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(text)
    (folder / "serving.properties").write_text(f"engine=Python\n{properties}")
    return folder
