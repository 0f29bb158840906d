"""The repository that perf_analyzer is pointed at: a model for each way in which it can be told to ask.

Decides names, configurations and handlers, of the Python backend where time is to pass in them.
"""

import base64
import json
from pathlib import Path
from typing import Any

SLEEPER = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        time.sleep(0.002 + 0.0001 * sum(len(value) for value in values))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value)]) for value in values]
"""

PICTURE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        pictures = pb_utils.get_input_tensor_by_name(request, "input").as_numpy()
        assert pictures.shape[1:] == (3, 224, 224), pictures.shape
        scores = pictures[:, :, :11, 0].sum(axis=1).astype(np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("output", scores)])
"""

REPEAT = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            (times,) = pb_utils.get_input_tensor_by_name(request, "TIMES").as_numpy().ravel()
            for index in range(int(times)):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("INDEX", np.array([index], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

FOOD = """
import base64
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "INPUT_IMAGE").as_numpy()
        labels = [base64.b64decode(text, validate=True) for text in texts.ravel()]
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("FOOD_LABEL", np.array(labels, object).reshape(texts.shape)),
        ])
"""

SEQUENCE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        value = pb_utils.get_input_tensor_by_name(request, "VALUE").as_numpy()
        if not pb_utils.get_input_tensor_by_name(request, "READY").as_numpy().any():
            return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", value)])
        if pb_utils.get_input_tensor_by_name(request, "START").as_numpy().any():
            self.sums[request.correlation_id()] = np.zeros_like(value)
        self.sums[request.correlation_id()] += value
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", self.sums[request.correlation_id()])])
"""

TEXT = "a picture of noodles"
"""What `food` is sent, encoded, and answers."""

_ONE = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
_BATCHED = "max_batch_size: 16\ndynamic_batching { }\n" + _ONE


def _ends(given: str, got: str) -> str:
    return f"input [ {{ {given} }} ]\noutput [ {{ {got} }} ]\n"


_ROW = _ends(
    'name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ]', 'name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ]'
)


def _picture(dims: str) -> str:
    return _ends(
        f'name: "input" data_type: TYPE_FP32 dims: {dims}', 'name: "output" data_type: TYPE_FP32 dims: [ 11 ]'
    )


def _step(model: str, given: str, got: str) -> str:
    return (
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "INPUT0" value: "{given}" }} '
        f'output_map {{ key: "OUTPUT0" value: "{got}" }} }}'
    )


PYTHON: dict[str, tuple[str, str]] = {
    "sleeper": (_BATCHED + _ROW, SLEEPER),
    "picture": (_BATCHED + _picture("[ 3, 224, 224 ]"), PICTURE),
    "open_picture": (_BATCHED + _picture("[ 3, -1, -1 ]"), PICTURE),
    "food": (
        _BATCHED
        + _ends(
            'name: "INPUT_IMAGE" data_type: TYPE_STRING dims: [ 1 ]',
            'name: "FOOD_LABEL" data_type: TYPE_STRING dims: [ 1 ]',
        ),
        FOOD,
    ),
    "repeat": (
        "model_transaction_policy { decoupled: true }\n"
        + _ends(
            'name: "TIMES" data_type: TYPE_INT32 dims: [ 1 ]',
            'name: "INDEX" data_type: TYPE_INT32 dims: [ 1 ]',
        )
        + _ONE,
        REPEAT,
    ),
    "sequence": (
        "max_batch_size: 4\nsequence_batching { direct { } control_input [ "
        '{ name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }, '
        '{ name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] } ] }\n'
        + _ends(
            'name: "VALUE" data_type: TYPE_INT32 dims: [ 1 ]', 'name: "SUM" data_type: TYPE_INT32 dims: [ 1 ]'
        )
        + _ONE,
        SEQUENCE,
    ),
    "cached": ("max_batch_size: 16\nresponse_cache { enable: true }\n" + _ROW + _ONE, SLEEPER),
}
"""By name: what its configuration says beside the backend, and its handler."""

ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 16\n'
    + _ROW
    + f"ensemble_scheduling {{ step [ {_step('sleeper', 'INPUT0', 'between')}, "
    + f"{_step('identity', 'between', 'OUTPUT0')} ] }}\n"
)


def write_repository(root: Path) -> Path:
    """All models, each in version 1."""
    for name, (config, handler) in PYTHON.items():
        _write(root / name, f'backend: "python"\n{config}')
        (root / name / "1" / "model.py").write_text(handler)
    _write(root / "identity", f'backend: "identity"\nmax_batch_size: 16\n{_ROW}{_ONE}')
    _write(root / "both", ENSEMBLE)
    return root


def write_data(folder: Path) -> dict[str, Path]:
    """Files for `--input-data`, by model."""
    text = base64.b64encode(TEXT.encode()).decode()
    steps: dict[str, dict[str, Any]] = {
        "food": {"INPUT_IMAGE": [text]},
        "repeat": {"TIMES": [3]},
        "open_picture": {"input": {"content": [0.5] * (3 * 224 * 224), "shape": [3, 224, 224]}},
    }
    files = {name: folder / f"{name}.json" for name in steps}
    for name, step in steps.items():
        files[name].write_text(json.dumps({"data": [step]}))
    return files


def _write(folder: Path, config: str) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
