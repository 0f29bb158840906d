"""The repository that both servers serve: models of the Python backend, each for a rule or two of the sheet.

Decides names, configurations and handlers. Both read the same folder, so that paths in error texts are the same.
"""

from pathlib import Path

from tests.e2e.side_by_side import calls, surface

IDENTITY = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(tensor) for tensor in request.inputs()]) for request in requests]

    def answer(self, tensor):
        return pb.Tensor(tensor.name().replace("INPUT", "OUTPUT"), tensor.as_numpy())
"""

ADD_SUB = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        a, b = (pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "INPUT1"))
        return pb.InferenceResponse([pb.Tensor("OUTPUT0", a + b), pb.Tensor("OUTPUT1", a - b)])
"""

FAILING = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        word = pb.get_input_tensor_by_name(request, "WAY").as_numpy().ravel()[0].decode()
        return getattr(self, word)()

    def raises(self):
        raise ValueError("boom")

    def raises_deep(self):
        return self.raises()

    def returns_none_of_one(self):
        return []

    def returns_a_number(self):
        return 7

    def returns_words(self):
        return ["a word"]

    def not_found(self):
        return [pb.InferenceResponse(error=pb.TritonError("no such thing", pb.TritonError.NOT_FOUND))]

    def invalid(self):
        return [pb.InferenceResponse(error=pb.TritonError("not like this", pb.TritonError.INVALID_ARG))]

    def unavailable(self):
        return [pb.InferenceResponse(error=pb.TritonError("not now", pb.TritonError.UNAVAILABLE))]

    def unsupported(self):
        return [pb.InferenceResponse(error=pb.TritonError("not here", pb.TritonError.UNSUPPORTED))]

    def exists(self):
        return [pb.InferenceResponse(error=pb.TritonError("once is enough", pb.TritonError.ALREADY_EXISTS))]

    def plain(self):
        return [pb.InferenceResponse(error=pb.TritonError("just an error"))]

    def unknown(self):
        return [pb.InferenceResponse(error=pb.TritonError("who knows", pb.TritonError.UNKNOWN))]

    def answers_nothing(self):
        return [pb.InferenceResponse([])]
"""

REPEAT = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            (times,) = pb.get_input_tensor_by_name(request, "TIMES").as_numpy().ravel()
            for index in range(int(times)):
                sender.send(pb.InferenceResponse([pb.Tensor("INDEX", np.array([index], np.int32))]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
"""

PROMPT = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        prompt = pb.get_input_tensor_by_name(request, "PROMPT").as_numpy()
        suffix = pb.get_input_tensor_by_name(request, "SUFFIX")
        text = prompt.ravel()[0] + (b"." if suffix is None else suffix.as_numpy().ravel()[0])
        return pb.InferenceResponse([
            pb.Tensor("TEXT", np.array([text], object).reshape(prompt.shape)),
            pb.Tensor("TOLD", np.array([request.parameters().encode()], object).reshape(prompt.shape)),
        ])
"""

COUNTER = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        ready = pb.get_input_tensor_by_name(request, "READY")
        if ready is not None and not ready.as_numpy().any():
            return pb.InferenceResponse([pb.Tensor("SUM", np.zeros((1, 1), np.int32))])
        start = pb.get_input_tensor_by_name(request, "START").as_numpy().any()
        value = pb.get_input_tensor_by_name(request, "VALUE").as_numpy()
        key = request.correlation_id()
        self.sums[key] = value if start else self.sums[key] + value
        return pb.InferenceResponse([pb.Tensor("SUM", self.sums[key])])
"""

TYPES = ("BOOL", "UINT8", "UINT64", "INT8", "INT16", "INT64", "FP16", "FP64")
"""Datatypes that have a model `ident_<type>` of INPUT0 [-1]."""

_TWO = """
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }
input { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] }
output { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
"""
_GROUP = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
_COUNTER = """sequence_batching {
  direct { }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }
  ]
}
input [ { name: "VALUE" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "SUM" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""


def _identity(datatype: str, dims: str, rows: int, more: str = "") -> tuple[str, str]:
    put = f'name: "INPUT0" data_type: TYPE_{datatype} dims: {dims}'
    got = f'name: "OUTPUT0" data_type: TYPE_{datatype} dims: {dims}'
    return f"max_batch_size: {rows}\ninput [ {{ {put} }} ]\noutput [ {{ {got} {more} }} ]\n{_GROUP}", IDENTITY


MODELS: dict[str, tuple[str, str]] = {
    "simple": (f"max_batch_size: 8\n{_TWO}{_GROUP}", ADD_SUB),
    "batched": (
        f"max_batch_size: 8\n{_TWO}"
        "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }",
        ADD_SUB,
    ),
    "ident_fp32": _identity("FP32", "[ 3 ]", 4),
    "ident_nobatch": _identity("FP32", "[ -1, 2 ]", 0),
    "ident_string": _identity("STRING", "[ -1 ]", 8),
    "one_string": _identity("STRING", "[ 1 ]", 0),
    "open": _identity("FP32", "[ -1, -1 ]", 4),
    "labelled": _identity("FP32", "[ 4 ]", 4, 'label_filename: "labels.txt"'),
    **{f"ident_{name.lower()}": _identity(name, "[ -1 ]", 0) for name in TYPES},
    "failing": (
        'input [ { name: "WAY" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
        f'output [ {{ name: "NOTHING" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n{_GROUP}',
        FAILING,
    ),
    "repeat": (
        'model_transaction_policy { decoupled: true }\ninput [ { name: "TIMES" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "INDEX" data_type: TYPE_INT32 dims: [ 1 ] } ]\n',
        REPEAT,
    ),
    "prompt": (
        'max_batch_size: 2\ninput [ { name: "PROMPT" data_type: TYPE_STRING dims: [ 1 ] }, '
        '{ name: "SUFFIX" data_type: TYPE_STRING dims: [ 1 ] optional: true } ]\n'
        'output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }, '
        '{ name: "TOLD" data_type: TYPE_STRING dims: [ 1 ] } ]\n',
        PROMPT,
    ),
    "counter": (f"max_batch_size: 2\n{_COUNTER}", COUNTER),
    "spare": _identity("INT32", "[ 2 ]", 0),
    "caller": (calls.CONFIG, calls.CALLER),
    "surface": (surface.CONFIG, surface.SURFACE),
}
"""By name: what its configuration says beside the backend, and its handler."""


def write_repository(root: Path) -> Path:
    """All of `MODELS`, each in version 1; of `spare` there is a version 3, too."""
    for name, (config, handler) in MODELS.items():
        for version in ("1", "3") if name == "spare" else ("1",):
            (root / name / version).mkdir(parents=True)
            (root / name / version / "model.py").write_text(handler)
        (root / name / "config.pbtxt").write_text(f'backend: "python"\n{config}')
    (root / "labelled" / "labels.txt").write_text("cat\ndog\nowl\nfox\n")
    return root
