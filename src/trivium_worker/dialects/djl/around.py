"""Functions of a model.py around DJL's own engine: what they make of a request is asked of the language model.

User code runs on one event loop, one call at a time; the calls of the model wait in threads, so that many requests are
in work at once. The model's tokens, or its answer, go to the output formatter as they come. Source: spec sheet `djl`,
section 11.6.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import sys
import traceback
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trivium_worker.dialects.djl.engine_answers import PassingOn, unpack_as, writer_for
from trivium_worker.dialects.djl.engine_requests import InputForm, LazyTokenizer, Question, input_form
from trivium_worker.dialects.djl.entry import load_entry
from trivium_worker.dialects.djl.request import show, single
from trivium_worker.runtime.adapter import Adapter, Answer, Call, Host, Send, Setup
from trivium_worker.runtime.tasks import on_own_loop
from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire.values import END, Failure, Item, Outcome, Part, Raw, frameless

_FAILED = 424
_MARKS = {"input_formatter": "is_input_formatter", "output_formatter": "is_output_formatter"}


class AroundEngineAdapter(Adapter):
    """The functions of one model.py. Constructing it imports user code."""

    def __init__(self, setup: Setup, host: Host) -> None:
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
        engine = setup.settings["engine"]
        with on_own_loop(self, setup):
            self._module = load_entry(setup.root, setup.entry)
            read = self._found(engine["named"], "input_formatter")
            self._write = self._found(engine["named"], "output_formatter")
        unpack_as(self._module)
        properties = {key: str(value) for key, value in setup.settings.get("properties", {}).items()}
        self._form: InputForm = input_form(
            read, bool(engine["asynchronous"]), properties, LazyTokenizer(engine["weights"])
        )
        self._tgi = properties.get("tgi_compat", "").lower() == "true"
        self._host = host
        self._engine: str = engine["name"]
        self._root = setup.root
        self._always = {"handler": "handle", "device_id": "-1", "model_dir": setup.root}
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(self.in_flight, "trivium-engine")

    async def serve(self, item: Item, send: Send) -> Outcome:
        """See `Adapter`."""
        try:
            inputs = single(show(item), "handle", self._always)
        except Failure as failure:
            return frameless(failure)
        item.payload = Raw([])  # the functions have copies: what the request lay in is free
        try:
            question = self._form.asked(inputs, next(self._numbers))
            question.is_tgi = self._tgi
            writer = writer_for(question, self._write)
        except Exception as error:
            return fault("input", error, self._root)
        return await self._answered(item, question, writer, send)

    def close(self) -> None:
        """See `Adapter`."""
        self._threads.shutdown(wait=False)

    async def _answered(self, item: Item, question: Question, writer: PassingOn, send: Send) -> Outcome:
        """Ask the model, and send what the output formatter makes of each part of its answer."""
        has_begun = False
        body = Raw([Part(writer.body(question), "application/json")], {"answer": writer.answer})
        call = Call(self._engine, "", body, form=True)
        try:
            async with contextlib.aclosing(self._parts(item, call)) as answers:
                async for answer in answers:
                    data = writer.written(answer)
                    if data:
                        await send(Raw([Part(data, writer.kind)], status=0 if has_begun else 200))
                        has_begun = True
        except EngineFailure as why:
            if not has_begun:
                return why.failure if why.failure.status is None else _refusal(why.failure)
            return self._broken_off(writer, why.failure)
        except Exception as error:
            failed = fault("output", error, self._root)
            return Raw([Part(failed.parts[0].data)]) if has_begun else failed
        return END if has_begun else Raw([Part(b"", writer.kind)], status=200)

    def _broken_off(self, writer: PassingOn, failure: Failure) -> Outcome:
        """Return the last piece of an answer that the model could not end."""
        try:
            data = writer.failed(failure.message)
        except Exception as error:
            return Raw([Part(fault("output", error, self._root).parts[0].data)])
        return Raw([Part(data or _body(failure), writer.kind)])

    async def _parts(self, item: Item, call: Call) -> AsyncGenerator[Answer, None]:
        """Yield the parts of the model's answer, each waited for in a thread."""
        wait = asyncio.get_running_loop().run_in_executor
        answers: Any = None
        try:
            answers = await wait(self._threads, self._host.call, item, call)
            while (answer := await wait(self._threads, next, answers, None)) is not None:
                yield answer
        except Failure as failure:
            raise EngineFailure(frameless(failure)) from None
        finally:
            if answers is not None:
                answers.close()

    def _found(self, named: dict[str, str], what: str) -> Callable[..., Any] | None:
        """Return the function that an option names, or the first in the alphabet that is decorated so."""
        if what in named:
            function: Callable[..., Any] = getattr(self._module, named[what])
            return function
        for name in dir(self._module):
            found = getattr(self._module, name)
            if callable(found) and getattr(found, _MARKS[what], False) is True:
                decorated: Callable[..., Any] = found
                return decorated
        return None


class EngineFailure(Exception):
    """Says that the call of the language model failed: no fault of user code."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def fault(which: str, error: Exception, root: str) -> Raw:
    """Return what a function raised, with its place in the folder; the trace is printed."""
    print_trace(error)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(root)]
    place = ""
    if frames:
        file = frames[-1].filename[len(root) :].lstrip("/")
        place = f" ({file}, line {frames[-1].lineno})"
    text = error.message if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
    return _refusal(Failure(f"Custom {which} formatter failed: {text}{place}", "model failed", _FAILED))


def _refusal(failure: Failure) -> Raw:
    """Return an error in the form that LMI's clients know."""
    status = failure.status or _FAILED
    return Raw([Part(_body(failure), "application/json")], {"Content-Type": "application/json"}, (), status)


def _body(failure: Failure) -> bytes:
    told = {"code": failure.status or _FAILED, "error": failure.message}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
