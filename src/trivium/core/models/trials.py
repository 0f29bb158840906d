"""Tries a model's file in a process of its own before an instance opens it in the server's: what the trial does not
survive, the server never opens.

A trial opens the file and runs the model once on zeros, within bounds of time and memory. That made-up input raises an
ordinary error is no fault of a file. What has passed is known by its content: a file that was replaced is tried anew.
"""

import asyncio
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from trivium.codecs.synthetic import synthetic_tensor
from trivium.core.execution import execute
from trivium.files import open_file
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Engine, OpensRunner, TellsCompute, default_isolation
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Device, Isolation, ModelSpec, TensorSpec
from trivium.types.warmups import SyntheticFill, WarmupInput

MOST_KEPT = 4096
"""Contents that are known to have passed."""

MOST_FILES = 10_000
"""Of a model that is a folder."""

_PIECE = 2**20
_OPEN_SIZE = 1
"""What stands for a size that the model leaves open."""

Try = Callable[[ModelSpec], Awaitable[None]]
"""Has a process try a model. Raises LOAD_FAILED with how that process ended."""


def try_out(engine: Engine, spec: ModelSpec) -> None:
    """Open a model and run it once on zeros: what a process does that tries it. What it raises is for the instance to
    say, which opens the same file: only the end of the process, its time and its memory count.
    """
    assert isinstance(engine, OpensRunner), "instances of it run in threads"
    with suppress(Exception):
        runner = engine.open(spec, Placement(f"{spec.name}_trial", Isolation.PROCESS, Device.CPU))
        try:
            if not any(tensor.open for tensor in spec.inputs):
                execute(runner, _zeros(spec))
        finally:
            runner.close()


def compute_of(engine: Engine, spec: ModelSpec) -> tuple[str, ...]:
    """Return what computes a model, a sentence for each kind of device that it has instances on; none where the engine
    cannot tell. Opens the model: called in a process that may end of it.
    """
    if not isinstance(engine, TellsCompute):
        return ()
    sentences: list[str] = []
    devices = {group.device: next(iter(group.device_ids), 0) for group in reversed(spec.groups)}
    for device, number in devices.items():
        placement = Placement(f"{spec.name}_check", Isolation.PROCESS, device, number)
        try:
            sentences.append(engine.compute(spec, placement))
        except ServeError as error:
            sentences.append(f"compute: cannot be told: {error.message}")
    return tuple(sentences)


class Trials:
    """Knows which contents have passed. Used on the loop only; `executor` has the threads that read files."""

    def __init__(self, try_model: Try, executor: Executor) -> None:
        self._try = try_model
        self._executor = executor
        self._passed: OrderedDict[bytes, None] = OrderedDict()
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def try_here(self, engine: Engine, spec: ModelSpec) -> None:
        """Try what would be opened in this process; of what runs in others nothing is asked. Raises as `passed`."""
        own = default_isolation(engine, spec)
        if any((group.isolation or own) is not Isolation.PROCESS for group in spec.groups):
            await self.passed(engine, spec)

    async def passed(self, engine: Engine, spec: ModelSpec) -> None:
        """Return once this content has passed. Raises LOAD_FAILED where it does not, or changes meanwhile."""
        if not engine.has_facts or not (spec.root / spec.entry).exists():
            return  # it opens no file of the model's, or says itself that there is none
        content = await self._content(spec)
        turn = self._turns.setdefault(content, asyncio.Lock())
        async with turn:  # of instances that open at once the first tries it
            if content in self._passed:
                self._passed.move_to_end(content)
            else:
                await self._tried(content, spec)

    async def _content(self, spec: ModelSpec) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._executor, content_of, spec)

    async def _tried(self, content: bytes, spec: ModelSpec) -> None:
        await self._try(spec)
        if await self._content(spec) != content:
            raise ServeError(
                Code.LOAD_FAILED,
                f"{spec.root / spec.entry} changed while model '{spec.name}' was loaded from it. Put files in their "
                "place by renaming them, and load the model again.",
            )
        self._passed[content] = None
        while len(self._passed) > MOST_KEPT:
            self._passed.popitem(last=False)


def content_of(spec: ModelSpec) -> bytes:
    """Return a digest of all that an engine opens: the files, by their bytes, and what is asked of them. Blocking.
    Raises LOAD_FAILED where they cannot be read.
    """
    digest = hashlib.blake2b(digest_size=32)
    digest.update(repr((spec.engine, spec.entry, sorted(spec.parameters.items()))).encode())
    try:
        for path in _files(spec.root / spec.entry):
            digest.update(os.fsencode(path.name) + b"\0")
            with open_file(path) as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
    except OSError as error:
        words = f"Model '{spec.name}': {spec.root / spec.entry} cannot be read: {error.strerror}."
        raise ServeError(Code.LOAD_FAILED, words) from error
    return digest.digest()


def _files(entry: Path) -> Iterator[Path]:
    """Give the files of a model: all of a folder, or a file and those that share its name up to the dot."""
    if not entry.is_dir():
        beside = sorted(
            path for path in entry.parent.iterdir() if path == entry or path.name.startswith(f"{entry.stem}.")
        )
        yield from (path for path in beside if stat.S_ISREG(path.stat().st_mode))
        return
    count = 0
    for folder, folders, names in os.walk(entry):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if stat.S_ISREG(path.stat().st_mode):
                yield path
                count += 1
                if count == MOST_FILES:
                    return


def _zeros(spec: ModelSpec) -> Batch:
    rows = 1 if spec.batching.batch_axis else 0
    tensors = tuple(synthetic_tensor(_zero(tensor), rows, "trial", b"") for tensor in spec.inputs)
    infer = Infer(model=spec.name, version=spec.version, payload=Tensors(tensors), id="trial")
    return Batch([0], [infer], [1])


def _zero(tensor: TensorSpec) -> WarmupInput:
    dims = tuple(
        _OPEN_SIZE if dim < 0 else dim for dim in (tensor.dims if tensor.inner is None else tensor.inner)
    )
    return WarmupInput(tensor.name, tensor.datatype, dims, SyntheticFill.ZERO)
