"""What `triton_python_backend_utils` does with what user code may give it (section 8.3 of the sheet), right and wrong.

Each row is Python that the model `surface` runs: statements, and at last an expression whose value, or what it raises,
is the answer. Of a TypeError only that it is one: the original's are written by pybind11 and list its own signatures.
Not among the rows is what the server itself refuses (a metric's name, a version that is no number, a load): one such
answer of fifteen or so ends the original.
"""

from collections.abc import Mapping

from tests.e2e.side_by_side.http_requests import infer, tensor

SURFACE = """
import json

import numpy as np
import triton_python_backend_utils as pb


def tensor(name, value, kind=None):
    return pb.Tensor(name, np.array(value, kind))


def called(**fields):
    usual = dict(model_name="m", requested_output_names=["O"], inputs=[tensor("X", [1])])
    return pb.InferenceRequest(**{**usual, **fields})


def shown(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), shown(value.ravel().tolist()), value.flags.writeable]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, set):
        return ["set", *sorted(map(str, value))]
    if isinstance(value, dict):
        return {str(key): shown(each) for key, each in value.items()}
    if type(value) in (int, float, str, bool, type(None)):
        return value
    if isinstance(value, bytes):
        return repr(value)
    return getattr(value, "__name__", "a " + type(value).__name__)


class TritonPythonModel:
    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        told = pb.get_input_tensor_by_name(request, "CODE").as_numpy().ravel()[0].decode()
        *lines, last = told.split("; ")
        names = dict(globals(), request=request, args=self.args, config=json.loads(self.args["model_config"]))
        try:
            for line in lines:
                exec(line, names)
            found = shown(eval(last, names))
        except TypeError:
            found = {"raised": "TypeError"}
        except Exception as error:
            found = {"raised": type(error).__name__, "text": str(error)}
        text = json.dumps(found, sort_keys=True).encode()
        return pb.InferenceResponse([pb.Tensor("FOUND", np.array([text], object))])
"""

CONFIG = """input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "FOUND" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""

_ROWS = """
tensor("X", [[1, 2]], "i4").as_numpy()
tensor("X", [[1, 2]], "i4").shape()
tensor("X", ["a", "b"], object).as_numpy()
tensor("X", [b"a", 1, None, 2.5], object).as_numpy()
tensor("X", [b"a"], "S").as_numpy()
tensor("X", ["a"])
tensor("X", [1 + 2j])
tensor("X", ["2020-01-01"], "datetime64[D]")
tensor("X", [True], bool).as_numpy()
tensor("", [1])
tensor("X", [1]).is_cpu()
pb.Tensor("X", [1])
pb.Tensor("X", 3)
pb.Tensor(3, np.zeros(1))
pb.Tensor(b"X", np.zeros(1)).name()
pb.Tensor("X", np.zeros((), "f4")).shape()
pb.Tensor("X", np.zeros((0, 3), "f4")).as_numpy()
pb.Tensor("X", np.arange(6, dtype="i4").reshape(2, 3).T).as_numpy()
pb.Tensor("X", np.zeros((2, 2), [("a", "i4")]))
tensor("X", ["a"], object).to_dlpack()
tensor("X", [1], "f4").__dlpack_device__()
np.from_dlpack(tensor("X", [1, 2], "f4"))
pb.Tensor.from_dlpack("Y", tensor("X", [1, 2], "f4").to_dlpack()).as_numpy()
pb.Tensor.from_dlpack("Y", tensor("X", [1, 2], "f4")).as_numpy()
pb.Tensor.from_dlpack("", tensor("X", [1, 2], "f4"))
pb.Tensor.from_dlpack("Y", np.arange(6, dtype="f4").reshape(2, 3).T)
called().inputs()[0].as_numpy()
called().request_id(), called().correlation_id(), called().flags(), called().timeout(), called().parameters()
called(request_id="q", correlation_id="s", flags=3, timeout=5).correlation_id()
called(request_id=b"q").request_id()
called(request_id=3)
called(correlation_id=2**64 - 1).correlation_id()
called(correlation_id=1.5)
called(correlation_id=True).correlation_id()
called(requested_output_names=["b", "a", "b"]).requested_output_names()
called(requested_output_names=("a",)).requested_output_names()
called(requested_output_names=[]).requested_output_names()
called(requested_output_names=[""])
called(requested_output_names="abc")
called(requested_output_names={"a"})
called(requested_output_names=None)
called(inputs=[])
called(inputs=[1])
called(inputs=None)
called(model_name="")
called(model_name=b"m")
called(model_name=3)
called(model_version="1")
called(model_version=2**70)
called(flags="x")
called(flags=-1)
called(flags=2**32)
called(timeout=-1)
called(timeout=1.5)
called(preferred_memory=3)
called(nothing=1)
called(parameters={"a": 1, "b": True, "c": "x"}).parameters()
called(parameters={}).parameters()
called(parameters={1: 1})
called(parameters={"a": None})
made = called(flags=3); made.set_flags(1); made.flags()
called().set_flags("x")
request.request_id(), request.parameters(), request.correlation_id(), request.flags(), request.timeout()
request.requested_output_names()
[each.name() for each in request.inputs()]
request.inputs()[0] is request.inputs()[0]
request.is_cancelled()
request.get_response_sender().is_cancelled()
request.get_response_sender().send(pb.InferenceResponse([]), flags=7)
request.get_response_sender().send()
request.get_response_sender().send(3)
type(request)
pb.get_input_tensor_by_name(request, "NOTHING")
pb.InferenceResponse([tensor("A", [1])]).output_tensors()[0].as_numpy()
pb.InferenceResponse().output_tensors()
pb.InferenceResponse([]).has_error(), pb.InferenceResponse([]).error()
pb.InferenceResponse(output_tensors=[tensor("A", [1])], error=pb.TritonError("e")).output_tensors()
pb.InferenceResponse(error=pb.TritonError("e")).error().message()
pb.InferenceResponse(error="e")
pb.InferenceResponse([1])
pb.InferenceResponse(None)
pb.get_output_tensor_by_name(pb.InferenceResponse([tensor("A", [1])]), "A").as_numpy()
pb.get_output_tensor_by_name(pb.InferenceResponse([tensor("A", [1])]), "B")
str(pb.TritonError("e").code()), repr(pb.TritonError.CANCELLED), int(pb.TritonError.CANCELLED)
"%d" % pb.TritonError("e", pb.TritonError.NOT_FOUND).code(), pb.TritonError.NOT_FOUND.name
pb.TritonError(b"abc").message()
pb.TritonError(3)
pb.TritonError()
pb.TritonModelException("x", "y").args
pb.TritonModelException.__module__, type(request.inputs()[0]).__name__
[pb.triton_string_to_numpy(name) for name in sorted(pb.TRITON_STRING_TO_NUMPY)]
pb.triton_string_to_numpy("FP32")
[pb.triton_to_numpy_type(number) for number in range(16)]
[pb.numpy_to_triton_type(kind) for kind in (np.float32, np.bool_, np.object_, np.dtype("u1"), np.bytes_)]
pb.numpy_to_triton_type(np.complex64)
pb.numpy_to_triton_type(3)
pb.serialize_byte_tensor(np.array([b"ab", b""], object))
pb.serialize_byte_tensor(np.array(["\u00e4"], object))
pb.serialize_byte_tensor(np.array([1], "i4"))
pb.serialize_byte_tensor(np.array([], object))
pb.deserialize_bytes_tensor(b"\\x02\\0\\0\\0ab\\0\\0\\0\\0")
pb.deserialize_bytes_tensor(b"")
pb.get_input_config_by_name(config, "CODE"), pb.get_output_config_by_name(config, "FOUND")
pb.get_input_config_by_name(config, "NOTHING"), pb.get_input_config_by_name({}, "X")
pb.using_decoupled_model_transaction_policy(config), pb.using_decoupled_model_transaction_policy({})
config
{key: value for key, value in args.items() if key != "model_config"}
pb.is_model_ready("surface"), pb.is_model_ready("nobody"), pb.is_model_ready(""), pb.is_model_ready(b"surface")
pb.is_model_ready("surface", "1"), pb.is_model_ready("surface", "7"), pb.is_model_ready("surface", " 1")
pb.is_model_ready(3)
pb.unload_model("nobody")
pb.unload_model(3)
pb.load_model(3)
pb.load_model("surface", config=3)
pb.load_model("surface", files=[1])
pb.get_model_dir()
pb.Logger.log_info("x"), pb.Logger.log("x", pb.Logger.WARNING), str(pb.Logger.ERROR), repr(pb.Logger.INFO)
pb.Logger.log("x", "nothing")
pb.Logger.log_info(3)
pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 1)
pb.PreferredMemory(7)
__name__, __file__
"""

CODE: Mapping[str, bytes] = {
    line: infer("surface", {"id": "r7", "inputs": [tensor("CODE", "BYTES", [1], data=[line])]})
    for line in _ROWS.strip().splitlines()
}
"""What is run -> the request for it, which is answered in every case."""
