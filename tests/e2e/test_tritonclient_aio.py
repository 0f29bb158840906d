"""NVIDIA's own client on asyncio against the whole server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import numpy as np
import pytest
import tritonclient.http.aio as triton
from tests.harness.server_process import ServerProcess
from tests.harness.triton_tensors import NOT_TEXT, TEXTS, A, B, encoded, given, objects, two, wanted
from tritonclient.utils import InferenceServerException

Result = TypeVar("Result")


def on_asyncio(
    serving: ServerProcess, scene: Callable[[triton.InferenceServerClient], Awaitable[Result]]
) -> Result:
    async def play() -> Result:
        async with triton.InferenceServerClient(serving.address, conn_timeout=120) as client:
            return await scene(client)

    return asyncio.run(play())


def test_reads(serving: ServerProcess) -> None:
    async def scene(client: triton.InferenceServerClient) -> None:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("add")
        assert not await client.is_model_ready("nobody")
        assert (await client.get_server_metadata())["name"] == "trivium"
        assert (await client.get_model_metadata("add"))["outputs"][0]["name"] == "sum"
        assert (await client.get_model_config("add_batched"))["max_batch_size"] == 16
        assert (await client.get_inference_statistics("add"))["model_stats"][0]["name"] == "add"

    on_asyncio(serving, scene)


@pytest.mark.parametrize("is_binary", [True, False])
def test_infers_concurrently(serving: ServerProcess, is_binary: bool) -> None:
    async def ask(client: triton.InferenceServerClient, turn: int) -> None:
        rows = np.full((2, 4), turn, np.float32)
        inputs = [given("a", rows, "FP32", is_binary), given("b", rows, "FP32", not is_binary)]
        outputs = [wanted("sum", is_binary)]
        result = await client.infer("add_batched", inputs, outputs=outputs, request_id=str(turn))
        np.testing.assert_array_equal(result.as_numpy("sum"), rows * 2)
        assert result.get_response()["id"] == str(turn)

    async def scene(client: triton.InferenceServerClient) -> None:
        await asyncio.gather(*(ask(client, turn) for turn in range(50)))

    on_asyncio(serving, scene)


def test_texts(serving: ServerProcess) -> None:
    async def scene(client: triton.InferenceServerClient) -> list[bytes]:
        result = await client.infer("bytes", [given("x", objects(TEXTS + NOT_TEXT), "BYTES")])
        return encoded(result.as_numpy("y"))

    assert on_asyncio(serving, scene) == TEXTS + NOT_TEXT


def test_refusals(serving: ServerProcess) -> None:
    async def scene(client: triton.InferenceServerClient) -> None:
        with pytest.raises(InferenceServerException, match="no model 'nobody'") as refusal:
            await client.infer("nobody", two(A, B))
        assert refusal.value.status() == "404"
        with pytest.raises(InferenceServerException, match=r"got shape \[3\]") as refusal:
            await client.infer("add", two(A[:3], B))
        assert refusal.value.status() == "400"

    on_asyncio(serving, scene)
