"""NVIDIA's client examples of sequences and of answers in parts, call by call and claim by claim, in our words.

`simple_*_sequence_sync_infer_client`, `simple_grpc_sequence_stream_infer_client`,
`simple_grpc_aio_sequence_stream_infer_client` (each also as with its flag `-d`), `simple_grpc_custom_repeat`.
"""

import asyncio
import itertools
import queue
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc.aio as over_grpc_aio
from tests.e2e.client_examples.wires import Wire
from tests.harness.server_process import SECONDS

VALUES = [11, 7, 5, 3, 2, 0, 1]
_ids = itertools.count(1000)


@dataclass(frozen=True)
class Sequence:
    """What is sent under which id to which model, and what must come back."""

    id: int | str
    model: str
    sent: list[int]
    expected: list[int]

    def steps(self) -> Iterator[dict[str, Any]]:
        """The options of each of its requests."""
        last = len(self.sent) - 1
        for index in range(len(self.sent)):
            yield {
                "model_name": self.model,
                "sequence_id": self.id,
                "sequence_start": index == 0,
                "sequence_end": index == last,
            }


def sequences(is_dyna: bool) -> list[Sequence]:
    """The three of the examples: two with a number for an id, one with a text."""
    model = "simple_dyna_sequence" if is_dyna else "simple_sequence"
    made = []
    for sent in ([0, *VALUES], [100, *(-value for value in VALUES)]):
        id_ = next(_ids)
        expected = [sent[0] + 1, *sent[1:]]
        expected[-1] += id_ if is_dyna else 0
        made.append(Sequence(id_, model, sent, expected))
    sent = [20, *(-value for value in VALUES)]
    if not is_dyna:
        return [*made, Sequence(str(uuid.uuid4()), model, sent, [21, *sent[1:]])]
    named = next(_ids)
    sums = list(itertools.accumulate(sent))
    return [*made, Sequence(str(named), "simple_string_dyna_sequence", sent, [*sums[:-1], sums[-1] + named])]


def given(wire: Wire, value: int) -> list[Any]:
    """The input of a request of a sequence."""
    return [wire.given("INPUT", np.full((1, 1), value, np.int32), "INT32")]


@pytest.mark.parametrize("is_dyna", [False, True])
def test_sequence_sync_infer_client(wire: Wire, is_dyna: bool) -> None:
    with wire.client() as client:
        for sequence in sequences(is_dyna):
            found = [
                client.infer(inputs=given(wire, value), outputs=[wire.wanted("OUTPUT")], **step)
                .as_numpy("OUTPUT")
                .item()
                for value, step in zip(sequence.sent, sequence.steps(), strict=True)
            ]
            assert found == sequence.expected


@pytest.mark.parametrize("is_dyna", [False, True])
def test_grpc_sequence_stream_infer_client(grpc: Wire, is_dyna: bool) -> None:
    heard: queue.Queue[tuple[Any, Any]] = queue.Queue()
    sent = sequences(is_dyna)
    found: dict[str, list[int]] = defaultdict(list)
    with grpc.client() as client:
        client.start_stream(lambda result, error: heard.put((result, error)))
        for sequence in sent:
            for index, (value, step) in enumerate(zip(sequence.sent, sequence.steps(), strict=True)):
                client.async_stream_infer(
                    inputs=given(grpc, value), request_id=f"{sequence.id}_{index}", **step
                )
        for _ in range(sum(len(sequence.sent) for sequence in sent)):
            result, error = heard.get(timeout=SECONDS)
            assert error is None, error
            found[result.get_response().id.rpartition("_")[0]].append(result.as_numpy("OUTPUT").item())
    assert found == {str(sequence.id): sequence.expected for sequence in sent}


@pytest.mark.parametrize("is_dyna", [False, True])
def test_grpc_aio_sequence_stream_infer_client(grpc: Wire, is_dyna: bool) -> None:
    sent = sequences(is_dyna)
    found: dict[str, list[int]] = defaultdict(list)

    async def requests() -> AsyncIterator[dict[str, Any]]:
        for index in range(len(VALUES) + 1):
            for sequence in sent:
                step = list(sequence.steps())[index]
                inputs = given(grpc, sequence.sent[index])
                yield {"inputs": inputs, "request_id": f"{sequence.id}_{index}", **step}

    async def talk() -> None:
        async with over_grpc_aio.InferenceServerClient(grpc.address) as client:
            async for result, error in client.stream_infer(requests()):
                assert error is None, error
                found[result.get_response().id.rpartition("_")[0]].append(result.as_numpy("OUTPUT").item())

    asyncio.run(talk())
    assert found == {str(sequence.id): sequence.expected for sequence in sent}


def test_grpc_custom_repeat(grpc: Wire) -> None:
    values = np.arange(100, 110, dtype=np.int32)
    inputs = [
        grpc.given("IN", values, "INT32"),
        grpc.given("DELAY", np.full(10, 1000, np.uint32), "UINT32"),
        grpc.given("WAIT", np.array([1000], np.uint32), "UINT32"),
    ]
    heard: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with grpc.client() as client:
        client.start_stream(lambda result, error: heard.put((result, error)))
        client.async_stream_infer("repeat_int32", inputs, outputs=[grpc.wanted("OUT")])
        found = []
        for _ in values:
            result, error = heard.get(timeout=SECONDS)
            assert error is None, error
            found.append(result.as_numpy("OUT").tolist())
    assert found == [[value] for value in values]
    assert heard.empty()
