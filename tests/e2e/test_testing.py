"""A handler gives in `trivium.testing` what it gives on the server: demo handlers, every dialect, and wrong ones."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.test_typed_handlers import APP

import trivium
from trivium import app
from trivium.catalogue import CATALOGUE
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.demo import places
from trivium.testing import handler
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart, Tensors

DEMO = Path(app.__file__).parent / "demo" / "handlers"
PICTURE = places.pictures()[7].read_bytes()
TENSOR = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
JSON, TEXT, BYTES = "application/json", "text/plain", "application/octet-stream"
SECONDS = 120.0

DJL = """
import json
from djl_python import Input, Output
def handle(inputs):
    if inputs.is_empty():
        return None
    asked = inputs.get_as_json()
    kind = asked["kind"]
    if kind == "raise":
        raise ValueError("as asked")
    if kind == "status":
        return Output(409, "no").add("taken")
    if kind == "type":
        return "text"
    if kind == "none":
        return None
    if kind == "stream":
        out = Output()
        out.add_stream_content(iter([b"a", b"b"]), None)
        return out
    return Output().add_as_json({"seen": asked})
"""
TORCHSERVE = """
from ts.torch_handler.base_handler import BaseHandler
from ts.utils.util import PredictionException
class H(BaseHandler):
    def initialize(self, context):
        self.initialized = True
    def handle(self, data, context):
        text = data[0].get("data") or data[0].get("body") or ""
        text = text if isinstance(text, str) else bytes(text).decode()
        if text == "raise":
            raise KeyError("as asked")
        if text == "refuse":
            raise PredictionException("no", 418)
        if text == "count":
            return []
        if text == "type":
            return "text"
        if text == "object":
            return [object()]
        context.set_response_content_type(0, "text/x-own")
        return [text.upper()]
"""
MANIFEST = {
    "model": {"modelName": "torchserve", "handler": "h.py", "modelVersion": "1.0"},
    "runtime": "python",
}
TRITON = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            kind = int(x[0])
            if kind == 1:
                raise ValueError("as asked")
            if kind == 2:
                error = pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)
                found.append(pb_utils.InferenceResponse(error=error))
            elif kind == 3:
                return "text"
            elif kind == 4:
                return []
            elif kind == 5:
                found.append(pb_utils.InferenceResponse([pb_utils.Tensor("Z", x)]))
            elif kind == 6:
                found.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.astype(np.int8))]))
            else:
                found.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * 2)]))
        return found
"""
CONFIG = """
backend: "python"
input [{ name: "X", data_type: TYPE_FP32, dims: [2] }]
output [{ name: "Y", data_type: TYPE_FP32, dims: [2] }]
instance_group [{ kind: KIND_CPU }]
"""
TYPED_KINDS = """
class Faults:
    def predict(self, kind: str) -> list[int]:
        if kind == "raise": raise LookupError("as asked")
        if kind == "refuse": raise Refusal("no", 451)
        if kind == "type": return "text"
        return [len(kind)]
"""


@dataclass
class Asked:
    """One request, and how it ends: an error of this code, or well."""

    model: str
    body: bytes = b""
    kind: str = JSON
    arrays: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    query: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        arrays = [f"{name}{list(one.shape)}{one.ravel()[0]!s:.4}" for name, one in self.arrays.items()]
        shown = " ".join(arrays) or f"{self.body[:24]!r} {self.kind} {self.query or ''}"
        return f"{self.model} {shown}"

    def operation(self) -> Infer:
        if self.arrays:
            return Infer(self.model, Tensors.of(self.arrays), wants=PayloadKind.TENSORS)
        part = RawPart(self.body, self.kind)
        properties = {"content-type": self.kind} if self.kind else {}
        return Infer(self.model, Raw((part,), properties, self.query, form=RawForm.SIGNED))


def text(word: str) -> Any:
    return np.array([word.encode()], object)


GOOD = [
    *(Asked(name, PICTURE, BYTES) for name in ("digits_djl", "digits-torchserve")),
    Asked("digits-python", arrays={"image": TENSOR}),
    Asked("digits-python", arrays={"picture": np.array([[PICTURE]], object)}),
    Asked("digits-python", PICTURE, "image/png"),
    Asked("djl", b'{"kind": "x"}'),
    Asked("djl", b'{"kind": "none"}'),
    Asked("djl", b'{"kind": "stream"}'),
    Asked("djl", b'{"kind": "status"}'),
    Asked("torchserve", b"abc", TEXT),
    Asked("torchserve", arrays={"data": text("abc")}),
    Asked("triton", arrays={"X": np.zeros(2, np.float32)}),
    Asked("triton", b'{"X": [0, 3]}'),
    Asked("Sentiment", b'{"text": "love it", "top_k": 1}'),
    Asked("Sentiment", b"love it", TEXT, query=(("top_k", "1"),)),
    Asked("Sentiment", arrays={"text": text("love it")}),
    Asked("Sums", arrays={"x": np.ones((2, 3), np.float32)}),
    Asked("Sums", b"[1, 2, 3]"),
    Asked("Words", b"to be or", TEXT),
    Asked("Words", arrays={"text": text("to be")}),
    Asked("Late", b"3"),
    Asked("Picture", PICTURE, "image/png"),
]
FAULTS = "raise refuse count type object"
KINDS = {1: "model failed", 2: "not found", 3: "model failed", 4: "model failed"}
WRONG = [
    Asked("digits_djl", b"abc", BYTES, code="model failed"),
    Asked("digits-torchserve", b"abc", BYTES, code="model failed"),
    Asked("digits-python", arrays={"image": TENSOR[0]}, code="invalid"),
    Asked("digits-python", b"{}", code="invalid"),
    Asked("djl", b"{", code="model failed"),
    Asked("djl", b"{}", code="model failed"),
    Asked("djl", b'{"kind": "raise"}', code="model failed"),
    Asked("djl", b'{"kind": "type"}', code="model failed"),
    *(
        Asked("torchserve", word, TEXT, code="model failed")
        for word in (b"raise", b"refuse", b"count", b"type", b"object")
    ),
    Asked("torchserve", b"\xff", TEXT, code="model failed"),
    *(
        Asked("triton", arrays={"X": np.array([kind, 0], np.float32)}, code=code)
        for kind, code in KINDS.items()
    ),
    Asked("triton", arrays={"X": np.zeros(2, np.int64)}, code="invalid"),
    Asked("triton", arrays={"X": np.zeros(3, np.float32)}, code="invalid"),
    Asked("triton", arrays={"Q": np.zeros(2, np.float32)}, code="invalid"),
    Asked("triton", b"[1", code="invalid"),
    Asked("Sentiment", b"{}", code="invalid"),
    Asked("Sentiment", b'{"text": 3}', code="invalid"),
    Asked("Sentiment", b'{"text": "a", "z": 1}', code="invalid"),
    Asked("Sentiment", b'""', code="invalid"),
    Asked("Sentiment", b"{", code="invalid"),
    Asked("Sentiment", b"abc", "image/png", code="unsupported media"),
    Asked("Sentiment", arrays={"text": np.zeros(1)}, code="invalid"),
    Asked("Sums", arrays={"x": np.ones((9, 3), np.float32)}, code="invalid"),
    Asked("Sums", b"[1]", code="invalid"),
    Asked("Late", b'"a"', code="invalid"),
    *(
        Asked("Faults", word, TEXT, code=code)
        for word, code in ((b"raise", "model failed"), (b"refuse", "invalid"))
    ),
    Asked("Faults", b"type", TEXT, code="model failed"),
]

BROKEN = {
    "djl": {
        "model.py": "import nothing_like_it\ndef handle(inputs): ...\n",
        "serving.properties": "engine=Python\n",
    },
    "djl_init": {
        "model.py": "from djl_python import Output\ndef handle(inputs):\n    return Output(500, 'no').add('weights')\n",
        "serving.properties": "engine=Python\n",
    },
    "djl_function": {"model.py": "def other(inputs): ...\n", "serving.properties": "engine=Python\n"},
    "torchserve": {
        "h.py": "def handle(data, context): raise OSError('no weights')\n1 / 0\n",
        "MAR-INF/MANIFEST.json": json.dumps(MANIFEST),
    },
    "triton": {
        "1/model.py": "class TritonPythonModel:\n    def initialize(self, args): raise OSError('no weights')\n",
        "config.pbtxt": CONFIG,
    },
    "typed": {"app.py": "class M:\n    def predict(self, x: set) -> str: ...\n"},
    "typed_setup": {
        "app.py": "class M:\n    def setup(self): 1 / 0\n    def predict(self, x: str) -> str: ...\n",
    },
    "typed_syntax": {"app.py": "class M\n"},
}
"""Handlers that do not load."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Model -> its path, as it is served."""
    root = tmp_path_factory.mktemp("handlers")
    written = {
        "djl/model.py": DJL,
        "djl/serving.properties": "engine=Python\n",
        "torchserve/h.py": TORCHSERVE,
        "torchserve/MAR-INF/MANIFEST.json": json.dumps(MANIFEST),
        "triton/1/model.py": TRITON,
        "triton/config.pbtxt": CONFIG,
        "typed/app.py": APP + TYPED_KINDS,
    }
    for name, content in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return {
        "digits_djl": str(DEMO / "djl" / "digits-djl"),
        "digits-torchserve": str(DEMO / "torchserve" / "digits-torchserve.mar"),
        "digits-python": str(DEMO / "triton" / "digits-python"),
        **{name: str(root / name) for name in ("djl", "torchserve", "triton")},
        **{
            name: f"{root}/typed/app.py:{name}"
            for name in ("Sentiment", "Sums", "Words", "Late", "Picture", "Faults")
        },
    }


async def answered(server: Server, asked: Asked) -> list[ResponsePart]:
    parts: list[ResponsePart] = []
    ended = asyncio.Event()

    def take(part: ResponsePart) -> None:
        parts.append(part)
        if part.final:
            ended.set()

    server.submit(asked.operation(), take)
    async with asyncio.timeout(SECONDS):
        await ended.wait()
    return parts


@pytest.fixture(scope="module")
def served(folders: dict[str, str]) -> dict[str, list[ResponsePart]]:
    """What a server's workers answer to each request."""

    async def ask() -> dict[str, list[ResponsePart]]:
        async with trivium.serving(*folders.values()) as server:
            return {str(one): await answered(server, one) for one in [*GOOD, *WRONG]}

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def tested(folders: dict[str, str]) -> dict[str, list[ResponsePart]]:
    """What the same handlers answer in this process."""
    found = {}
    for model, path in folders.items():
        with handler(path) as h:
            for one in (each for each in [*GOOD, *WRONG] if each.model == model):
                found[str(one)] = list(h.run([one.operation()])[0].parts)
    return found


PLACE = re.compile(r"/[\w/.-]+/(?=\w+\.py)|0x[0-9a-f]+")
"""The folder that an archive was unpacked into, and where an object lies, which differ."""


def seen(parts: list[ResponsePart]) -> list[Any]:
    """What of parts must be the same."""
    found: list[Any] = []
    for part in parts:
        if part.error is not None:
            message = PLACE.sub("", part.error.message)
            found.append((part.error.code, message, part.error.status, part.error.reason))
        elif isinstance(part.payload, Tensors):
            tensors = [(one.name, one.datatype, one.shape, one.array.tolist()) for one in part.payload.items]
            found.append((tensors, dict(part.parameters), part.final))
        elif isinstance(part.payload, Raw):
            raw = part.payload
            bodies = [(bytes(one.data), one.content_type, one.name) for one in raw.parts]
            found.append((bodies, dict(raw.properties), raw.status, raw.reason, part.final))
        else:
            found.append((None, part.final))
    return found


@pytest.mark.parametrize("asked", GOOD, ids=str)
def test_a_handler_answers_the_same(asked: Asked, served: Any, tested: Any) -> None:
    assert seen(tested[str(asked)]) == seen(served[str(asked)])
    assert all(part.error is None for part in served[str(asked)])


@pytest.mark.parametrize("asked", WRONG, ids=str)
def test_a_wrong_request_or_a_fault_is_the_same_error(asked: Asked, served: Any, tested: Any) -> None:
    assert seen(tested[str(asked)]) == seen(served[str(asked)])
    error = served[str(asked)][-1].error
    assert error is not None
    assert error.code.value == asked.code


def test_there_are_thirty_wrong_ones() -> None:
    assert len({str(one) for one in WRONG}) + len(BROKEN) >= 30


def test_a_handler_that_does_not_load_says_the_same(tmp_path: Path) -> None:
    for name, files in BROKEN.items():
        for file, content in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            content = content.replace('"modelName": "torchserve"', f'"modelName": "{name}"')
            (tmp_path / name / file).write_text(content)

    async def reasons() -> dict[str, str]:
        server = app.build(CATALOGUE, ServerConfig())
        async with server:
            app.add_all(server, [tmp_path / name for name in BROKEN])
            listing = await server.start()
            return {row.model: row.reason for row in listing.versions}

    told = asyncio.run(reasons())
    for name in BROKEN:
        with pytest.raises(trivium.ServeError) as raised, handler(tmp_path / name):
            pass
        assert raised.value.message == told[name], name


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    (tmp_path / "bls" / "1").mkdir(parents=True)
    (tmp_path / "bls" / "config.pbtxt").write_text(CONFIG)
    (tmp_path / "bls" / "1" / "model.py").write_text(
        """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X")
            call = pb_utils.InferenceRequest(
                model_name="other", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x.as_numpy())]
            )
            answer = call.exec()
            if answer.has_error():
                raise pb_utils.TritonModelException(answer.error().message())
            y = pb_utils.get_output_tensor_by_name(answer, "Y")
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y.as_numpy())]))
        return found
"""
    )
    return tmp_path / "bls"


def test_calls_of_other_models_are_answered_by_functions(calls: Path) -> None:
    x = np.array([1, 2], np.float32)
    with handler(calls, models={"other": lambda arrays: {"Y": arrays["X"] + 1}}) as h:
        assert h.infer({"X": x})["Y"].tolist() == [2, 3]

    def fails(arrays: Any) -> Any:
        raise trivium.ServeError(trivium.Code.MODEL_FAILED, "the other one is ill")

    with handler(calls, models={"other": fails}) as h:
        assert "the other one is ill" in str(h.infer({"X": x}).error)
    with handler(calls) as h:
        assert "other" in str(h.infer({"X": x}).error)


def test_nothing_is_left_of_a_handler(folders: dict[str, str]) -> None:
    path, modules, here = list(sys.path), set(sys.modules), os.getcwd()
    sys.modules["ts"] = stranger = types.ModuleType("ts")
    try:
        with handler(folders["torchserve"]) as h:
            assert sys.modules["ts"] is not stranger
            assert h.request(b"abc", TEXT).text == "ABC"
        assert sys.modules["ts"] is stranger
    finally:
        del sys.modules["ts"]
    with handler(folders["djl"]) as h:
        assert h.request({"kind": "stream"}).pieces == [b"a", b"b"]
        refused = h.request({"kind": "status"})
        assert (refused.status, refused.body) == (409, b"taken")
    left = {
        name
        for name in set(sys.modules) - modules
        if name.partition(".")[0] in ("ts", "djl_python", "h", "model")
    }
    assert (sys.path, os.getcwd(), left) == (path, here, set())


def test_a_debugger_stops_in_the_thread_of_the_caller(tmp_path: Path) -> None:
    code = "import threading\nclass M:\n    def predict(self, x: str) -> int:\n        return threading.get_ident()\n"
    (tmp_path / "app.py").write_text(code)
    with handler(tmp_path) as h:
        assert h.request(b"a", TEXT).json() == threading.get_ident()


def test_several_at_once_are_a_batch(folders: dict[str, str]) -> None:
    with handler(folders["Sums"]) as h:
        sizes: list[int] = []
        predict = h.instance.predict
        h.adapter.predict = lambda x: sizes.append(len(x)) or predict(x)  # type: ignore[attr-defined]
        answers = h.request_all([[1, 2, 3], [4, 5, 6], [7]])
        assert [one.json() for one in answers[:2]] == [6.0, 15.0]
        assert answers[2].error is not None
        assert sizes == [2]


def test_what_is_no_handler_says_what_to_use(tmp_path: Path) -> None:
    with (
        pytest.raises(trivium.ServeError, match="is no handler: the engine onnx"),
        handler(places.bare_model()),
    ):
        pass
    with pytest.raises(trivium.ServeError, match="is no model that is known"), handler(tmp_path):
        pass


def test_the_plugin_serves_for_the_length_of_a_test(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "class M:\n    def predict(self, n: int) -> int:\n        return n + 1\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import httpx\n"
        "def test_it(trivium_server):\n"
        "    server = trivium_server('app.py:M')\n"
        "    assert httpx.post(f'{server.url}/predictions/M', json=2).json() == 3\n"
        "    assert 'ready' in server.log\n"
    )
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_it.py",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
