"""Loads a handler of any dialect into this process, and calls it as its worker would: in the thread of the caller."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from time import monotonic
from typing import Any

from trivium.codecs import forms
from trivium.core.queueing.answer_rules import answer_rules
from trivium.core.queueing.payload_adapter import payload_adapter
from trivium.core.queueing.responses import ResponseDispatcher, answering
from trivium.core.request import Item, ItemOwner
from trivium.testing.answers import TestAnswer
from trivium.testing.calls import CallableModels, TestHost
from trivium.testing.exchange import from_worker, to_worker
from trivium.testing.modules import in_folder, like_a_worker
from trivium.testing.opening import FoundHandler, find_handler
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.metrics import Measurements
from trivium.types.operations import Infer, ResponsePart, SequenceRef, WantedOutput
from trivium.types.payload import PayloadKind, Raw, RawForm, Scalar, Tensors
from trivium.types.running import Part
from trivium.types.spec import ModelSpec
from trivium.types.state import ItemState
from trivium_worker.dialects import adapter_of
from trivium_worker.runtime.adapter import Adapter, Setup
from trivium_worker.runtime.faults import failure_of, outcomes_of
from trivium_worker.runtime.life import words_of
from trivium_worker.wire import values

Body = bytes | str | list[Any] | dict[str, Any]
TIMEOUT = 60.0
"""Seconds for an answer that a handler gives from a thread of its own, or in steps."""


@contextmanager
def handler(
    path: str | PathLike[str],
    *,
    model: str = "",
    models: CallableModels | None = None,
    device: str = "cpu",
    engine_parameters: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> "Iterator[LoadedHandler]":
    """Load the handler at a path as a server would, and give it until the block ends.

    `path` is what `trivium serve` takes, with one model in it or the name of a `model`; `models` are functions that
    answer for other models; `device` is "cpu" or "cuda:N"; `engine_parameters` are those of --engine-parameters.
    Raises ServeError: NOT_FOUND, UNSUPPORTED for what is no handler, LOAD_FAILED with what the handler raised as its
    cause.
    """
    with tempfile.TemporaryDirectory(prefix="trivium-testing-") as scratch:
        found = find_handler(Path(fspath(path)), model, device, engine_parameters or {}, Path(scratch))
        told = json.loads(json.dumps(found.program.setup))
        handled = found.spec.handler
        assert handled is not None, "it was found so"
        folders = [
            *handled.path,
            found.spec.root,
            *([found.spec.root.parent] if told["dialect"] == "triton" else []),
        ]
        with like_a_worker(told["dialect"], folders, handled.environment):
            host = TestHost(found.spec.name, models or {}, found.program.words)
            with in_folder(found.program.directory):
                adapter = _loaded(told, host)
            loaded = LoadedHandler(found, adapter, host, timeout)
            try:
                yield loaded
            finally:
                loaded.close()


def _loaded(told: dict[str, Any], host: TestHost) -> Adapter:
    """Return the adapter. LOAD_FAILED in the words of a worker."""
    try:
        return adapter_of(told)(Setup(told), host)
    except SystemExit as error:
        raise ServeError(
            Code.LOAD_FAILED, f"The handler ended its process by SystemExit({error.code!r})."
        ) from error
    except values.Failure as error:
        raise ServeError(Code(error.code), error.message) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        trace = error.__traceback__  # whose first frame is this one, and nobody's who reads it
        error.__traceback__ = None if trace is None else trace.tb_next
        raise ServeError(Code.LOAD_FAILED, words_of(error)) from error


class LoadedHandler:
    """A handler in this process. `spec` is what a server knows of it; `metrics` are its steps of custom metrics.

    Every answer is a `TestAnswer`, an error as well: nothing is raised but what ends the process.
    """

    def __init__(self, found: FoundHandler, adapter: Adapter, host: TestHost, timeout: float) -> None:
        self.spec: ModelSpec = found.spec
        self.adapter = adapter
        self.metrics = host.metrics
        self._door = payload_adapter(self.spec, found.takes, answer_rules(self.spec, False))
        _, self._responses = answering(self.spec, self._door, monotonic, Measurements())
        self._exchange = InProcessExchange(adapter, host, self._responses, found.program.directory, timeout)
        self._numbers = iter(range(1, 2**62))

    @property
    def instance(self) -> Any:
        """Return the object, or the module, that is the handler's own, to look into it; None where there is none."""
        found = (getattr(self.adapter, name, None) for name in ("handler", "_model", "_module", "service"))
        return next((one for one in found if one is not None), None)

    def infer(self, arrays: Mapping[str, Array], **options: Any) -> TestAnswer:
        """Send tensors by name, as a client of the v2 protocol does, and return the answer in tensors.

        `options`: `outputs` by name, `parameters`, `request_id`, `priority`, `timeout` in seconds, and
        `sequence` as (id, starts, ends).
        """
        return self.infer_all([arrays], **options)[0]

    def infer_all(self, requests: Sequence[Mapping[str, Array]], **options: Any) -> list[TestAnswer]:
        """Send several requests at once: a handler that batches gets them together, up to its bounds."""
        return self.run([self._tensors(one, **options) for one in requests])

    def request(
        self,
        body: Body = b"",
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
        query: "Mapping[str, Any] | Sequence[tuple[str, Any]]" = (),
    ) -> TestAnswer:
        """Send a body, as a client of `/predictions/MODEL` does; what is neither bytes nor text is sent as JSON. A form
        is a body with the content type of one.
        """
        return self.run([self._body(body, content_type, headers or {}, query)])[0]

    def request_all(self, bodies: Sequence[Body], content_type: str = "") -> list[TestAnswer]:
        """Send several bodies at once: see `infer_all`."""
        return self.run([self._body(one, content_type, {}, ()) for one in bodies])

    def run(self, requests: Sequence[Infer]) -> list[TestAnswer]:
        """Run operations as they stand, at once, and return their answers in order."""
        kept: list[list[ResponsePart]] = [[] for _ in requests]
        items = []
        for infer, parts in zip(requests, kept, strict=True):
            item = Item(next(self._numbers), infer, parts.append, monotonic(), _NoOwner())
            try:
                self._door.admit(item)
            except ServeError as error:
                self._responses.end(item, frameless(error))
            else:
                items.append(item)
        for together in self._batches(items):
            self._exchange.run(together)
        accepts = [_accept(one) for one in requests]
        return [TestAnswer(parts, accept) for parts, accept in zip(kept, accepts, strict=True)]

    def close(self) -> None:
        """Have the handler clean up."""
        self._exchange.close()

    def _batches(self, items: Sequence[Item]) -> list[list[Item]]:
        """Return the items that run together, as a queue with all of them in it would be cut."""
        if self.adapter.in_flight or self.adapter.slots:
            return [list(items)] if items else []
        batching, found = self.spec.batching, list[list[Item]]()
        for item in items:
            last = found[-1] if found and batching.merge else []
            fits = last and sum(one.rows for one in last) + item.rows <= batching.max_rows
            if fits and item.shape_key == last[0].shape_key and not item.operation.alone:
                last.append(item)
            else:
                found.append([item])
        return found

    def _tensors(
        self,
        arrays: Mapping[str, Array],
        outputs: Sequence[str] = (),
        parameters: Mapping[str, Scalar] | None = None,
        request_id: str = "",
        **more: Any,
    ) -> Infer:
        sequence = more.pop("sequence", None)
        return Infer(
            self.spec.name,
            Tensors.of(arrays),
            id=request_id,
            outputs=tuple(WantedOutput(name) for name in outputs),
            parameters=parameters or {},
            priority=more.pop("priority", 0),
            deadline=more.pop("timeout", None),
            sequence=SequenceRef(*sequence) if sequence else None,
            wants=PayloadKind.TENSORS,
            **more,
        )

    def _body(
        self,
        body: Body,
        content_type: str,
        headers: Mapping[str, str],
        query: "Mapping[str, Any] | Sequence[tuple[str, Any]]",
    ) -> Infer:
        properties = {name.lower(): value for name, value in headers.items()}
        if isinstance(body, (list, dict)):
            body, content_type = json.dumps(body).encode(), content_type or "application/json"
        data = body.encode() if isinstance(body, str) else bytes(body)
        content_type = content_type or properties.get("content-type", "")
        if content_type:
            properties["content-type"] = content_type
        whole = forms.called_form(content_type, data)
        parts = (whole,) if whole is not None else forms.parts(content_type, data)
        pairs = query.items() if isinstance(query, Mapping) else query
        arguments = tuple((str(name), str(value)) for name, value in pairs)
        return Infer(self.spec.name, Raw(parts, properties, arguments, form=RawForm.SIGNED, whole=whole))


class InProcessExchange(values.Outlet):
    """Has an adapter run items, and hears what it sends, from whichever thread."""

    def __init__(
        self,
        adapter: Adapter,
        host: TestHost,
        responses: ResponseDispatcher,
        folder: Path | None,
        timeout: float,
    ) -> None:
        self._adapter = adapter
        self._host = host
        self._responses = responses
        self._folder = folder
        self._timeout = timeout
        self._items: dict[int, Item] = {}
        self._changed = threading.Condition()

    def run(self, items: Sequence[Item]) -> None:
        """Return when all have ended."""
        given = [to_worker(item, self) for item in items]
        self._items.update((item.item, item) for item in items)
        with in_folder(self._folder):
            if self._adapter.slots:
                self._step(given)
            elif self._adapter.in_flight:
                self._adapter.loop.run_until_complete(self._serve_all(given))
            else:
                self._run_batch(given)
        with self._changed:
            ended = self._changed.wait_for(lambda: all(map(_has_ended, items)), self._timeout)
        if not ended:
            words = f"The handler has not answered within {self._timeout:g} s: it has to end each request."
            for one in given:
                self.send(one, values.Failure(words), True)

    def close(self) -> None:
        """End the adapter, and its loop."""
        with in_folder(self._folder):
            self._adapter.close()
        if self._adapter.loop is not None:
            self._adapter.loop.close()
            asyncio.set_event_loop(None)

    def send(self, item: values.Item, outcome: Any, final: bool, parameters: Any = None) -> None:
        """See `Outlet`: there is always room."""
        final = final or outcome is values.END or isinstance(outcome, values.Failure)
        found, said = from_worker(item.number, outcome, parameters)
        with self._changed:
            known = self._items.get(item.number)
            if known is None or _has_ended(known):
                return
            error = found if isinstance(found, ServeError) else None
            payload = None if isinstance(found, ServeError) else found
            self._responses.part(known, Part(item.number, payload, error, final, said))
            if _has_ended(known):
                del self._items[item.number]
            self._changed.notify_all()

    def keep(self, item: values.Item, outcome: Any) -> None:
        """See `Outlet`."""
        self.send(item, outcome, False)

    def _run_batch(self, given: list[values.Item]) -> None:
        for item, outcome in zip(
            given, _guarded(lambda: outcomes_of(self._adapter, given), len(given)), strict=True
        ):
            if outcome is not None:
                self.send(item, outcome, True)

    async def _serve_all(self, given: list[values.Item]) -> None:
        await asyncio.gather(*map(self._serve, given))

    async def _serve(self, item: values.Item) -> None:
        async def send(payload: Any) -> None:
            self.send(item, payload, False)
            await asyncio.sleep(0)

        try:
            outcome: Any = await self._adapter.serve(item, send)
        except Exception as error:
            outcome = failure_of(error)
        if outcome is not None or item.number in self._items:
            self.send(item, values.END if outcome is None else outcome, True)

    def _step(self, given: list[values.Item]) -> None:
        ends = monotonic() + self._timeout
        waiting = list(given)
        try:
            while waiting or any(item.number in self._items for item in given):
                inside = sum(item.number in self._items for item in given) - len(waiting)
                while waiting and inside < self._adapter.slots:
                    inside += 1
                    self._add(waiting.pop(0))
                self._host.woken.clear()
                if monotonic() > ends:
                    return
                if self._adapter.step() is None and not waiting:
                    self._host.woken.wait(0.01)
        except Exception as error:
            failure = failure_of(error)
            self._adapter.reset()
            for item in given:
                self.send(item, failure, True)

    def _add(self, item: values.Item) -> None:
        try:
            self._adapter.add(item)
        except Exception as error:
            self.send(item, failure_of(error), True)


class _NoOwner(ItemOwner):
    """Nobody queues the items of a test, and nobody cancels them."""

    def cancel(self, item: Item, why: ServeError) -> None:
        """See `ItemOwner`."""

    def resume(self, item: Item) -> None:
        """See `ItemOwner`."""


def _guarded(run: Callable[[], list[Any]], count: int) -> list[Any]:
    """Return outcomes; what would end a worker's process ends the requests, as its death does."""
    try:
        return run()
    except SystemExit as error:
        words = f"The handler ended its process by SystemExit({error.code!r})."
        return [values.Failure(words, Code.WORKER_DIED.value)] * count


def _has_ended(item: Item) -> bool:
    return item.state is ItemState.ENDED


def _accept(infer: Infer) -> str:
    payload = infer.payload
    return payload.properties.get("accept", "") if isinstance(payload, Raw) else ""
