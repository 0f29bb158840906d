"""DJL's rolling batch: the handler is called again and again with all requests that have not ended, in one Input.

Source: spec sheet `djl`, sections 8.4 and 11.3, and the original's RollingBatch. A request's properties and content
come with its first step; afterwards its data are empty. The answer has an item per request, in order, as
`Output.binary_encode` writes it: data, last, and code and error where it has failed.
"""

import json
import random
from typing import Any

from trivium_worker.dialects.djl.handler import METHODS, DjlAdapter, guarded
from trivium_worker.dialects.djl.request import Shown, batched, show
from trivium_worker.dialects.djl.result import content_type_of, item_of
from trivium_worker.runtime.adapter import Host, Setup, Step
from trivium_worker.wire.values import END, Failure, Item, Part, Raw, frameless

_FAILED = 424
_BATCH_FAILED = "Batch inference failed"


class _Running:
    """One request that has not ended. `shown` is what its next step shows."""

    def __init__(self, item: Item, shown: Shown) -> None:
        self.item = item
        self.shown = shown
        self.has_begun = False
        self.steps = 0
        self.properties: dict[str, str] = {}


class RollingDjlAdapter(DjlAdapter):
    """One handler with a rolling batch of `slots` requests at most."""

    def __init__(self, setup: Setup, host: Host) -> None:
        super().__init__(setup, host)
        self.slots = int(setup.settings["slots"])
        self._running: dict[int, _Running] = {}
        self._has_failed = False

    def add(self, item: Item) -> None:
        """See `Adapter`. One that names a function of its own is answered at once."""
        if item.method not in METHODS:
            item.send(guarded(self._run_named, item), final=True)
            return
        shown = show(item)
        shown.pairs.append(("seed", bytearray(b"%d" % random.getrandbits(31))))
        item.payload = Raw([])  # the handler has copies: what the request lay in is free
        self._running[item.number] = _Running(item, shown)

    def step(self) -> Step | None:
        """Call the handler. What it raises, a status above 200 or a wrong number of items is the end of all."""
        running = list(self._running.values())
        if not running:
            return None
        always = dict(self._always)
        if self._has_failed:
            always["reset_rollingbatch"] = "true"
            self._has_failed = False
        output = self._call(batched([each.shown for each in running], self._name, always))
        for each in running:
            each.shown = Shown({}, [("data", bytearray())])
            each.steps += 1
        if isinstance(output, (Failure, Raw)) or int(output.code) != 200:
            self._fail(_failure_of(output))
            return Step(len(running))
        values = output.content.get_values()
        if len(values) != len(running):
            text = f"Batch output size mismatch, expected: {len(running)}, actual: {len(values)}"
            self._fail(Failure(text, "model failed", _FAILED))
            return Step(len(running))
        said = {str(key): str(value) for key, value in output.properties.items()}
        for index, (each, value) in enumerate(zip(running, values, strict=False)):
            self._answer(each, value, _own(said, index))
        output.execute_finalize()
        return Step(len(running), share=len(self._running) / self.slots)

    def abort(self, item: Item) -> int:
        """See `Adapter`. The handler does not see it again."""
        running = self._running.pop(item.number, None)
        return 0 if running is None else running.steps

    def reset(self) -> None:
        """See `Adapter`."""
        self._running.clear()
        self._has_failed = True

    def _answer(self, running: _Running, value: Any, properties: dict[str, str]) -> None:
        """Send what one step made of one request."""
        running.properties.update(properties)
        try:
            texts = item_of(value)
        except Failure as failure:
            self._end(running, frameless(failure))
            return
        if "code" in texts:
            self._end(running, _refusal(texts))
            return
        data = texts.get("data", "").encode("utf-8")
        is_last = texts.get("last", "").lower() == "true"
        if is_last:
            del self._running[running.item.number]
            running.item.send(_piece(running, data) if data or not running.has_begun else END, final=True)
        elif data:
            running.item.offer(_piece(running, data))
            running.has_begun = True

    def _end(self, running: _Running, failure: Failure) -> None:
        """End a request that failed: by a status, or, behind its first piece, by a last one that says so."""
        del self._running[running.item.number]
        if not running.has_begun:
            running.item.send(failure, final=True)
            return
        told = {"code": failure.status or _FAILED, "error": failure.message}
        running.item.send(_piece(running, json.dumps(told, ensure_ascii=False).encode("utf-8")), final=True)

    def _fail(self, failure: Failure) -> None:
        """End all of them, and have the handler begin anew with the next step."""
        for each in list(self._running.values()):
            self._end(each, failure)
        self._has_failed = True


def _piece(running: _Running, data: bytes) -> Raw:
    """Return a piece of an answer: the first one has the headers."""
    part = Part(data, content_type_of(running.properties))
    return Raw([part]) if running.has_begun else Raw([part], dict(running.properties), status=200)


def _failure_of(output: Any) -> Failure:
    if isinstance(output, Failure):
        return output
    if isinstance(output, Raw):
        return Failure(f"{_BATCH_FAILED}: the handler returned None for requests.", "model failed", _FAILED)
    code = int(output.code)
    text = f"{_BATCH_FAILED}: {output.message or 'the handler gave no reason'}"
    return Failure(text, "model failed", code if 400 <= code <= 599 else _FAILED)


def _refusal(texts: dict[str, str]) -> Failure:
    try:
        code = int(texts["code"])
    except ValueError:
        code = _FAILED
    return Failure(
        texts.get("error") or _BATCH_FAILED, "model failed", code if 400 <= code <= 599 else _FAILED
    )


def _own(properties: dict[str, str], index: int) -> dict[str, str]:
    """Return the headers that an Output has for one request of the batch."""
    prefix = f"batch_{index}_"
    return {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
