"""Stand-ins for the models of the Python backend's own examples, under their names: each does what its example shows.

Decides names, configurations and handlers, in our words.
"""

from pathlib import Path

HEAD = """
import asyncio
import threading

import numpy as np
import triton_python_backend_utils as pb_utils
"""

ADD_SUB = """

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        a, b = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "INPUT1"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", a + b), pb_utils.Tensor("OUTPUT1", a - b)])
"""

_CALL = """
    def call(self, request):
        (name,) = pb_utils.get_input_tensor_by_name(request, "MODEL_NAME").as_numpy()
        inputs = [pb_utils.get_input_tensor_by_name(request, each) for each in ("INPUT0", "INPUT1")]
        # The name is what the tensor holds: bytes.
        return pb_utils.InferenceRequest(
            model_name=name, requested_output_names=["OUTPUT0", "OUTPUT1"], inputs=inputs
        )

    def passed_on(self, response):
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.InferenceResponse(output_tensors=response.output_tensors())
"""

BLS_SYNC = f"""

class TritonPythonModel:
    def execute(self, requests):
        return [self.passed_on(self.call(request).exec()) for request in requests]
{_CALL}"""

BLS_ASYNC = f"""

class TritonPythonModel:
    async def execute(self, requests):
        answers = await asyncio.gather(*(self.call(request).async_exec() for request in requests))
        return [self.passed_on(answer) for answer in answers]
{_CALL}"""

SQUARE = """

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            value = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            threading.Thread(target=self.send, args=(request.get_response_sender(), value)).start()

    def send(self, sender, value):
        for _ in range(value[0]):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

_TOTAL = """
    def call(self, request):
        value = pb_utils.get_input_tensor_by_name(request, "IN")
        return pb_utils.InferenceRequest(model_name="square_int32", requested_output_names=["OUT"], inputs=[value])

    def total(self, responses):
        # The last response is empty: it says no more than that there are no others.
        parts = [response.output_tensors() for response in responses]
        return sum(tensor.as_numpy() for tensors in parts for tensor in tensors) + np.zeros(1, np.int32)
"""

BLS_DECOUPLED_SYNC = f"""

class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        total = self.total(self.call(request).exec(decoupled=True))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("SUM", total)])]
{_TOTAL}"""

BLS_DECOUPLED_ASYNC = f"""

class TritonPythonModel:
    async def execute(self, requests):
        (request,) = requests
        answers = await asyncio.gather(*(self.call(request).async_exec(decoupled=True) for _ in range(2)))
        total = sum(self.total(responses) for responses in answers)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("SUM", total)])]
{_TOTAL}"""

CUSTOM_METRICS = """

class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily(
            name="requests_process_latency_ns",
            description="Cumulative time spent processing requests",
            kind=pb_utils.MetricFamily.COUNTER,
        )
        self.metric = family.Metric(labels={"model": "custom_metrics", "version": "1"})

    def execute(self, requests):
        self.metric.increment(len(requests))
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""

AUTO_COMPLETE = """

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        for index in (0, 1):
            config.add_input({{"name": f"INPUT{{index}}", "data_type": "TYPE_FP32", "dims": [4]}})
            config.add_output({{"name": f"OUTPUT{{index}}", "data_type": "TYPE_FP32", "dims": [4]}})
        config.set_max_batch_size({rows})
        return config
"""


def _tensors(kind: str, *tensors: tuple[str, str, int]) -> str:
    rows = ", ".join(
        f'{{ name: "{name}" data_type: TYPE_{type_} dims: [ {dim} ] }}' for name, type_, dim in tensors
    )
    return f"{kind} [ {rows} ]\n"


_PAIR = _tensors("input", ("INPUT0", "FP32", 4), ("INPUT1", "FP32", 4)) + _tensors(
    "output", ("OUTPUT0", "FP32", 4), ("OUTPUT1", "FP32", 4)
)
_BLS = _PAIR + _tensors("input", ("MODEL_NAME", "STRING", 1))
_SUM = _tensors("input", ("IN", "INT32", 1)) + _tensors("output", ("SUM", "INT32", 1))
_ONE = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
_PARTS = (
    "model_transaction_policy { decoupled: true }\n"
    + _tensors("input", ("IN", "INT32", 1))
    + _tensors("output", ("OUT", "INT32", 1))
)

MODELS: dict[str, tuple[str, str]] = {
    "add_sub": (_PAIR, ADD_SUB),
    "bls_sync": (_BLS, BLS_SYNC),
    "bls_async": (_BLS, BLS_ASYNC),
    "square_int32": (_PARTS, SQUARE),
    "bls_decoupled_sync": (_SUM, BLS_DECOUPLED_SYNC),
    "bls_decoupled_async": (_SUM, BLS_DECOUPLED_ASYNC),
    "custom_metrics": (_PAIR, CUSTOM_METRICS),
    "nobatch_auto_complete": (
        "",
        AUTO_COMPLETE.format(rows=0) + ADD_SUB.partition("TritonPythonModel:\n")[2],
    ),
    "batch_auto_complete": ("", AUTO_COMPLETE.format(rows=4) + ADD_SUB.partition("TritonPythonModel:\n")[2]),
}
"""By name: its configuration, or none where the model completes it, and its handler."""


def write_repository(root: Path) -> Path:
    """All of them, each in version 1."""
    for name, (config, handler) in MODELS.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.py").write_text(HEAD + handler)
        if config:
            (root / name / "config.pbtxt").write_text(f'backend: "python"\n{config}{_ONE}')
    return root
