"""The handler dialect of DJL Serving: `handle(inputs)` in a file or module, with the package `djl_python`.

One call comes first without content, to initialise; then one per request, or per batch of them. What becomes of each
kind of result is the table of the spec sheet `djl`, section 8.5. `SystemExit` passes: it ends the worker.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trivium_worker.dialects.djl.entry import function_of, load_entry
from trivium_worker.dialects.djl.request import Shown, batched, initialisation, show, single
from trivium_worker.dialects.djl.result import batch_payloads, closing, content_type_of, formatted, whole
from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire.values import END, Failure, Item, Outcome, Part, Raw, anew, frameless

METHODS = ("predict", "explain")
"""What the handler itself answers."""

_DEGREES = ("tensor_parallel_degree", "pipeline_parallel_degree")
"""Options that every request brings."""

_NO_CONTENT = 204
_FAILED = 424
_OUT_OF_MEMORY = 507
_MEMORY = "out of memory"
_MEMORY_WORDS = ("CUDA error: out of memory", "No available memory for the cache blocks")


class DjlAdapter(Adapter):
    """One handler. Constructing it imports user code and makes the initialisation request."""

    def __init__(self, setup: Setup, host: Host) -> None:
        from djl_python.outputs import Output

        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
        self._output_type = Output
        self._name = setup.function or "handle"
        self._entry = setup.entry
        self._module = load_entry(setup.root, setup.entry)
        self._function = function_of(self._module, setup.entry, self._name, self.in_flight > 0)
        self._always = {
            "handler": self._name,
            "device_id": str(setup.device_id) if setup.device == "gpu" else "-1",
            "model_dir": setup.root,
        }
        properties = setup.settings.get("properties", {})
        self._always.update({key: str(properties[key]) for key in _DEGREES if key in properties})
        self._initialise(properties)

    def run(self, items: list[Item]) -> list[Outcome]:
        """An outcome per item; None for one that has ended by its own parts. One that names a function runs alone."""
        if len(items) == 1 and items[0].method in METHODS:
            only = guarded(show, items[0])
            return [self._run_one(items[0], only) if isinstance(only, Shown) else only]
        if any(item.method not in METHODS for item in items):
            return [guarded(self._run_named, item) for item in items]
        requests = [guarded(show, item) for item in items]
        good = [
            (item, shown) for item, shown in zip(items, requests, strict=False) if isinstance(shown, Shown)
        ]
        if len(good) == 1:
            answers = iter([self._run_one(*good[0])])
        else:
            answers = iter(self._run_batch(*zip(*good, strict=False)) if good else ())
        return [next(answers) if isinstance(shown, Shown) else shown for shown in requests]

    def close(self) -> None:
        """The dialect has no call for the end."""

    def _initialise(self, properties: dict[str, Any]) -> None:
        told = {key: str(value) for key, value in properties.items()}
        try:
            output = self._first(initialisation(self._name, dict(told, **self._always)))
        except Exception as error:
            failure = failure_of(error)
            if failure.code == _MEMORY:
                raise anew(failure) from error
            raise
        if output is None:
            return
        if not isinstance(output, self._output_type):
            raise Failure(_wrong_type(output, self._name), "load failed")
        output.execute_finalize()
        if int(output.code) >= 300:
            answer = whole(output)
            body = bytes(answer.parts[0].data).decode("utf-8", "replace") if answer.parts else ""
            text = f"{self._name} refused to start: {output.code} {output.message}. {body[:1000]}"
            raise Failure(text.strip(), _MEMORY if output.code == _OUT_OF_MEMORY else "load failed")

    def _first(self, inputs: Any) -> Any:
        """Return what the handler makes of the first call."""
        return self._function(inputs)

    def _run_named(self, item: Item) -> Outcome:
        """Call the function that an item names, in place of the handler if it names one."""
        name = item.method
        if name in METHODS:
            return self._run_one(item, show(item))
        function, inputs = self._named(item)
        return self._answered(item, self._call(inputs, function))

    def _named(self, item: Item) -> tuple[Callable[[Any], Any], Any]:
        """Return the function that an item names, and what it is called with. Raises Failure for none."""
        name = item.method
        try:
            function = function_of(self._module, self._entry, name, self.in_flight > 0)
        except Failure as error:
            raise Failure(error.message, "model failed", _FAILED) from None
        return function, single(show(item), name, dict(self._always, handler=name))

    def _call(self, inputs: Any, function: Callable[[Any], Any] | None = None) -> Any:
        """Return what the handler returned, an Output; else a Failure, or a Raw without content for None."""
        try:
            output = (function or self._function)(inputs)
        except Exception as error:
            return failure_of(error)
        return self._checked(output)

    def _checked(self, output: Any) -> Any:
        """Return the Output as it is; else a Failure, or a Raw without content for None."""
        if output is None:
            return Raw([], status=_NO_CONTENT, reason="No content")
        if not isinstance(output, self._output_type):
            return Failure(_wrong_type(output, self._name), "model failed", _FAILED)
        return output

    def _run_one(self, item: Item, shown: Shown) -> Outcome:
        return self._answered(item, self._call(single(shown, self._name, self._always)))

    def _answered(self, item: Item, output: Any) -> Outcome:
        if isinstance(output, (Failure, Raw)):
            return output
        if output.stream_content is not None:
            return self._stream(item, output)
        outcome = guarded(whole, output)
        return self._finished([item], [outcome], output)[0]

    def _run_batch(self, items: Sequence[Item], requests: Sequence[Shown]) -> list[Outcome]:
        output = self._call(batched(requests, self._name, self._always))
        if isinstance(output, (Failure, Raw)):
            return [output for _ in items]
        made = guarded(batch_payloads, output, len(items))
        outcomes = [made for _ in items] if isinstance(made, Failure) else list(made)
        return self._finished(items, outcomes, output)

    def _finished(self, items: Sequence[Item], outcomes: list[Outcome], output: Any) -> list[Outcome]:
        """Send the answers now if something is to be done when they are out."""
        if not output.has_finalizers():
            return outcomes
        for item, outcome in zip(items, outcomes, strict=False):
            item.send(outcome, final=True)
        output.execute_finalize()
        return [None for _ in items]

    def _stream(self, item: Item, output: Any) -> Outcome:
        """Piece by piece until the iterator ends, or nobody waits any more. What it raises is the last piece."""
        first = guarded(whole, output)
        if isinstance(first, Failure):
            return first
        pieces = output.stream_content
        kind = content_type_of(first.properties)
        has_begun = False
        with closing(pieces):
            for data in pieces_of(pieces, output.stream_output_formatter):
                if item.is_cancelled:
                    break
                if data:
                    part = Part(data, kind)
                    item.send(Raw([part]) if has_begun else opening(first, part))
                    has_begun = True
        outcome: Outcome = END if has_begun else opening(first, Part(b"", kind))
        return self._finished([item], [outcome], output)[0]


def opening(first: Raw, part: Part) -> Raw:
    """Return the first part of a streamed answer, which has its status and headers."""
    return Raw([part], first.properties, status=first.status, reason=first.reason)


def pieces_of(pieces: Any, formatter: Any) -> Iterator[bytes]:
    """Yield what an iterator of the handler yields, as bytes; what that raises is the last piece."""
    try:
        for piece in pieces:
            yield formatted(piece, formatter)
    except Exception as error:
        print_trace(error)
        yield words_of(error).encode("utf-8")


def guarded(make: Any, *arguments: Any) -> Any:
    """Return what a function makes of an answer, or a Failure where user code put together what cannot be sent."""
    try:
        return make(*arguments)
    except Failure as failure:
        return frameless(failure)
    except Exception as error:
        return failure_of(error)


def failure_of(error: Exception) -> Failure:
    """Return what user code raised, with its traceback on stderr; one item's or a batch's."""
    print_trace(error)
    if isinstance(error, Failure):
        return frameless(error)
    text = str(error)
    lacks_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if lacks_memory or any(words in text for words in _MEMORY_WORDS):
        return Failure(text or "the handler ran out of memory", _MEMORY, _OUT_OF_MEMORY)
    return Failure(words_of(error), "model failed", _FAILED)


def words_of(error: Exception) -> str:
    """Return what an exception says, or its name where it says nothing."""
    return str(error) or type(error).__name__


def _wrong_type(output: Any, name: str) -> str:
    if hasattr(output, "close") and hasattr(output, "cr_await"):
        output.close()
        return f"Invalid output type: coroutine. Set option.async_mode=true, or let {name} return an Output."
    return f"Invalid output type: {type(output).__name__}. {name} must return an Output, or None."
