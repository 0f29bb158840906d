"""NVIDIA's own gRPC client on asyncio against the whole server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import tritonclient.grpc.aio as triton
from tests.fixtures import models
from tests.harness.server_process import ServerProcess, serve, until
from tests.harness.triton_grpc import ONE_ROW, given, repeating, write_repeat
from tritonclient.utils import InferenceServerException

Result = TypeVar("Result")
Client = triton.InferenceServerClient


def on_asyncio(serving: ServerProcess, scene: Callable[[Client], Awaitable[Result]]) -> Result:
    async def play() -> Result:
        async with triton.InferenceServerClient(serving.grpc_address) as client:
            return await scene(client)

    return asyncio.run(play())


def test_reads(serving: ServerProcess) -> None:
    async def scene(client: Client) -> None:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert not await client.is_model_ready("nobody")
        assert (await client.get_model_metadata("add")).outputs[0].name == "sum"
        assert (await client.get_model_config("add_batched")).config.max_batch_size == 16

    on_asyncio(serving, scene)


def test_infers_concurrently(serving: ServerProcess) -> None:
    async def ask(client: Client, turn: int) -> None:
        rows = np.full((2, 4), turn, np.float32)
        result = await client.infer("echo", [given("x", rows)], request_id=str(turn))
        np.testing.assert_array_equal(result.as_numpy("y"), rows)
        assert result.get_response().id == str(turn)

    async def scene(client: Client) -> None:
        await asyncio.gather(*(ask(client, turn) for turn in range(100)))

    on_asyncio(serving, scene)


def test_refusals(serving: ServerProcess) -> None:
    async def scene(client: Client) -> None:
        with pytest.raises(InferenceServerException, match="no model 'nobody'") as refusal:
            await client.infer("nobody", [given("x", ONE_ROW)])
        assert refusal.value.status() == "StatusCode.NOT_FOUND"

    on_asyncio(serving, scene)


def test_a_stream(serving: ServerProcess) -> None:
    async def asks() -> AsyncIterator[dict[str, Any]]:
        for turn in range(10):
            rows = np.full((1, 4), turn, np.float32)
            yield {"model_name": "echo", "inputs": [given("x", rows)], "request_id": str(turn)}

    async def scene(client: Client) -> dict[str, float]:
        heard = {}
        async for result, error in client.stream_infer(asks()):
            assert error is None
            heard[result.get_response().id] = float(result.as_numpy("y")[0, 0])
        return heard

    assert on_asyncio(serving, scene) == {str(turn): turn for turn in range(10)}


def test_cancelling_one_call_stops_what_runs_for_it(tmp_path: Path) -> None:
    """It waits behind another, and is never computed."""
    root = tmp_path / "models"
    models.identity(root, "slow", rows=1, delay_ms=300)
    write_repeat(root)

    def counts(client_statistics: Any) -> tuple[int, int]:
        (version,) = client_statistics.model_stats
        return version.execution_count, version.inference_stats.fail.count

    async def scene(client: Client) -> tuple[int, int]:
        first = [asyncio.create_task(client.infer("slow", [given("x", ONE_ROW)])) for _ in range(6)]
        await asyncio.sleep(0.1)
        late = asyncio.create_task(client.infer("slow", [given("x", ONE_ROW)]))
        await asyncio.sleep(0.1)
        late.cancel()
        await asyncio.gather(*first)
        with pytest.raises(asyncio.CancelledError):
            await late
        return counts(await client.get_inference_statistics("slow"))

    async def dropped(client: Client) -> None:
        async def asks() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": "repeat", "inputs": repeating(1000, 0.05), "request_id": "dropped"}

        stream = client.stream_infer(asks())
        async for _ in stream:
            break
        stream.cancel()

    diary = root / "repeat" / "diary"
    with serve(tmp_path / "log", root) as serving:
        assert on_asyncio(serving, scene) == (6, 1)
        on_asyncio(serving, dropped)
        until(diary.exists, lambda: "the model goes on for nobody")
    assert '"sent": 1' in diary.read_text().replace('"sent": 2', '"sent": 1')
