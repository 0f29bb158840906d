"""NVIDIA's client examples `simple_*` and `reuse_infer_objects_client`, call by call and claim by claim, in our words.

Each test is named after its example. The examples themselves are in no package, so that they cannot be run from here;
docs/triton.md tells how the originals fared, unchanged.
"""

import asyncio
import contextlib
import queue
import uuid
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.grpc.aio as over_grpc_aio
import tritonclient.http.aio as over_http_aio
from tests.e2e.client_examples.wires import COUNTING, ONES, Wire, check, texts
from tests.harness.server_process import SECONDS
from tests.harness.triton_tensors import Array
from tritonclient.utils import InferenceServerException, deserialize_bytes_tensor, serialize_byte_tensor

UNKNOWN = "Request for unknown model"


def test_health_metadata(wire: Wire) -> None:
    more = (
        {"headers": {"test": "1", "dummy": "2"}}
        if wire.is_grpc
        else {"query_params": {"test_1": 1, "test_2": 2}}
    )
    with wire.client() as client:
        assert client.is_server_live(**more)
        assert client.is_server_ready()
        assert client.is_model_ready("simple")
        assert wire.document(client.get_server_metadata())["name"] == "triton"
        assert wire.document(client.get_model_metadata("simple", **more))["name"] == "simple"
        with pytest.raises(InferenceServerException) as caught:
            client.get_model_metadata("wrong_model_name")
        assert UNKNOWN in caught.value.message()
        config = wire.document(client.get_model_config("simple"))
        assert (config["config"] if wire.is_grpc else config)["name"] == "simple"


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_infer_client(wire: Wire, compression: str | None) -> None:
    minus = -ONES
    options: dict[str, Any] = {"headers": {"test": "1"}}
    if wire.is_grpc:
        options["compression_algorithm"] = compression
    else:
        options |= {"query_params": {"test_1": 1, "test_2": 2}}
        options |= dict.fromkeys(
            ("request_compression_algorithm", "response_compression_algorithm"), compression
        )
    with wire.client() as client:
        for outputs in (wire.both(), None):
            check(client.infer("simple", wire.pair(b=minus), outputs=outputs, **options), b=minus)
        only = client.infer("simple", wire.pair(), outputs=[wire.wanted("OUTPUT0")], **options)
        np.testing.assert_array_equal(only.as_numpy("OUTPUT0"), COUNTING + ONES)
        assert only.as_numpy("OUTPUT1") is None
        statistics = wire.document(client.get_inference_statistics("simple"))
        assert [entry["name"] for entry in statistics["model_stats"]] == ["simple"]
        with pytest.raises(InferenceServerException) as caught:
            client.infer("wrong_model_name", wire.pair(), outputs=wire.both())
        assert caught.value.message().startswith(UNKNOWN)


def test_async_infer_client(both_wires: dict[str, Wire]) -> None:
    http, grpc = both_wires["http"], both_wires["grpc"]
    with http.client(concurrency=4) as client:
        for pending in [client.async_infer("simple", http.pair(), outputs=http.both()) for _ in range(4)]:
            check(pending.get_result())
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with grpc.client() as client:
        client.async_infer("simple", grpc.pair(), lambda result, error: answers.put((result, error)))
        result, error = answers.get(timeout=SECONDS)
    assert error is None
    check(result)


def test_aio_infer_client(wire: Wire) -> None:
    aio: Any = over_grpc_aio if wire.is_grpc else over_http_aio

    async def talk() -> None:
        async with aio.InferenceServerClient(wire.address) as client:
            check(await client.infer("simple", wire.pair(), outputs=wire.both()))
            statistics = wire.document(await client.get_inference_statistics("simple"))
            assert len(statistics["model_stats"]) == 1
            with pytest.raises(InferenceServerException) as caught:
                await client.infer("wrong_model_name", wire.pair())
            assert caught.value.message().startswith(UNKNOWN)
            asked = (client.infer("simple", wire.pair(), outputs=outputs) for outputs in (wire.both(), None))
            for result in await asyncio.gather(*asked):
                check(result)

    asyncio.run(talk())


def test_string_infer_client(wire: Wire) -> None:
    numbers = range(16)
    given = [texts(numbers).reshape(1, 16), texts([1] * 16).reshape(1, 16)]
    rows = {
        "null characters": np.array([[b"he\0llo"] * 16], object),
        "bytes that end with one": np.array([[b"\0\1\2\3"] * 16], np.bytes_),
    }
    with wire.client() as client:
        result = client.infer("simple_string", wire.pair(*given, "BYTES"), outputs=wire.both())
        assert [int(text) for text in result.as_numpy("OUTPUT0")[0]] == [number + 1 for number in numbers]
        assert [int(text) for text in result.as_numpy("OUTPUT1")[0]] == [number - 1 for number in numbers]
        for row in rows.values():
            for is_binary in (True, False):
                inputs = [wire.given("INPUT0", row, "BYTES", is_binary)]
                outputs = [wire.wanted("OUTPUT0", is_binary)]
                answer = client.infer("simple_identity", inputs, outputs=outputs).as_numpy("OUTPUT0")
                assert [text if isinstance(text, bytes) else text.encode() for text in answer[0]] == list(
                    row[0]
                )


# -- shared memory -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def region(wire: Wire, client: Any, content: bytes, size: int = 0) -> Iterator[tuple[str, SharedMemory]]:
    """Shared memory that begins with this, registered under a name of its own."""
    memory = SharedMemory(create=True, size=size or len(content))
    name = f"region_{uuid.uuid4().hex}"
    try:
        memory.buf[: len(content)] = content
        client.register_system_shared_memory(name, f"/{memory.name}", memory.size)
        yield name, memory
        client.unregister_system_shared_memory(name)
    finally:
        memory.close()
        memory.unlink()


def test_shm_client(wire: Wire) -> None:
    size = COUNTING.nbytes
    with wire.client() as client:
        client.unregister_system_shared_memory()
        client.unregister_cuda_shared_memory()
        given = COUNTING.tobytes() + ONES.tobytes()
        with (
            region(wire, client, given) as (given_at, _),
            region(wire, client, bytes(2 * size)) as (got_at, got),
        ):
            inputs = [wire.module.InferInput(f"INPUT{index}", [1, 16], "INT32") for index in (0, 1)]
            outputs = [wire.wanted(f"OUTPUT{index}") for index in (0, 1)]
            for index in (0, 1):
                inputs[index].set_shared_memory(given_at, size, offset=index * size)
                outputs[index].set_shared_memory(got_at, size, offset=index * size)
            result = client.infer("simple", inputs, outputs=outputs)
            total, difference = np.frombuffer(bytes(got.buf[: 2 * size]), np.int32).reshape(2, 16)
            described = result.get_output("OUTPUT1")
            shape = described.shape if wire.is_grpc else described["shape"]
            assert list(shape) == [1, 16]
            assert len(wire_regions(wire, client)) == 2
        assert not wire_regions(wire, client)
    np.testing.assert_array_equal(total, (COUNTING + ONES)[0])
    np.testing.assert_array_equal(difference, (COUNTING - ONES)[0])


def wire_regions(wire: Wire, client: Any) -> Any:
    """Those that are registered."""
    status = client.get_system_shared_memory_status()
    return status.regions if wire.is_grpc else status


def test_shm_string_client(wire: Wire) -> None:
    def packed(array: Array) -> bytes:
        return bytes(serialize_byte_tensor(array).item())

    given = [packed(texts(range(16))), packed(texts([1] * 16))]
    got = [packed(texts([number + step for number in range(16)])) for step in (1, -1)]
    with wire.client() as client, contextlib.ExitStack() as stack:
        inputs, outputs, memories = [], [], []
        for index in (0, 1):
            place, _ = stack.enter_context(region(wire, client, given[index]))
            inputs.append(wire.module.InferInput(f"INPUT{index}", [1, 16], "BYTES"))
            inputs[index].set_shared_memory(place, len(given[index]))
            place, memory = stack.enter_context(region(wire, client, b"", len(got[index])))
            outputs.append(wire.wanted(f"OUTPUT{index}"))
            outputs[index].set_shared_memory(place, len(got[index]))
            memories.append(memory)
        client.infer("simple_string", inputs, outputs=outputs)
        for index, memory in enumerate(memories):
            assert bytes(memory.buf[: len(got[index])]) == got[index]


def test_reuse_infer_objects_client(wire: Wire) -> None:
    size = COUNTING.nbytes
    inputs, outputs = wire.pair(), wire.both()
    with wire.client() as client, contextlib.ExitStack() as stack:
        given = [stack.enter_context(region(wire, client, array.tobytes())) for array in (COUNTING, ONES)]
        got = [stack.enter_context(region(wire, client, bytes(size))) for _ in (0, 1)]
        for is_shared in (True, False, True):
            if is_shared:
                for index in (0, 1):
                    inputs[index].set_shared_memory(given[index][0], size)
                    outputs[index].set_shared_memory(got[index][0], size)
                client.infer("simple", inputs, outputs=outputs)
                for (_, memory), right in zip(got, (COUNTING + ONES, COUNTING - ONES), strict=True):
                    assert bytes(memory.buf[:size]) == right.tobytes()
                    memory.buf[:size] = bytes(size)
            else:
                inputs[0].set_data_from_numpy(COUNTING)
                inputs[1].set_data_from_numpy(2 * ONES)
                for output in outputs:
                    output.unset_shared_memory()
                check(client.infer("simple", inputs, outputs=outputs), b=2 * ONES)


# -- gRPC alone ----------------------------------------------------------------------------------------------


def test_grpc_custom_args_client(grpc: Wire) -> None:
    channel = [
        ("grpc.max_send_message_length", 2**20),
        ("grpc.max_receive_message_length", 2**20),
        ("grpc.keepalive_time_ms", 2**31 - 1),
        ("grpc.keepalive_timeout_ms", 20000),
        ("grpc.keepalive_permit_without_calls", False),
        ("grpc.http2.max_pings_without_data", 2),
        ("grpc.dns_enable_srv_queries", 1),
    ]
    with grpc.client(channel_args=channel) as client:
        check(client.infer("simple", grpc.pair(), outputs=grpc.both(), headers={"test": "1"}))


def test_grpc_keepalive_client(grpc: Wire) -> None:
    options = over_grpc.KeepAliveOptions(
        keepalive_time_ms=2**31 - 1,
        keepalive_timeout_ms=20000,
        keepalive_permit_without_calls=False,
        http2_max_pings_without_data=2,
    )
    with grpc.client(keepalive_options=options) as client:
        check(client.infer("simple", grpc.pair(), outputs=grpc.both(), headers={"test": "1"}))


def ask(grpc: Wire, model: str, datatype: str, field: str, *inputs: list[Any], version: str = "") -> Any:
    """ModelInfer with the inputs in `contents`, through the client's own stub."""
    messages = over_grpc.service_pb2
    request = messages.ModelInferRequest(model_name=model, model_version=version)
    for index, elements in enumerate(inputs):
        entry = request.inputs.add(name=f"INPUT{index}", datatype=datatype, shape=[1, 16])
        getattr(entry.contents, field).extend(elements)
        request.outputs.add(name=f"OUTPUT{index}")
    with grpc.client() as client:
        return client._client_stub.ModelInfer(request, timeout=SECONDS)


@pytest.mark.parametrize(
    ("model", "datatype", "kind"), [("simple", "INT32", "<i4"), ("simple_int8", "INT8", "i1")]
)
def test_grpc_explicit_int_content_client(grpc: Wire, model: str, datatype: str, kind: str) -> None:
    response = ask(grpc, model, datatype, "int_contents", list(range(16)), [1] * 16)
    total, difference = (np.frombuffer(data, kind) for data in response.raw_output_contents)
    assert [list(output.shape) for output in response.outputs] == [[1, 16], [1, 16]]
    np.testing.assert_array_equal(total, (COUNTING + ONES)[0])
    np.testing.assert_array_equal(difference, (COUNTING - ONES)[0])
    text = "failed to get model version from specified version string 'wrong_specification'"
    with pytest.raises(Exception, match=text):
        ask(grpc, model, datatype, "int_contents", [0] * 16, [1] * 16, version="wrong_specification")


def test_grpc_explicit_byte_content_client(grpc: Wire) -> None:
    response = ask(grpc, "simple_string", "BYTES", "bytes_contents", list(texts(range(16))), [b"1"] * 16)
    total, difference = (deserialize_bytes_tensor(data) for data in response.raw_output_contents)
    assert [int(text) for text in total] == list(range(1, 17))
    assert [int(text) for text in difference] == list(range(-1, 15))
