"""Scenes for tests of stopping: each lays out a server of which something hangs, for ten minutes or for ever.

A scene takes a stage, and returns what is to be done with the server once it serves; None for one that hangs before.
Here are those whose models, handlers and folders hang; clients, files and logs are in `hanging_clients`.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fixtures import models
from tests.harness.onnx_models import looping
from tests.harness.python_models import place
from tests.harness.raw_http import connect, infer_request, post, tensor
from tests.harness.server_process import ServerProcess, until

Act = Callable[[ServerProcess], object]
DEAF = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]"
HOLDS_LOCK = "__import__('ctypes').PyDLL(None).sleep(600)"


class Stage:
    """A folder with models, the words that the server gets besides, and what is open as long as the scene lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = folder / "models"
        self.models.mkdir(parents=True)
        self.words: list[str | Path] = ["--no-grpc"]
        self.outputs: tuple[int, int] | None = None
        self.port = 0
        self.kept = contextlib.ExitStack()
        self.signs = False
        self._sign = folder / "hangs"

    @property
    def sleep(self) -> str:
        """Python that says that it has come so far, and sleeps."""
        return self.say_first("time.sleep(600)")

    def say_first(self, code: str) -> str:
        """The same with other code to hang in."""
        self.signs = True
        return f"open({str(self._sign)!r}, 'w').close(); {code}"

    def await_hang(self) -> None:
        """Until user code has come to where it hangs."""
        until(self._sign.exists, lambda: f"{self.folder}: nothing hangs")

    def python(self, execute: str, more: str = "", config: str = "", name: str = "m") -> None:
        """A handler."""
        answers = "return [answer(OUT=of(r, 'IN')) for r in requests]"
        body = f"    def execute(self, requests):\n        {execute}\n        {answers}\n{more}"
        place(self.models, name, body, config)

    def plug(self, port: int) -> socket.socket:
        """A connection that stays."""
        return self.kept.enter_context(connect(port))

    def send(self, server: ServerProcess, *requests: bytes) -> list[socket.socket]:
        """Each on a connection of its own, whose answer nobody reads."""
        plugs = [self.plug(server.port) for _ in requests]
        for plug, request in zip(plugs, requests, strict=True):
            plug.sendall(request)
        return plugs

    def hang(self, server: ServerProcess, *requests: bytes) -> list[socket.socket]:
        """Send them, and wait until user code hangs."""
        plugs = self.send(server, *requests)
        self.await_hang()
        return plugs


def asked(model: str = "m", **more: Any) -> bytes:
    """A request to a handler of `Stage.python`."""
    return infer_request(model, tensor("IN", [1], [1, 1], "INT32"), **more)


def whole(model: str, number: int = 1) -> bytes:
    """A request to a model of one INT64, `x`."""
    return infer_request(model, tensor("x", [number], [1], "INT64"))


def worker_sleeps(stage: Stage) -> Act:
    stage.python(stage.sleep)
    return lambda server: stage.hang(server, asked())


def worker_is_deaf(stage: Stage) -> Act:
    stage.python(f"{DEAF}; {stage.sleep}")
    return lambda server: stage.hang(server, asked())


def worker_blocks_signals(stage: Stage) -> Act:
    masks = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
    stage.python(f"{masks}; {stage.sleep}")
    return lambda server: stage.hang(server, asked())


def worker_holds_the_lock(stage: Stage) -> Act:
    stage.python(stage.say_first(HOLDS_LOCK))
    return lambda server: stage.hang(server, asked())


def worker_is_stopped(stage: Stage) -> Act:
    stage.python("pass")
    return lambda server: [worker.suspend() for worker in server.workers()]


def worker_is_stopped_at_work(stage: Stage) -> Act:
    stage.python(stage.sleep)

    def act(server: ServerProcess) -> None:
        stage.hang(server, asked())
        for worker in server.workers():
            worker.suspend()

    return act


def worker_hangs_in_finalize(stage: Stage) -> Act:
    stage.python("pass", f"    def finalize(self):\n        {stage.sleep}\n")
    return lambda server: server.ask(asked())


def worker_holds_the_lock_in_finalize(stage: Stage) -> Act:
    stage.python("pass", f"    def finalize(self):\n        {DEAF}; {HOLDS_LOCK}\n")
    return lambda server: server.ask(asked())


def worker_has_children(stage: Stage) -> Act:
    stage.python("import subprocess; subprocess.Popen(['sleep', '600']); " + stage.sleep)
    return lambda server: stage.hang(server, asked())


def worker_has_deaf_children_elsewhere(stage: Stage) -> Act:
    deaf = "trap '' INT TERM HUP; sleep 600 & wait"
    stage.python(f"import subprocess; subprocess.Popen(['sh', '-c', {deaf!r}], start_new_session=True)")
    return lambda server: server.ask(asked())


def worker_has_orphans(stage: Stage) -> Act:
    stage.python("os.system('setsid sleep 600 &')")
    return lambda server: server.ask(asked())


def worker_forks_and_both_hang(stage: Stage) -> Act:
    stage.python(f"os.fork(); {stage.sleep}")
    return lambda server: stage.hang(server, asked())


def worker_prints_without_end(stage: Stage) -> Act:
    stage.python(stage.say_first("[print('x' * 1000) for _ in iter(int, 1)]"))
    return lambda server: stage.hang(server, asked())


def handlers_call_one_another(stage: Stage) -> Act:
    given = "inputs=[pb_utils.Tensor('IN', np.array([[1]], np.int32))]"
    call = f"pb_utils.InferenceRequest(model_name='m', requested_output_names=['OUT'], {given})"
    stage.python(stage.sleep)
    stage.python(f"{call}.exec()", name="caller")
    return lambda server: stage.hang(server, asked("caller"))


def requests_wait_behind_one_that_hangs(stage: Stage) -> Act:
    stage.python(stage.sleep)
    return lambda server: stage.hang(server, *[asked()] * 20)


def sequence_is_at_work(stage: Stage) -> Act:
    stage.python(
        f"if of(requests[0], 'IN')[0][0] == 2: {stage.sleep}",
        config="sequence_batching { }",
    )

    def act(server: ServerProcess) -> None:
        server.ask(asked(parameters={"sequence_id": 5, "sequence_start": True}))
        two = infer_request("m", tensor("IN", [2], [1, 1], "INT32"), parameters={"sequence_id": 5})
        stage.hang(server, two, asked(parameters={"sequence_id": 5}))

    return act


def stream_has_no_end(stage: Stage) -> Act:
    stage.python(endless(stage), config=DECOUPLED)
    return lambda server: stage.hang(server, post("/v2/models/m/generate_stream", b'{"IN": 1}'))


DECOUPLED = "model_transaction_policy { decoupled: true }"


def endless(stage: Stage) -> str:
    """Code of a decoupled handler that answers for ever."""
    sends = "[s.send(answer(OUT=of(requests[0], 'IN'))) for _ in iter(int, 1)]"
    return stage.say_first(f"s = requests[0].get_response_sender(); {sends}")


def onnx_runs_for_ever(stage: Stage) -> Act:
    folder = stage.models / "counts" / "1"
    folder.mkdir(parents=True)
    looping(folder)
    (stage.models / "counts" / "config.pbtxt").write_text('backend: "onnxruntime"\n' + models.ONE_INSTANCE)

    def act(server: ServerProcess) -> None:
        stage.send(server, whole("counts", 2**62))
        time.sleep(0.3)

    return act


def thread_sleeps(stage: Stage) -> Act:
    models.identity(stage.models, "sleeps", delay_ms=600_000, datatype="INT64", dims="1")

    def act(server: ServerProcess) -> None:
        stage.send(server, *[whole("sleeps")] * 3)
        time.sleep(0.3)

    return act


def unload_waits_for_one_that_hangs(stage: Stage) -> Act:
    stage.python(stage.sleep)

    def act(server: ServerProcess) -> None:
        stage.hang(server, asked())
        stage.send(server, post("/v2/repository/models/m/unload", b""))
        time.sleep(0.2)

    return act


def load_by_a_client_hangs(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)

    def act(server: ServerProcess) -> None:
        stage.python("pass", f"    def initialize(self, args):\n        {stage.sleep}\n")
        stage.hang(server, post("/v2/repository/models/m/load", b""))

    return act


def reload_hangs_while_the_old_one_works(stage: Stage) -> Act:
    stage.python("pass")

    def act(server: ServerProcess) -> None:
        file = stage.models / "m" / "1" / "model.py"
        file.write_text(file.read_text() + f"    def initialize(self, args):\n        {stage.sleep}\n")
        stage.hang(server, post("/v2/repository/models/m/load", b""))

    return act


def polled_folder_has_pipes(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)
    stage.words += ["--model-control", "poll", "--poll-seconds", "0.1"]

    def act(server: ServerProcess) -> None:
        for name in ("config.pbtxt", "1/model.py", "1/model.onnx"):
            file = stage.models / name.replace("/", "_").replace(".", "_") / name
            file.parent.mkdir(parents=True)
            os.mkfifo(file)
        time.sleep(1.0)

    return act


def import_hangs(stage: Stage) -> None:
    stage.python("pass")
    file = stage.models / "m" / "1" / "model.py"
    file.write_text(f"import time\n{stage.sleep}\n")


def initialize_hangs(stage: Stage) -> None:
    stage.python("pass", f"    def initialize(self, args):\n        {stage.sleep}\n")


def completion_hangs(stage: Stage) -> None:
    stage.python(
        "pass", f"    @staticmethod\n    def auto_complete_config(config):\n        {DEAF}; {stage.sleep}\n"
    )


def warm_up_hangs(stage: Stage) -> None:
    key = 'inputs { key: "IN" value { data_type: TYPE_INT32 dims: 1 zero_data: true } }'
    stage.python(stage.sleep, config=f'model_warmup {{ name: "w" batch_size: 1 {key} }}')


def warm_up_of_onnx_hangs(stage: Stage) -> None:
    folder = stage.models / "counts" / "1"
    folder.mkdir(parents=True)
    looping(folder)
    (folder.parent / "warmup").mkdir()
    (folder.parent / "warmup" / "x").write_bytes((2**62).to_bytes(8, "little"))
    key = 'inputs { key: "x" value { data_type: TYPE_INT64 dims: 1 input_data_file: "x" } }'
    text = f'backend: "onnxruntime"\n{models.ONE_INSTANCE} model_warmup {{ name: "w" {key} }}'
    (folder.parent / "config.pbtxt").write_text(text)


def files_of_models_are_pipes(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    for name, file in {"handler": "model.py", "network": "model.onnx"}.items():
        stage.python("pass", name=name)
        (stage.models / name / "1" / "model.py").unlink()
        os.mkfifo(stage.models / name / "1" / file)
    (stage.models / "network" / "config.pbtxt").write_text('backend: "onnxruntime"')
    (stage.models / "config" / "1").mkdir(parents=True)
    os.mkfifo(stage.models / "config" / "config.pbtxt")
