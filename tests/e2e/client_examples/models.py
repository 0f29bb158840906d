"""Stand-ins for the models of NVIDIA's client examples, under their names and with their inputs and outputs.

Decides names, configurations and handlers. `simple`, `simple_int8` and `simple_string` add and subtract; the sequences
answer their input, and one more at the start, or the sum so far; the pictures are scored by their mean colours.
"""

from collections.abc import Iterable
from pathlib import Path

ADD_SUB = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        a, b = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "INPUT1"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", a + b), pb_utils.Tensor("OUTPUT1", a - b)])
"""

STRING = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        a, b = (self.numbers(request, name) for name in ("INPUT0", "INPUT1"))
        return pb_utils.InferenceResponse([self.texts("OUTPUT0", a + b), self.texts("OUTPUT1", a - b)])

    def numbers(self, request, name):
        return pb_utils.get_input_tensor_by_name(request, name).as_numpy().astype(bytes).astype(np.int64)

    def texts(self, name, numbers):
        return pb_utils.Tensor(name, numbers.astype(bytes).astype(object))
"""

IDENTITY = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([
                pb_utils.Tensor("OUTPUT0", pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy())
            ])
            for request in requests
        ]
"""

SEQUENCE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}
        self.adds_up = "string" in args["model_name"]
        self.tells_id = "dyna" in args["model_name"]

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        value = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
        if not self.says(request, "READY"):
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", value)])
        result = self.added_up(request, value) if self.adds_up else value + np.int32(self.says(request, "START"))
        if self.tells_id and self.says(request, "END"):
            corrid = pb_utils.get_input_tensor_by_name(request, "CORRID").as_numpy().ravel()[0]
            result = result + np.int32(int(corrid))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", result)])

    def added_up(self, request, value):
        key = request.correlation_id()
        self.sums[key] = value if self.says(request, "START") else self.sums[key] + value
        return self.sums[key]

    def says(self, request, control):
        return bool(pb_utils.get_input_tensor_by_name(request, control).as_numpy().any())
"""

REPEAT = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            values, delays, wait = (
                pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("IN", "DELAY", "WAIT")
            )
            sender = request.get_response_sender()
            for index in range(len(values)):
                time.sleep(delays[index] / 1e6)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values[index : index + 1])]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

COLOURS = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.output = config["output"][0]["name"]
        self.pixels = (-3, -2) if config["input"][0]["format"] == "FORMAT_NHWC" else (-2, -1)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        (picture,) = request.inputs()
        means = picture.as_numpy().mean(axis=self.pixels)
        return pb_utils.InferenceResponse([pb_utils.Tensor(self.output, means.astype(np.float32))])
"""

DECODE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        files = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy().ravel()
        stack = np.stack([self.pixels(file) for file in files])
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", stack)])

    def pixels(self, file):
        # A portable pixmap of 32 by 32: a line or three of head, and three bytes for each pixel.
        assert file.startswith(b"P6"), file[:16]
        return np.frombuffer(file[-32 * 32 * 3 :], np.uint8).reshape(32, 32, 3).astype(np.float32)
"""

LABELS = ("RED", "GREEN", "BLUE")
_ONE = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"


def _tensor(name: str, datatype: str, dims: str, more: str = "") -> str:
    return f'{{ name: "{name}" data_type: TYPE_{datatype} dims: {dims} {more} }}'


def _pair(datatype: str) -> str:
    inputs, outputs = (
        ", ".join(_tensor(f"{end}{index}", datatype, "[ 16 ]") for index in (0, 1))
        for end in ("INPUT", "OUTPUT")
    )
    return f"max_batch_size: 8\ninput [ {inputs} ]\noutput [ {outputs} ]\n{_ONE}"


def _control(name: str, kind: str, values: str = "int32_false_true: [ 0, 1 ]") -> str:
    return f'{{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {values} }} ] }}'


_START_READY = _control("START", "START") + ", " + _control("READY", "READY")


def _sequence(strategy: str, controls: str) -> str:
    ends = (
        f"input [ {_tensor('INPUT', 'INT32', '[ 1 ]')} ]\noutput [ {_tensor('OUTPUT', 'INT32', '[ 1 ]')} ]\n"
    )
    batching = f"max_sequence_idle_microseconds: 5000000 {strategy} control_input [ {controls} ]"
    return f"max_batch_size: 8\nsequence_batching {{ {batching} }}\n{ends}{_ONE}"


def _dyna(corrid: str) -> str:
    last = _control("END", "END") + ", " + _control("CORRID", "CORRID", f"data_type: TYPE_{corrid}")
    return _sequence("oldest { max_candidate_sequences: 16 }", f"{_START_READY}, {last}")


def _colours(rows: int, given: str, scores: str) -> str:
    labelled = _tensor(scores, "FP32", "[ 3 ]", 'label_filename: "labels.txt"')
    return f"max_batch_size: {rows}\ninput [ {given} ]\noutput [ {labelled} ]\n{_ONE}"


_DENSENET = _colours(0, _tensor("data_0", "FP32", "[ 3, 224, 224 ]", "format: FORMAT_NCHW"), "fc6_1")
_INCEPTION = _colours(8, _tensor("input", "FP32", "[ 32, 32, 3 ]", "format: FORMAT_NHWC"), "softmax")


_REPEAT = (
    "model_transaction_policy { decoupled: true }\n"
    f"input [ {_tensor('IN', 'INT32', '[ -1 ]')}, {_tensor('DELAY', 'UINT32', '[ -1 ]')}, "
    f"{_tensor('WAIT', 'UINT32', '[ 1 ]')} ]\noutput [ {_tensor('OUT', 'INT32', '[ 1 ]')} ]\n{_ONE}"
)
_IDENTITY = (
    f"max_batch_size: 8\ninput [ {_tensor('INPUT0', 'STRING', '[ -1 ]')} ]\n"
    f"output [ {_tensor('OUTPUT0', 'STRING', '[ -1 ]')} ]\n{_ONE}"
)
_DECODE = (
    f"max_batch_size: 8\ninput [ {_tensor('INPUT', 'STRING', '[ 1 ]')} ]\n"
    f"output [ {_tensor('OUTPUT', 'FP32', '[ 32, 32, 3 ]')} ]\n{_ONE}"
)
_ENSEMBLE = (
    f"max_batch_size: 8\ninput [ {_tensor('INPUT', 'STRING', '[ 1 ]')} ]\n"
    f"output [ {_tensor('CLASSIFICATION', 'FP32', '[ 3 ]')} ]\n"
    'ensemble_scheduling { step [ { model_name: "preprocess" model_version: -1 '
    'input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "pictures" } }, '
    '{ model_name: "inception_graphdef" model_version: -1 '
    'input_map { key: "input" value: "pictures" } output_map { key: "softmax" value: "CLASSIFICATION" } } ] }\n'
)

MODELS: dict[str, tuple[str, str | None]] = {
    "simple": (_pair("INT32"), ADD_SUB),
    "simple_int8": (_pair("INT8"), ADD_SUB),
    "simple_string": (_pair("STRING"), STRING),
    "simple_identity": (_IDENTITY, IDENTITY),
    "simple_sequence": (_sequence("direct { }", _START_READY), SEQUENCE),
    "simple_dyna_sequence": (_dyna("UINT64"), SEQUENCE),
    "simple_string_dyna_sequence": (_dyna("STRING"), SEQUENCE),
    "repeat_int32": (_REPEAT, REPEAT),
    "densenet_onnx": (_DENSENET, COLOURS),
    "inception_graphdef": (_INCEPTION, COLOURS),
    "preprocess": (_DECODE, DECODE),
    "preprocess_inception_ensemble": (_ENSEMBLE, None),
}
"""By name: what its configuration says beside the backend, and its handler; an ensemble has none."""

LABELLED = frozenset({"densenet_onnx", "inception_graphdef"})
SEVEN = tuple(name for name in MODELS if name.startswith("simple"))
"""Those that are in the repository of the example of model control over HTTP; over gRPC `repeat_int32` is, too."""


def write_repository(root: Path, names: Iterable[str] = MODELS) -> Path:
    """These models, each in version 1."""
    for name in names:
        config, handler = MODELS[name]
        folder = root / name
        (folder / "1").mkdir(parents=True)
        backend = 'platform: "ensemble"' if handler is None else 'backend: "python"'
        (folder / "config.pbtxt").write_text(f"{backend}\n{config}")
        if handler is not None:
            (folder / "1" / "model.py").write_text(handler)
        if name in LABELLED:
            (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    return root
