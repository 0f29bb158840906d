"""Operations of every wire in the states in which they may wait, and how each of them ended, as its client saw it.

A scene is one server with the models that its operations wait for: handlers that sleep, that stream and then sleep,
whose first start hangs, or whose second. Every operation returns a line that says how it was answered, and raises where
it was not: the connection broke off, or nothing came.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any

import grpc
import tritonclient.grpc.service_pb2 as v2
from tests.harness.djl_folders import make
from tests.harness.python_models import place
from tests.harness.server_process import SECONDS, ServerProcess
from tests.harness.torchserve_management import INFERENCE, MANAGEMENT, archive

from trivium.codecs.protobuf_schema import classes_of

RUN, START = 3, 5
"""Seconds that a run, and the start of an instance, may take: the deadlines of all that waits here."""

SIGN = "import os, time\ndef sign(name):\n    open(os.path.join({folder!r}, name), 'a').close()\n"
DJL = classes_of(
    "ai.djl.serving.grpc.proto",
    {
        "Request": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input",
        "Response": "1 int32 code\n2 map<string,bytes> headers\n3 bytes output",
    },
)
_V2 = "/inference.GRPCInferenceService/"
_TS = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
PREDICT = "/ai.djl.serving.grpc.proto.Inference/Predict"
PREDICTIONS, PREDICTIONS_2 = _TS + "Predictions", _TS + "StreamPredictions2"
_TS_MANAGES = "/org.pytorch.serve.grpc.management.ManagementAPIsService/"


@dataclass
class WaitingScene:
    """A folder for models and signs, and the server once it runs."""

    folder: Path
    models: list[str] = field(default_factory=list)
    server: ServerProcess | None = None

    def __post_init__(self) -> None:
        self.signs, self.root, self.bodies = (self.folder / name for name in ("signs", "models", "bodies"))
        for folder in (self.signs, self.root, self.bodies):
            folder.mkdir(parents=True)
        self.code = SIGN.format(folder=str(self.signs))

    @property
    def running(self) -> ServerProcess:
        """The server, which must run."""
        assert self.server is not None
        return self.server

    def triton(self, name: str, body: str, config: str = "") -> None:
        """A handler for tensors, which every wire may ask."""
        ran = f'parameters {{ key: "TRIVIUM_RUN_TIMEOUT" value {{ string_value: "{RUN}" }} }}'
        place(self.root, name, body, f"{config} {ran}")
        file = self.root / name / "1" / "model.py"
        file.write_text(self.code + file.read_text())
        self.models.append(name)

    def djl(self, folder: Path, name: str, code: str) -> None:
        """A handler of DJL's for bodies."""
        lines = (f"option.predict_timeout={RUN}", f"option.model_loading_timeout={START}", "minWorkers=1")
        make(
            folder,
            name,
            "engine=Python",
            *lines,
            "option.enable_lora=true",
            "maxWorkers=1",
            model_py=self.code + code,
        )
        self.models.append(name)

    def torchserve(self, name: str, code: str, config: str = "") -> Path:
        """A handler of TorchServe's for bodies, in the store."""
        config += f"minWorkers: 1\nmaxWorkers: 1\nresponseTimeout: {RUN}\nstartupTimeout: {START}\n"
        self.models.append(name)
        return archive(self.folder / "store", name, code=self.code + code, config=config)


class AskingProgress:
    """How far somebody has come who asks: it was `sent`, and the answer has `begun`."""

    def __init__(self) -> None:
        self.sent, self.begun = threading.Event(), threading.Event()


Run = Callable[[WaitingScene, AskingProgress], str]
"""Asks, says how far that has come, and returns how it was answered in the end."""


@dataclass(frozen=True)
class WaitingOperation:
    """What is asked, and by which sign the state in which it waits is known; empty where the answer's begin is it."""

    name: str
    run: Run
    sign: str = ""
    is_behind: bool = False
    """It waits behind another, so that it has no sign of its own."""
    is_quick: bool = False
    """It is answered at once, and what it has begun goes on."""


# -- over HTTP

Ends = tuple[bytes, ...]
ANY_END: Ends = (b"",)


def http(method: str, path: str, body: bytes = b"", last: Ends | None = ANY_END, **fields: str) -> Run:
    """A request whose answer must be whole; one in parts must end by a part that holds one of `last`. With None its
    parts have no form for an error: then the answer must be seen to break off.
    """

    def run(scene: WaitingScene, progress: AskingProgress) -> str:
        with closing(http_client(scene)) as client:
            client.request(method, path.format(folder=scene.folder), body, fields)
            progress.sent.set()
            answer = client.getresponse()
            said = b""
            if answer.status == 200 and answer.chunked:
                said = answer.read1(65536)
                progress.begun.set()
                try:
                    while piece := answer.read1(65536):
                        said = (said + piece)[-4096:]
                except (IncompleteRead, ConnectionError) as error:
                    if last is None:
                        return f"broke off: {error!r}"
                    raise AssertionError(f"it broke off behind {said[-300:]!r}") from error
                assert any(one in said for one in last or ANY_END), (
                    f"it ended without its last part: {said[-300:]!r}"
                )
            said += answer.read()
            return f"{answer.status} {said[-150:]!r}"

    return run


def http_client(scene: WaitingScene) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", scene.running.port, timeout=SECONDS)


def posted(path: str, document: Any, last: Ends = ANY_END) -> Run:
    """JSON."""
    return http("POST", path, json.dumps(document).encode(), last, **{"Content-Type": "application/json"})


def deferred(path: str) -> Run:
    """A request that is answered by a token, and its answer fetched until it has ended."""

    def run(scene: WaitingScene, progress: AskingProgress) -> str:
        with closing(http_client(scene)) as client:
            client.request("POST", path, b"x", {"x-synchronous": "false"})
            progress.sent.set()
            answer = client.getresponse()
            token = answer.headers.get("x-next-token", "")
            answer.read()
            progress.begun.set()
            assert token, answer.status
            return f"{answer.status} token"

    return run


# -- over gRPC


def rpc(
    method: str, message: Any, *, kind: str = "unary_unary", is_error: Callable[[bytes], bool] = bool
) -> Run:
    """A call that must end by a status that the server gave it. A stream both ways goes on behind the error of its
    request, which is a message: only then its client says that it sends no more.
    """

    def run(scene: WaitingScene, progress: AskingProgress) -> str:
        parts, over = 0, threading.Event()
        progress.sent.set()
        with grpc.insecure_channel(scene.running.grpc_address) as channel:
            call = getattr(channel, kind)(method, lambda said: said.SerializeToString())
            try:
                if kind == "unary_unary":
                    call(message, timeout=SECONDS)
                    return "OK"
                given = message if kind == "unary_stream" else _kept_open(message, over)
                for part in call(given, timeout=SECONDS):
                    parts += 1
                    progress.begun.set()
                    if kind == "stream_stream" and is_error(part):
                        over.set()
            except grpc.RpcError as error:
                return _status(error.code(), error.details() or "")
            finally:
                over.set()
        return f"OK, {parts} parts"

    return run


def _status(code: grpc.StatusCode, details: str) -> str:
    """The status of a call, which must be the server's own and not one that the client made of a broken connection."""
    broken = "ocket closed" in details or "GOAWAY" in details
    late = code is grpc.StatusCode.DEADLINE_EXCEEDED and "run" not in details
    if broken or late:
        raise AssertionError(f"no status came: {code.name} {details}")
    return f"{code.name} {details[:100]}"


def _kept_open(message: Any, over: threading.Event) -> Iterator[Any]:
    """Messages of a stream whose client does not say that it sends no more until it is over."""
    yield message
    over.wait(SECONDS)


def v2_message(model: str) -> Any:
    tensor = v2.ModelInferRequest.InferInputTensor(name="IN", datatype="INT32", shape=[1, 1])
    return v2.ModelInferRequest(model_name=model, inputs=[tensor], raw_input_contents=[b"\1\0\0\0"])


# -- what is asked, by profile

_V2_BODY = {"inputs": [{"name": "IN", "shape": [1, 1], "datatype": "INT32", "data": [1]}]}
V2: Sequence[WaitingOperation] = (
    WaitingOperation("v2 infer, running", posted("/v2/models/sleeps/infer", _V2_BODY), "sleeps"),
    WaitingOperation("v2 infer, waiting", posted("/v2/models/sleeps/infer", _V2_BODY), is_behind=True),
    WaitingOperation("v2 generate, waiting", posted("/v2/models/sleeps/generate", {"IN": 1}), is_behind=True),
    WaitingOperation(
        "v2 generate_stream", posted("/v2/models/streams/generate_stream", {"IN": 1}, (b'data: {"error"',))
    ),
    WaitingOperation(
        "v2 generate_stream, waiting",
        posted("/v2/models/streams/generate_stream", {"IN": 1}, (b'"error"',)),
        is_behind=True,
    ),
    WaitingOperation("v2 ready", http("GET", "/v2/models/asks/ready"), "asks"),
    WaitingOperation("ModelInfer, running", rpc(_V2 + "ModelInfer", v2_message("sleeps2")), "sleeps2"),
    WaitingOperation("ModelInfer, waiting", rpc(_V2 + "ModelInfer", v2_message("sleeps2")), is_behind=True),
    WaitingOperation(
        "ModelStreamInfer",
        rpc(
            _V2 + "ModelStreamInfer",
            v2_message("streams2"),
            kind="stream_stream",
            is_error=lambda part: bool(v2.ModelStreamInferResponse.FromString(part).error_message),
        ),
    ),
    WaitingOperation(
        "ModelReady", rpc(_V2 + "ModelReady", v2.ModelReadyRequest(name="asks")), is_behind=True
    ),
)
LOADS: Sequence[WaitingOperation] = (
    WaitingOperation("v2 load", http("POST", "/v2/repository/models/late/load"), "late"),
    WaitingOperation(
        "RepositoryModelLoad",
        rpc(_V2 + "RepositoryModelLoad", v2.RepositoryModelLoadRequest(model_name="late2")),
        "late2",
    ),
)
"""Whose own deadline is that of a start by default, which is too long to wait for."""

DJL_OPERATIONS: Sequence[WaitingOperation] = (
    WaitingOperation("DJL prediction, running", http("POST", "/predictions/asleep", b"x"), "asleep"),
    WaitingOperation("DJL prediction, waiting", http("POST", "/predictions/asleep", b"x"), is_behind=True),
    WaitingOperation("DJL prediction, deferred", deferred("/predictions/asleep"), is_behind=True),
    WaitingOperation("DJL stream", http("POST", "/predictions/parts", b"x", (b'"code": 50',))),
    WaitingOperation(
        "DJL Predict, running",
        rpc(PREDICT, DJL["Request"](model_name="asleep2", input=b"x"), kind="unary_stream"),
        "asleep2",
    ),
    WaitingOperation(
        "DJL Predict, streaming",
        rpc(PREDICT, DJL["Request"](model_name="parts2", input=b"x"), kind="unary_stream"),
    ),
    WaitingOperation("DJL registration", http("POST", "/models?url={folder}/later/slow"), "slow"),
    WaitingOperation(
        "DJL scaling", http("PUT", "/models/second?min_worker=2&max_worker=2"), "second", is_quick=True
    ),
    WaitingOperation("DJL adapter", http("POST", "/models/adapts/adapters?name=a&src=/tmp"), "adapts"),
)


def _predicted(model: str, **more: str) -> Any:
    return INFERENCE["PredictionsRequest"](model_name=model, input={"data": b"x"}, **more)


TORCHSERVE_OPERATIONS: Sequence[WaitingOperation] = (
    WaitingOperation("TorchServe prediction, running", http("POST", "/predictions/asleep", b"x"), "asleep"),
    WaitingOperation(
        "TorchServe prediction, waiting", http("POST", "/predictions/asleep", b"x"), is_behind=True
    ),
    WaitingOperation("TorchServe stream", http("POST", "/predictions/parts", b"x", None)),
    WaitingOperation("Predictions, running", rpc(PREDICTIONS, _predicted("asleep2")), "asleep2"),
    WaitingOperation(
        "StreamPredictions", rpc(_TS + "StreamPredictions", _predicted("parts2"), kind="unary_stream")
    ),
    WaitingOperation(
        "StreamPredictions2",
        rpc(PREDICTIONS_2, _predicted("asleep3", sequence_id="s"), kind="stream_stream"),
        "asleep3",
    ),
    WaitingOperation(
        "TorchServe registration",
        http("POST", "/models?url=slow.mar&initial_workers=1&synchronous=true"),
        "slow",
    ),
    WaitingOperation(
        "TorchServe scaling",
        http("PUT", "/models/second?min_worker=2&max_worker=2&synchronous=true"),
        "second",
    ),
    WaitingOperation(
        "RegisterModel",
        rpc(
            _TS_MANAGES + "RegisterModel",
            MANAGEMENT["RegisterModelRequest"](url="slow2.mar", initial_workers=1, synchronous=True),
        ),
        "slow2",
    ),
    WaitingOperation(
        "ScaleWorker",
        rpc(
            _TS_MANAGES + "ScaleWorker",
            MANAGEMENT["ScaleWorkerRequest"](
                model_name="second2", min_worker=2, max_worker=2, synchronous=True
            ),
        ),
        "second2",
    ),
)

_ASKED = {"model": "slow", "messages": [{"role": "user", "content": "hi"}]}
_SAID = (b"[DONE]", b'"error"')
GENERATING: Sequence[WaitingOperation] = (
    WaitingOperation("chat, streaming", posted("/v1/chat/completions", {**_ASKED, "stream": True}, _SAID)),
    WaitingOperation(
        "completion, streaming",
        posted("/v1/completions", {"model": "slow", "prompt": "hi", "stream": True}, _SAID),
    ),
    WaitingOperation("chat", posted("/v1/chat/completions", _ASKED), is_behind=True),
    WaitingOperation("v2 generate", posted("/v2/models/slow/generate", {"text_input": "hi"}), is_behind=True),
    WaitingOperation(
        "v2 generate_stream of text",
        posted("/v2/models/slow/generate_stream", {"text_input": "hi", "stream": True}),
    ),
    WaitingOperation("DJL chat", posted("/predictions/slow", _ASKED), is_behind=True),
)
"""Asked of a language model that takes seconds for its text; the text may come to its end before it is cut off."""

# -- the models that they wait for

SLEEPS = "    def execute(self, requests):\n        sign({name!r}); time.sleep(600)\n"
STREAMS = (
    "    def execute(self, requests):\n        s = requests[0].get_response_sender()\n"
    "        for _ in range(100):\n            s.send(answer(OUT=of(requests[0], 'IN'))); time.sleep(0.02)\n"
    "        time.sleep(600)\n"
)
ASKS = SLEEPS + "    def is_ready(self):\n        sign({name!r}); time.sleep(600)\n"
LATE = "    def initialize(self, args):\n        sign({name!r}); time.sleep(600)\n" + SLEEPS
SECOND = (
    "FIRST = os.path.join({folder!r}, {name!r} + '.first')\n"
    "def opens():\n    try:\n        os.close(os.open(FIRST, os.O_CREAT | os.O_EXCL))\n"
    "    except FileExistsError:\n        sign({name!r}); time.sleep(600)\n"
)
_DJL_HANDLE = (
    "from djl_python import Output\n"
    "def handle(inputs):\n    if inputs.is_empty():\n        {first}\n        return None\n    {rest}\n"
)
_TS_HANDLE = (
    "def handle(data, context):\n    if data is None:\n        {first}\n        return None\n    {rest}\n"
)
_TS_PARTS = (
    "from ts.handler_utils.utils import send_intermediate_predict_response as send\n" + _TS_HANDLE
).replace(
    "{rest}",
    "for _ in range(100):\n        send(['x'], context.request_ids, 'ok', 200, context); time.sleep(0.02)\n"
    "    time.sleep(600)",
)
_DJL_PARTS = (
    "def pieces():\n    for _ in range(100):\n        yield b'x'\n        time.sleep(0.02)\n    time.sleep(600)\n"
    + _DJL_HANDLE.replace(
        "{rest}", "out = Output(); out.add_stream_content(pieces(), lambda piece: piece)\n    return out"
    )
)
_DJL_ADAPTS = "def register_adapter(inputs):\n    sign('adapts'); time.sleep(600)\n" + _DJL_HANDLE
SEQUENCES = (
    "sequenceBatching: true\nsequenceMaxIdleMSec: 600000\nmaxNumSequence: 4\nmaxSequenceJobQueueSize: 10\n"
)
_WAITS = "sign({name!r}); time.sleep(600)"


def lay_out_v2(scene: WaitingScene) -> None:
    """The models of `V2`."""
    for name in ("sleeps", "sleeps2"):
        scene.triton(name, SLEEPS.format(name=name))
    for name in ("streams", "streams2"):
        scene.triton(name, STREAMS, "model_transaction_policy { decoupled: true }")
    scene.triton("asks", ASKS.format(name="asks"))


def lay_out_loads(scene: WaitingScene) -> None:
    """Those of `LOADS`, once the server runs."""
    for name in ("late", "late2"):
        scene.triton(name, LATE.format(name=name))


def lay_out_djl(scene: WaitingScene) -> None:
    """The models of `DJL_OPERATIONS`."""
    for name in ("asleep", "asleep2"):
        scene.djl(scene.bodies, name, _DJL_HANDLE.format(first="pass", rest=_WAITS.format(name=name)))
    for name in ("parts", "parts2"):
        scene.djl(scene.bodies, name, _DJL_PARTS.replace("{first}", "pass"))
    scene.djl(scene.bodies, "adapts", _DJL_ADAPTS.format(first="pass", rest="return Output()"))
    second = SECOND.format(folder=str(scene.signs), name="second")
    scene.djl(scene.bodies, "second", second + _DJL_HANDLE.format(first="opens()", rest="return Output()"))
    slow = _DJL_HANDLE.format(first=_WAITS.format(name="slow"), rest="return Output()")
    scene.djl(scene.folder / "later", "slow", slow)


def lay_out_torchserve(scene: WaitingScene) -> list[Path]:
    """The models of `TORCHSERVE_OPERATIONS`; returns the archives that are served from the start."""
    made = []
    for name in ("asleep", "asleep2", "asleep3"):
        code = _TS_HANDLE.format(first="pass", rest=_WAITS.format(name=name))
        made.append(scene.torchserve(name, code, SEQUENCES if name == "asleep3" else ""))
    for name in ("parts", "parts2"):
        made.append(scene.torchserve(name, _TS_PARTS.replace("{first}", "pass")))
    for name in ("second", "second2"):
        code = SECOND.format(folder=str(scene.signs), name=name)
        made.append(scene.torchserve(name, code + _TS_HANDLE.format(first="opens()", rest="return data")))
    for name in ("slow", "slow2"):
        scene.torchserve(name, _TS_HANDLE.format(first=_WAITS.format(name=name), rest="return data"))
    return made
