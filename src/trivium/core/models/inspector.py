"""Asks an engine what a model file says, in a process of its own: a hostile file may crash that one.

Started by exec; the spec goes in by standard input as JSON, the facts come back by standard output. Which
program that is, the composition root says; what it runs is `answer`.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Sequence

import msgspec

from trivium.codecs.spec_codec import decode, encode
from trivium.core.workers.child_process import LINES_PER_SECOND, LONGEST, last_words
from trivium.types.errors import Code, ServeError, named
from trivium.types.interfaces import NO_GUARD, Engine, FindEngine, ProcessGuard
from trivium.types.spec import ModelFacts, ModelSpec

STDERR_LINES = 20
MOST_REPLY = 64 * 2**20
"""Bytes of an answer: the configuration that a handler completes may be large, but not larger."""

MOST_NOISE = 2**17
"""Bytes of what is printed meanwhile that are kept of the beginning, and as many of the end."""

_PIECE = 2**16


class InspectionRefused(msgspec.Struct, tag="refused"):
    """The engine could not tell."""

    code: Code
    message: str


class Inspected(msgspec.Struct, tag="told"):
    """The engine answered."""

    facts: ModelFacts


def request(spec: ModelSpec) -> bytes:
    """Write what the probe process gets on its standard input: the whole spec."""
    return json.dumps(encode(spec)).encode()


def answer(question: bytes, find_engine: FindEngine) -> bytes:
    """Do what the probe process does: a `request` in, an `Inspected` or `InspectionRefused` out."""
    spec = decode(json.loads(question))
    try:
        return msgspec.json.encode(Inspected(find_engine(spec).facts(spec)))
    except ServeError as error:
        return msgspec.json.encode(InspectionRefused(error.code, error.message))
    except Exception as error:
        return msgspec.json.encode(InspectionRefused(Code.LOAD_FAILED, f"{named(error)}"))


class ModelInspector:
    """Starts `command` once per question. Called on the loop."""

    def __init__(self, command: Sequence[str], guard: ProcessGuard = NO_GUARD) -> None:
        self._command = command
        self._guard = guard

    async def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the model file says. LOAD_FAILED with the engine's words, or with how the probe died."""
        environment = self._guard.marked(os.environ)
        process = await asyncio.create_subprocess_exec(
            *self._command,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._guard.watch(process.pid, environment)
        try:
            async with asyncio.timeout(spec.limits.startup_deadline):
                reply, noise = await _communicate(process, request(spec))
        except BaseException as error:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with what a handler's interpreter runs in
                await process.wait()
            if isinstance(error, TimeoutError):
                raise _lost(spec, f"told nothing in {spec.limits.startup_deadline:g} s", b"") from error
            raise
        finally:
            self._guard.release(process.pid)
        if process.returncode:
            raise _lost(spec, _how(process.returncode), noise)
        try:
            said = msgspec.json.decode(reply, type=Inspected | InspectionRefused)
        except msgspec.MsgspecError as error:
            raise _lost(spec, "gave no answer that can be read", noise) from error
        if spec.handler is not None:
            _print(spec.name, noise)
        if isinstance(said, InspectionRefused):
            raise ServeError(said.code, said.message)
        return said.facts


def can_tell(engine: Engine, spec: ModelSpec) -> bool:
    """Is it worth starting a process to ask the model file, or the handler?"""
    return engine.has_facts or (spec.handler is not None and spec.handler.completes)


async def _communicate(process: asyncio.subprocess.Process, question: bytes) -> tuple[bytes, bytes]:
    """Do what `process.communicate` does, which would hold all that user code prints. Of an answer that is too long
    the beginning is returned, which nobody can read.
    """
    assert process.stdin is not None, "the process was started with a pipe to it"
    assert process.stdout is not None, "the process was started with a pipe from it"
    assert process.stderr is not None, "the process was started with a pipe for what it prints"
    _, reply, noise = await asyncio.gather(
        _give(process.stdin, question),
        _bounded(process.stdout, MOST_REPLY, 0),
        _bounded(process.stderr, MOST_NOISE, MOST_NOISE),
    )
    await process.wait()
    return reply, noise


async def _give(pipe: asyncio.StreamWriter, question: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # it has ended; its status says how
        pipe.write(question)
        await pipe.drain()
    pipe.close()


async def _bounded(pipe: asyncio.StreamReader, most: int, last: int) -> bytes:
    """Read to the end, and return the first `most` bytes and the `last` bytes of the rest."""
    kept, end, left_out = bytearray(), b"", 0
    while piece := await pipe.read(_PIECE):
        room = most - len(kept)
        kept += piece[:room]
        end += piece[room:]
        if len(end) > last + _PIECE:
            left_out += len(end) - last
            end = end[-last:] if last else b""
    marker = b"\n[%d bytes were left out]\n" % left_out if left_out and last else b""
    return bytes(kept) + marker + end


def _print(model: str, noise: bytes) -> None:
    """Show what user code printed, as that of a worker is shown: a hundred lines, and how many more there were."""
    log = logging.getLogger(f"trivium.worker.{model}")
    lines = noise.decode("utf-8", "replace").splitlines()
    for line in lines[:LINES_PER_SECOND]:
        log.info("completing: %s", line[:LONGEST])
    if len(lines) > LINES_PER_SECOND:
        log.info("completing: %d lines more were not logged", len(lines) - LINES_PER_SECOND)


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    names = {number.value: number.name for number in signal.Signals}  # which lacks those of real time
    return f"was killed by {names.get(-status, f'signal {-status}')}"


def _lost(spec: ModelSpec, how: str, noise: bytes) -> ServeError:
    lines = noise.decode("utf-8", "replace").splitlines()[-STDERR_LINES:]
    return ServeError(
        Code.LOAD_FAILED,
        f"The process that reads {spec.root / spec.entry} for model '{spec.name}' {how}; the file is "
        f"damaged, or engine '{spec.engine}' cannot read it.{last_words(lines)}",
    )
