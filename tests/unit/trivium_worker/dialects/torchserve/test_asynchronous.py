"""TorchServe's asynchronous handlers in this process: each request is a call of its own, and fails alone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, body, failures, stage

from trivium_worker.dialects.torchserve import asynchronous
from trivium_worker.wire.values import Failure, Raw

__all__ = ["stage"]

HANDLER = """
import asyncio
from ts.handler_utils.utils import send_intermediate_predict_response
LOADED, GATES = [], {}
class Handler:
    def initialize(self, context):
        LOADED.append(asyncio.get_event_loop())
    async def handle(self, data, context):
        text = bytes(data[0]["body"]).decode()
        name = context.get_request_id(0)
        if text == "gate":
            GATES[name] = asyncio.Event()
            await GATES[name].wait()
        if text == "open":
            for gate in GATES.values():
                gate.set()
        if text == "raise":
            raise ValueError("as told")
        if text == "short":
            return []
        if text in ("parts", "threads", "much", "fail"):
            for part in ("a", "b"):
                code = 507 if text == "fail" else 200
                send = send_intermediate_predict_response, [part], context.request_ids, "said", code, context
                if text == "threads":
                    await asyncio.to_thread(*send)
                else:
                    send[0](*send[1:])
        context.set_response_header(0, "of", name)
        return [name]
"""


def serve(adapter: Any, *items: Any, send: Callable[[Any], Awaitable[None]] | None = None) -> list[Any]:
    sent: list[Any] = []

    async def take(part: Any) -> None:
        await asyncio.sleep(0)
        sent.append(part)

    async def all_of() -> list[Any]:
        return await asyncio.gather(*(adapter.serve(item, send or take) for item in items))

    return [*sent, *adapter.loop.run_until_complete(asyncio.wait_for(all_of(), 30))]


@pytest.fixture
def adapter(stage: TorchServeChildHarness) -> Any:
    made = stage.load(HANDLER, in_flight=5)
    assert made.in_flight == 5
    yield made
    made.loop.close()


def test_requests_run_at_once_each_with_a_context_of_its_own(
    stage: TorchServeChildHarness, adapter: Any
) -> None:
    items = [stage.item(text, request_id=name) for name, text in (("one", b"gate"), ("two", b"open"))]
    outcomes = serve(adapter, *items)  # the second one lets the first one go
    assert [body(outcome) for outcome in outcomes] == [b"one", b"two"]
    assert [outcome.properties for outcome in outcomes] == [{"of": "one"}, {"of": "two"}]
    assert items[0].payload.parts == []


@pytest.mark.parametrize(
    ("text", "message", "status"),
    [
        (b"raise", "Prediction failed: ValueError: as told", 503),
        (b"short", "number of batch response mismatched", 503),
        (b"fail", "said", 507),
    ],
)
def test_a_request_fails_alone(
    stage: TorchServeChildHarness, adapter: Any, text: bytes, message: str, status: int
) -> None:
    failed, well = serve(adapter, stage.item(text), stage.item(b"x", request_id="well"))
    ((_, said, code),) = failures([failed])
    assert (said.startswith(message), code) == (True, status)
    assert body(well) == b"well"


@pytest.mark.parametrize("text", [b"parts", b"threads"])
def test_parts_leave_in_order_in_front_of_the_last_one(
    stage: TorchServeChildHarness, adapter: Any, text: bytes
) -> None:
    sent: list[Any] = []

    async def take(part: Any) -> None:
        await asyncio.sleep(0)
        sent.append(body(part))

    (outcome,) = serve(adapter, stage.item(text, request_id="r"), send=take)
    assert (sent, body(outcome)) == ([b"a", b"b"], b"r")


def test_a_reader_that_is_too_slow_ends_its_own_request(
    stage: TorchServeChildHarness, adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "MOST_UNSENT", 1)
    (outcome,) = serve(adapter, stage.item(b"much"))
    assert isinstance(outcome, Failure)
    assert "wait for a slow reader" in outcome.message


def test_who_leaves_ends_the_call(stage: TorchServeChildHarness, adapter: Any) -> None:
    async def leave() -> Any:
        call = asyncio.ensure_future(adapter.serve(stage.item(b"gate"), None))
        await asyncio.sleep(0)
        call.cancel()
        return (await asyncio.gather(call, return_exceptions=True))[0]

    assert isinstance(adapter.loop.run_until_complete(leave()), asyncio.CancelledError)


def test_a_function_may_be_the_handler_and_is_called_at_load(stage: TorchServeChildHarness) -> None:
    text = "SEEN = []\nasync def handle(data, context):\n    SEEN.append(data)\n    return data and ['%s' % SEEN]\n"
    adapter = stage.load(text, in_flight=2)
    (outcome,) = serve(adapter, stage.item(b""))
    assert body(outcome).startswith(b"[None, [{")
    adapter.loop.close()


def test_what_cannot_be_awaited_is_said(stage: TorchServeChildHarness) -> None:
    adapter = stage.load("def handle(data, context):\n    return data and ['x']\n", in_flight=2)
    (outcome,) = serve(adapter, stage.item(b""))
    assert isinstance(outcome, Failure)
    assert "returned a list, which cannot be awaited" in outcome.message
    assert not isinstance(outcome, Raw)
    adapter.loop.close()
