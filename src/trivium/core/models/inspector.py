"""Asks engines what model files say, in processes of their own: a hostile file may crash such a one.

A probe is started by exec and answers one question after the other: a spec as JSON comes by its standard input, the
facts go back by its standard output, each behind its length. It serves models of one engine, which imports its library
once. What runs a model's own code answers that question alone. Which program a probe is, the composition root says;
what it runs is `answer_all`.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from trivium.codecs.spec_codec import decode, encode
from trivium.core.models.trials import compute_of, try_out
from trivium.core.workers.child_process import LINES_PER_SECOND, LONGEST
from trivium.machine.memory import FreeMemory
from trivium.machine.quiet_libraries import quieted
from trivium.types.errors import Code, ServeError, named
from trivium.types.interfaces import NO_GUARD, Engine, FindEngine, ProcessGuard, RunsFolderCode
from trivium.types.observing import last_words
from trivium.types.spec import Device, ModelFacts, ModelSpec

STDERR_LINES = 20
MOST_REPLY = 64 * 2**20
"""Bytes of an answer: the configuration that a handler completes may be large, but not larger."""

MOST_NOISE = 2**17
"""Bytes of what is printed meanwhile that are kept of the beginning, and as many of the end."""

MOST_QUESTIONS = 200
"""Of one probe: what libraries leave behind of each file adds up."""

IDLE_SECONDS = 2.0
"""That a probe waits for the next question: while a server starts, or a check goes on, but not much longer."""

_PIECE = 2**16
_SIZE = struct.Struct("<Q")
SHARE_OF_FREE = 0.8
"""Of the memory that is free when a trial begins: what takes more would take it from the models that serve."""

MOST_HELD = 2**30
"""Bytes that a probe may have held to be kept for the next question."""

_LOOKS = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SILENT = "gave no answer that can be read"


class InspectionRefused(msgspec.Struct, tag="refused"):
    """The engine could not tell."""

    code: Code
    message: str


class Inspected(msgspec.Struct, tag="told"):
    """The engine answered."""

    facts: ModelFacts


def request(spec: ModelSpec, *, tries: bool = False, computes: bool = False) -> bytes:
    """Write what the probe process gets on its standard input: the whole spec, and what to do about it."""
    return json.dumps({"spec": encode(spec), "tries": tries, "computes": computes}).encode()


def answer(question: bytes, find_engine: FindEngine) -> bytes:
    """Do what the probe process does: a `request` in, an `Inspected` or `InspectionRefused` out."""
    asked = json.loads(question)
    spec = decode(asked["spec"])
    try:
        engine = find_engine(spec)
        if asked["tries"]:
            try_out(engine, spec)
            return msgspec.json.encode(Inspected(ModelFacts((), (), batchable=False)))
        if asked["computes"]:
            remarks = compute_of(engine, spec)
            return msgspec.json.encode(Inspected(ModelFacts((), (), batchable=False, remarks=remarks)))
        return msgspec.json.encode(Inspected(engine.facts(spec)))
    except ServeError as error:
        return msgspec.json.encode(InspectionRefused(error.code, error.message))
    except Exception as error:
        return msgspec.json.encode(InspectionRefused(Code.LOAD_FAILED, f"{named(error)}"))


def answer_all(questions: BinaryIO, answers: BinaryIO, find_engine: FindEngine) -> None:
    """Do what the probe process does, until nobody asks any more."""
    while len(head := questions.read(_SIZE.size)) == _SIZE.size:
        reply = answer(questions.read(_SIZE.unpack(head)[0]), find_engine)
        answers.write(framed(reply))
        answers.flush()


def framed(message: bytes) -> bytes:
    """Return a message as it goes to a probe, and back: behind its length."""
    return _SIZE.pack(len(message)) + message


class ModelInspector:
    """Starts `command` where no probe of a model's engine is idle. Called on the loop; closed in the end."""

    def __init__(
        self, command: Sequence[str], guard: ProcessGuard = NO_GUARD, find_engine: FindEngine | None = None
    ) -> None:
        """`find_engine` tells which models run code of their own."""
        self._command = command
        self._guard = guard
        self._find_engine = find_engine
        self.hears: Callable[[ModelSpec, str], None] = lambda spec, line: None
        """Takes each line that code of a model's own has printed."""
        self._idle: defaultdict[str, list[_Probe]] = defaultdict(list)
        self._ends: set[asyncio.Task[None]] = set()

    async def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the model file says. LOAD_FAILED with the engine's words, or with how the probe died: only one
        that has answered nothing before has died of this model.
        """
        return await self._told(_Question(spec, request(spec), self._is_alone(spec)))

    async def try_model(self, spec: ModelSpec) -> None:
        """Have a probe open a complete model and run it once on zeros. Raises LOAD_FAILED where the probe does not
        survive that, within the start-up deadline, in most of the memory that is free now.
        """
        await self._opened(spec, request(replace(spec, translator=None), tries=True))

    async def compute(self, spec: ModelSpec) -> tuple[str, ...]:
        """Have a probe open a complete model, and return sentences about what computes it. Raises as `try_model`."""
        plain = replace(spec, translator=None)
        return (await self._opened(spec, request(plain, computes=True))).remarks

    async def _opened(self, spec: ModelSpec, text: bytes) -> ModelFacts:
        free = FreeMemory().read(with_gpus=False).get((Device.CPU, 0))
        most = None if free is None else int(free * SHARE_OF_FREE)
        return await self._told(_Question(spec, text, False, True, most))

    async def _told(self, question: "_Question") -> ModelFacts:
        idle = self._idle[question.spec.engine]
        probe = None if question.is_alone or not idle else idle.pop()
        try:
            if probe is not None:
                with contextlib.suppress(_Lost):
                    return await self._asked(probe, question)
            return await self._asked(await _Probe.started(self._command, self._guard), question)
        except _Lost as error:
            raise _lost(question, error.how, error.noise) from error

    async def close(self) -> None:
        """End the probes that are idle."""
        for probes in self._idle.values():
            while probes:
                await probes.pop().kill()
        if self._ends:
            await asyncio.wait(self._ends)

    def _is_alone(self, spec: ModelSpec) -> bool:
        engine = None if self._find_engine is None else self._find_engine(spec)
        return spec.handler is not None or (
            isinstance(engine, RunsFolderCode) and engine.runs_folder_code(spec)
        )

    async def _asked(self, probe: "_Probe", question: "_Question") -> ModelFacts:
        spec, is_alone = question.spec, question.is_alone
        seconds = spec.limits.startup_deadline
        try:
            async with asyncio.timeout(seconds), probe.bounded(question.most_bytes):
                reply = await probe.ask(question.text)
                if is_alone:
                    await probe.end()
            said = msgspec.json.decode(reply, type=Inspected | InspectionRefused)
        except BaseException as error:
            await probe.kill()
            if isinstance(error, TimeoutError):
                how = f"did not end in {seconds:g} s" if question.tries else f"told nothing in {seconds:g} s"
                raise _lost(question, how, b"") from error
            if isinstance(error, msgspec.MsgspecError):
                raise _Lost(_SILENT, bytes(probe.noise)) from error
            raise
        if is_alone:
            _print(spec, bytes(probe.noise), self.hears)
        elif probe.asked < MOST_QUESTIONS and probe.most_seen < MOST_HELD:
            self._keep(spec.engine, probe)
        else:
            self._kill_later(probe)
        if isinstance(said, InspectionRefused):
            raise ServeError(said.code, said.message)
        return said.facts

    def _keep(self, engine: str, probe: "_Probe") -> None:
        idle, asked = self._idle[engine], probe.asked
        idle.append(probe)

        def retire() -> None:
            if probe in idle and probe.asked == asked:
                idle.remove(probe)
                self._kill_later(probe)

        asyncio.get_running_loop().call_later(IDLE_SECONDS, retire)

    def _kill_later(self, probe: "_Probe") -> None:
        task = asyncio.ensure_future(probe.kill())
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


class _Question(NamedTuple):
    """Holds what a probe is asked of a model; a trial has a bound on its memory."""

    spec: ModelSpec
    text: bytes
    is_alone: bool
    tries: bool = False
    most_bytes: int | None = None


class _Lost(Exception):
    """Raised for a probe that has not answered: how it ended, and what it printed."""

    def __init__(self, how: str, noise: bytes) -> None:
        super().__init__(how)
        self.how = how
        self.noise = noise


class _Probe:
    """One process. It is killed with all that is in its session, and so with what a handler's interpreter runs in."""

    def __init__(
        self, process: asyncio.subprocess.Process, guard: ProcessGuard, environment: Mapping[str, str]
    ) -> None:
        assert process.stdin is not None, "the process was started with a pipe to it"
        assert process.stdout is not None, "the process was started with a pipe from it"
        assert process.stderr is not None, "the process was started with a pipe for what it prints"
        self._process, self._guard = process, guard
        self._questions, self._answers = process.stdin, process.stdout
        self._is_released = False
        self.noise = _Noise()
        """What it has printed since it was asked."""
        self._listening = asyncio.ensure_future(self.noise.hear(process.stderr))
        self.asked = 0
        self.most_seen = 0
        """The most memory that it was seen to hold."""
        guard.watch(process.pid, environment)

    @classmethod
    async def started(cls, command: Sequence[str], guard: ProcessGuard) -> "_Probe":
        """Start a probe. OSError where there is no room for one."""
        environment = guard.marked(quieted(os.environ))
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(process, guard, environment)

    async def ask(self, question: bytes) -> bytes:
        """Return its answer to one question. Raises _Lost where there is none that can be read."""
        self.asked += 1
        self.noise.clear()
        with contextlib.suppress(ConnectionError):  # it has ended; its status says how
            self._questions.write(framed(question))
            await self._questions.drain()
        try:
            (size,) = _SIZE.unpack(await self._answers.readexactly(_SIZE.size))
            if size <= MOST_REPLY:
                return await self._answers.readexactly(size)
        except asyncio.IncompleteReadError:
            await self._ended()
        raise _Lost(_SILENT, bytes(self.noise))

    @contextlib.asynccontextmanager
    async def bounded(self, most: int | None) -> AsyncIterator[None]:
        """Kill it where it holds more than so many bytes meanwhile. Raises _Lost, which says that."""
        if most is None:
            yield
            return
        watch = asyncio.ensure_future(self._watched(most))
        try:
            yield
        except _Lost as error:
            if watch.done():
                how = f"took more than {most >> 20} MiB of memory, and was ended"
                raise _Lost(how, error.noise) from error
            raise
        finally:
            watch.cancel()

    async def _watched(self, most: int) -> None:
        """End when it holds more, and with it the process."""
        while self.most_seen <= most:
            self.most_seen = max(self.most_seen, _resident(self._process.pid))
            await asyncio.sleep(_LOOKS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Ask nothing more, and wait until it has ended and all is heard that it and its children print. Raises _Lost
        where its status is none of success.
        """
        self._questions.close()
        await self._ended()
        self._release()

    async def _ended(self) -> None:
        await self._process.wait()
        await self._listening
        if self._process.returncode:
            raise _Lost(_how(self._process.returncode), bytes(self.noise))

    async def kill(self) -> None:
        """End it, however it stands."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        self._listening.cancel()
        self._questions.close()
        self._release()

    def _release(self) -> None:
        if not self._is_released:
            self._is_released = True
            self._guard.release(self._process.pid)


class _Noise:
    """The beginning and the end of what is printed, read all the time: whoever prints never waits."""

    def __init__(self) -> None:
        self._first, self._last, self._left_out = bytearray(), bytearray(), 0

    def clear(self) -> None:
        """Forget what was printed."""
        self._first, self._last, self._left_out = bytearray(), bytearray(), 0

    async def hear(self, pipe: asyncio.StreamReader) -> None:
        """Read to the end."""
        while piece := await pipe.read(_PIECE):
            room = MOST_NOISE - len(self._first)
            self._first += piece[:room]
            self._last += piece[room:]
            if len(self._last) > MOST_NOISE + _PIECE:
                self._left_out += len(self._last) - MOST_NOISE
                del self._last[:-MOST_NOISE]

    def __bytes__(self) -> bytes:
        marker = b"\n[%d bytes were left out]\n" % self._left_out if self._left_out else b""
        return bytes(self._first) + marker + bytes(self._last)


def can_tell(engine: Engine, spec: ModelSpec) -> bool:
    """Is it worth starting a process to ask the model file, or the handler?"""
    return engine.has_facts or (spec.handler is not None and spec.handler.completes)


def _print(spec: ModelSpec, noise: bytes, hears: Callable[[ModelSpec, str], None]) -> None:
    """Show what user code printed, as that of a worker is shown: a hundred lines, and how many more there were."""
    log = logging.getLogger(f"trivium.worker.{spec.name}")
    lines = noise.decode("utf-8", "replace").splitlines()
    for line in lines[:LINES_PER_SECOND]:
        log.info("completing: %s", line[:LONGEST])
        hears(spec, line[:LONGEST])
    if len(lines) > LINES_PER_SECOND:
        log.info("completing: %d lines more were not logged", len(lines) - LINES_PER_SECOND)


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    names = {number.value: number.name for number in signal.Signals}  # which lacks those of real time
    return f"was killed by {names.get(-status, f'signal {-status}')}"


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0  # it has ended, or the system tells nothing


def _lost(question: "_Question", how: str, noise: bytes) -> ServeError:
    spec = question.spec
    does = "tries" if question.tries else "reads"
    lines = noise.decode("utf-8", "replace").splitlines()[-STDERR_LINES:]
    return ServeError(
        Code.LOAD_FAILED,
        f"The process that {does} {spec.root / spec.entry} for model '{spec.name}' {how}; the file is "
        f"damaged, or engine '{spec.engine}' cannot {'run' if question.tries else 'read'} it.{last_words(lines)}",
    )
