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
from collections.abc import Mapping, Sequence

import msgspec

from trivium.codecs.spec_codec import decode, encode
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import NO_GUARD, Engine, ProcessGuard
from trivium.types.spec import ModelFacts, ModelSpec

STDERR_LINES = 20


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


def answer(question: bytes, engines: Mapping[str, Engine]) -> bytes:
    """Do what the probe process does: a `request` in, an `Inspected` or `InspectionRefused` out."""
    spec = decode(json.loads(question))
    try:
        return msgspec.json.encode(Inspected(engines[spec.engine].facts(spec)))
    except ServeError as error:
        return msgspec.json.encode(InspectionRefused(error.code, error.message))
    except Exception as error:
        return msgspec.json.encode(InspectionRefused(Code.LOAD_FAILED, f"{type(error).__name__}: {error}"))


class ModelInspector:
    """Starts `command` once per question. Called on the loop."""

    def __init__(self, command: Sequence[str], guard: ProcessGuard = NO_GUARD) -> None:
        self._command = command
        self._guard = guard

    async def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the model file says. LOAD_FAILED with the engine's words, or with how the probe died."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._guard.watch(process.pid)
        try:
            reply, noise = await asyncio.wait_for(
                process.communicate(request(spec)), spec.limits.startup_deadline
            )
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


def _print(model: str, noise: bytes) -> None:
    """Show what user code printed, as that of a worker is shown."""
    for line in noise.decode("utf-8", "replace").splitlines():
        logging.getLogger(f"trivium.worker.{model}").info("completing: %s", line)


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    names = {number.value: number.name for number in signal.Signals}  # which lacks those of real time
    return f"was killed by {names.get(-status, f'signal {-status}')}"


def _lost(spec: ModelSpec, how: str, noise: bytes) -> ServeError:
    lines = noise.decode("utf-8", "replace").splitlines()[-STDERR_LINES:]
    said = f" Its last words: {' / '.join(lines)}" if lines else ""
    return ServeError(
        Code.LOAD_FAILED,
        f"The process that reads {spec.root / spec.entry} for model '{spec.name}' {how}; the file is "
        f"damaged, or engine '{spec.engine}' cannot read it.{said}",
    )
