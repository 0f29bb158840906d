"""Parts of answers to ModelInferResponse, alone and in a stream."""

from typing import Any

import numpy as np
import pytest
from tests.harness.grpc_messages import PROTOCOL, STREAM, UNARY, request, tensor
from tritonclient.grpc import InferResult, service_pb2

from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RpcEncoder
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.wire import RpcAnswer, RpcCall
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import KServeGrpc

GOOD = request(tensor("x", "FP32", [1], fp32_contents=[1]), id="7")
OUTPUTS = Tensors.of(
    {
        "y": np.array([[1.5, -2]], np.float32),
        "t": np.array([b"a", b""], object),
        "none": np.empty((0, 3), np.int8),
    }
)


def encoder(call: RpcCall, tells_end: bool = False) -> RpcEncoder:
    message = service_pb2.ModelInferRequest.FromString(GOOD.SerializeToString())
    if tells_end:
        message.parameters["triton_enable_empty_final_response"].bool_param = True
    return PROTOCOL.decode(call, message.SerializeToString())[1]


def part(payload: Any = OUTPUTS, final: bool = True, **fields: Any) -> ResponsePart:
    return ResponsePart(payload, final=final, model="m", version="1", **fields)


def unary(answer: RpcAnswer) -> Any:
    assert (answer.code, answer.final) == (0, True)
    return service_pb2.ModelInferResponse.FromString(answer.message or b"")


def streamed(answer: RpcAnswer) -> Any:
    assert answer.code == 0
    return service_pb2.ModelStreamInferResponse.FromString(answer.message or b"")


def test_outputs_are_raw_and_in_order() -> None:
    response = unary(encoder(UNARY).encode(part()))
    assert (response.model_name, response.model_version, response.id) == ("m", "1", "7")
    assert [output.name for output in response.outputs] == ["y", "t", "none"]
    assert [list(output.shape) for output in response.outputs] == [[1, 2], [2], [0, 3]]
    assert response.raw_output_contents[2] == b""
    result = InferResult(response)
    np.testing.assert_array_equal(result.as_numpy("y"), np.array([[1.5, -2]], np.float32))
    assert result.as_numpy("t").tolist() == [b"a", b""]
    assert not response.parameters


def test_parameters_keep_their_kinds() -> None:
    given = {"flag": True, "number": -5, "huge": 2**64 - 1, "share": 0.5, "text": "t"}
    response = unary(encoder(UNARY).encode(part(parameters=given)))
    fields = {key: value.WhichOneof("parameter_choice") for key, value in response.parameters.items()}
    assert fields == {
        "flag": "bool_param",
        "number": "int64_param",
        "huge": "uint64_param",
        "share": "double_param",
        "text": "string_param",
    }


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (part(final=False), 12, "Call ModelStreamInfer"),
        (part(None), 13, "without an answer"),
        (part(Raw(())), 12, "cannot be made tensors"),
        (part(OUTPUTS, parameters={"too large": 2**70}), 13, "Report it"),
        (ResponsePart(error=ServeError(Code.QUEUE_FULL, "Full.")), 14, "Full."),
    ],
)
def test_what_cannot_be_answered_once(given: ResponsePart, code: int, text: str) -> None:
    answer = encoder(UNARY).encode(given)
    assert (answer.code, answer.final, answer.message) == (code, True, None)
    assert text in answer.details


def test_parts_of_a_stream_say_whether_they_are_the_last() -> None:
    write = encoder(STREAM)
    for is_final in (False, True):
        answer = write.encode(part(final=is_final))
        response = streamed(answer).infer_response
        assert answer.final is is_final
        assert response.parameters["triton_final_response"].bool_param is is_final
        assert (response.id, len(response.outputs)) == ("7", 3)


def test_an_empty_end_is_silent_unless_asked_for() -> None:
    assert encoder(STREAM).encode(part(None)) == RpcAnswer()
    response = streamed(encoder(STREAM, tells_end=True).encode(part(None))).infer_response
    assert response.parameters["triton_final_response"].bool_param
    assert (response.model_name, response.model_version, response.id) == ("m", "", "7")


def test_errors_of_a_stream_are_in_band() -> None:
    error = ServeError(Code.MODEL_FAILED, "It \udc80 failed.")
    response = streamed(encoder(STREAM).encode(ResponsePart(error=error, model="m")))
    assert response.error_message == "It \\udc80 failed."
    inner = response.infer_response
    assert (inner.id, inner.model_name) == ("7", "m")
    assert inner.parameters["triton_final_response"].bool_param
    refused = ResponsePart(error=ServeError(Code.NOT_FOUND, "No."), model="m")
    inner = streamed(encoder(STREAM).encode(refused)).infer_response
    assert (inner.id, inner.model_name, len(inner.parameters)) == ("7", "", 0)


def test_errors_of_a_stream_end_it_if_the_client_wants_that() -> None:
    call = RpcCall(STREAM.method, {"triton_grpc_error": "true"})
    answer = encoder(call).encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "No.")))
    assert answer == RpcAnswer(code=5, details="No.")
    assert PROTOCOL.refuse(call, ServeError(Code.INVALID, "No.")) == RpcAnswer(code=3, details="No.")


def test_what_cannot_be_written_into_a_stream() -> None:
    answer = encoder(STREAM).encode(part(Raw(()), final=False))
    assert answer.final
    assert "cannot be made tensors" in streamed(answer).error_message


def test_outputs_in_shared_memory_leave_an_empty_entry() -> None:
    class Region:
        data = bytearray(16)

        def view(self, name: str, offset: int, size: int) -> memoryview:
            return memoryview(self.data)[offset : offset + size]

    message = service_pb2.ModelInferRequest.FromString(GOOD.SerializeToString())
    wanted = message.outputs.add(name="y")
    wanted.parameters["shared_memory_region"].string_param = "r"
    wanted.parameters["shared_memory_byte_size"].int64_param = 12
    wanted.parameters["shared_memory_offset"].int64_param = 4
    protocol = KServeGrpc("somebody", "1", KServeOptions(regions=Region()))
    write = protocol.decode(UNARY, message.SerializeToString())[1]
    response = unary(write.encode(part()))
    parameters = response.outputs[0].parameters
    assert parameters["shared_memory_region"].string_param == "r"
    assert parameters["shared_memory_byte_size"].int64_param == 8
    assert parameters["shared_memory_offset"].int64_param == 4
    assert response.raw_output_contents[0] == b""
    assert np.frombuffer(Region.data, np.float32).tolist() == [0, 1.5, -2, 0]
    wide = Tensors.of({"y": np.zeros(4, np.float32)})
    assert "takes 16 bytes, but its shared_memory_byte_size is 12" in write.encode(part(wide)).details
