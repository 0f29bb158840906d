"""Feeds a target with inputs and fails on the first that it neither reads nor refuses, or that costs too much.

Bounds are of processor time and of this process's memory, so that a machine with much else to do breaks none of them.
"""

import contextlib
import ctypes
import gc
import os
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.fuzz.target import Target

SAMPLE = 2_000
WHOLE = 10**6
"""Inputs for each target, of the end-to-end tests and of the soak; the environment's `FUZZ_INPUTS` goes before both."""

SHOWN_BYTES = 2048
_MOST_ARENAS = -8  # M_ARENA_MAX of glibc's malloc.h


def inputs(usual: int) -> int:
    """How many inputs each target gets."""
    return int(os.environ.get("FUZZ_INPUTS", usual))


@dataclass(frozen=True)
class Bounds:
    """`seconds` of processor time for one input, `room` bytes that the process may map beyond what it has, `growth`
    bytes by which it may have grown at the end, since `warm_up` inputs.
    """

    seconds: float = 2.0
    room: int = 2**30
    growth: int = 2**26
    warm_up: int = 500


@dataclass(frozen=True)
class FuzzReport:
    """What came of a run: inputs that were read and refused, processor seconds of all and of the slowest, growth."""

    target: str
    read: int
    refused: int
    seconds: float
    slowest: float
    slowest_index: int
    growth: int

    def __str__(self) -> str:
        count = self.read + self.refused
        return (
            f"{self.target}: {count} inputs, {self.read} read, {self.refused} refused, {self.seconds:.1f} s, "
            f"the slowest {self.slowest * 1000:.1f} ms (index {self.slowest_index}), "
            f"{self.growth / 2**20:+.1f} MiB"
        )


class FuzzFailure(AssertionError):
    """An input that broke its target, and how to see it again. `kind` is alike for alike faults."""

    def __init__(self, target: Target, seed: int, index: int, data: bytes, found: str, kind: str) -> None:
        shown = data[:SHOWN_BYTES].hex() + ("..." if len(data) > SHOWN_BYTES else "")
        super().__init__(
            f"target {target.name}, seed {seed}, index {index}: {found}\n"
            f"Its {len(data)} bytes in hex: {shown}\n"
            f"Again: python -m tests.fuzz --target {target.name} --seed {seed} --index {index}"
        )
        self.index = index
        self.kind = kind


class _TooLong(BaseException):
    """The processor time of one input is up. No parser catches it."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise _TooLong


@contextlib.contextmanager
def _bounded(bounds: Bounds) -> Iterator[None]:
    """Have an alarm at hand, and a limit on what may be mapped; no second arena, which would keep what it once had."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, 1)
    before = signal.signal(signal.SIGPROF, _ring)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_bytes_of("VmSize") + bounds.room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _bytes_of(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{field}:")[2].split()[0]) * 1024


def memory() -> int:
    """Bytes of this process that no file backs, less what its allocator keeps for later."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # another library of C has no such function
        ctypes.CDLL(None).malloc_trim(0)
    return _bytes_of("RssAnon")


def attempt(target: Target, seed: int, index: int, bounds: Bounds) -> tuple[bool, float]:
    """Try one input: whether it was read, and its processor seconds. Raises FuzzFailure."""
    data, chance = target.input(seed, index)
    began = time.process_time()
    is_read = False
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, bounds.seconds)
            target.read(data, chance)
            is_read = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except target.refusals:
        pass
    except _TooLong as error:
        found = f"it took more than {bounds.seconds} s of processor time"
        raise _failure(target, seed, index, data, found, error) from error
    except Exception as error:
        found = f"it raised {type(error).__name__}: {str(error)[:500]}"
        raise _failure(target, seed, index, data, found, error) from error
    spent = time.process_time() - began
    if spent > bounds.seconds:  # in one call that no signal interrupts
        raise FuzzFailure(target, seed, index, data, f"it took {spent:.1f} s of processor time", "slow")
    return is_read, spent


def _failure(
    target: Target, seed: int, index: int, data: bytes, found: str, error: BaseException
) -> FuzzFailure:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/src/" in frame.filename] or list(frames)
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return FuzzFailure(target, seed, index, data, f"{found} at {place}", f"{type(error).__name__} {place}")


def run(target: Target, seed: int, count: int, begin: int = 0, bounds: Bounds | None = None) -> FuzzReport:
    """Try inputs `begin` to `begin + count`. Raises FuzzFailure at the first that fails, or where memory has grown."""
    bounds = bounds or Bounds()
    read = slowest_index = 0
    slowest = total = 0.0
    at_first = None
    with _bounded(bounds):
        for index in range(begin, begin + count):
            if index == begin + bounds.warm_up:
                at_first = memory()
            is_read, spent = attempt(target, seed, index, bounds)
            read += is_read
            total += spent
            if spent > slowest:
                slowest, slowest_index = spent, index
        growth = 0 if at_first is None else memory() - at_first
    if growth > bounds.growth:
        last = begin + count - 1
        data, _ = target.input(seed, last)
        found = f"with {count} inputs the process has grown by {growth} bytes, at most {bounds.growth}"
        raise FuzzFailure(target, seed, last, data, found, "growth")
    return FuzzReport(target.name, read, count - read, total, slowest, slowest_index, growth)
