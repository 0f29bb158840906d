"""Judges what was found of a machine: good, worth a word, or broken, each with what to do. Pure.

Broken is what keeps a server from starting, or a library that is installed from being imported. What only bounds
performance, or some models, is worth a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from trivium.machine.allowance_policy import GroupAllowance, whole_processors


class MachineVerdict(Enum):
    """Says how something is."""

    GOOD = "good"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding: what was looked at, how it is, what was found, and what mends it, where something does."""

    what: str
    verdict: MachineVerdict
    found: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """A library by its module: what of ours needs it, the extra that brings it, and whether nothing goes without."""

    module: str
    needed_by: str
    extra: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """Tells how an import in a process of its own ended: its version, or why there is none; of PyTorch also whether it
    sees CUDA ("yes" or "no").
    """

    version: str = ""
    cuda: str = ""
    fault: str = ""
    signal: str = ""
    is_late: bool = False


LEAST_PYTHON = (3, 11)
CONNECTIONS = 4096
"""As many a server takes by default, each of which is a descriptor."""

_DESCRIPTORS_BESIDE = 256
_SMALL_SHM = 64 * 2**20
"""What a container has by default."""
_SMALL_SCRATCH = 2**30
_SMALL_MEMORY = 2**30
_MB, _GB = 2**20, 2**30


def judge_python(version: Sequence[int], is_64_bit: bool) -> Diagnosis:
    """Judge the interpreter."""
    shown = ".".join(map(str, version[:3]))
    if tuple(version[:2]) < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        return _broken("Python", shown, f"Install Trivium under Python {least} or newer.")
    if not is_64_bit:
        return _broken(
            "Python", f"{shown}, of 32 bits", "Install one of 64 bits: engines have no other packages."
        )
    return Diagnosis("Python", MachineVerdict.GOOD, shown)


def judge_library(library: Library, result: Imported | None, install: str) -> Diagnosis:
    """Judge a library that was imported in a process of its own; None for one that is not installed."""
    if result is None:
        if library.is_required:
            return _broken(library.module, "not installed", f"Install it: {install}")
        return Diagnosis(
            library.module, MachineVerdict.GOOD, f"not installed (for {library.needed_by})", install
        )
    if result.is_late:
        return _broken(
            library.module,
            "its import did not end in time",
            "Import it by hand to see where it hangs; a slow disk or a driver that does not answer may be why.",
        )
    if result.signal:
        return _broken(
            library.module,
            f"its import ended the process by {result.signal}",
            "Install a build for this processor and this system; SIGILL is an instruction that the processor lacks."
            f" Install it anew: {install}",
        )
    if result.fault:
        return _broken(library.module, f"cannot be imported: {result.fault}", f"Install it anew: {install}")
    return Diagnosis(library.module, MachineVerdict.GOOD, result.version or "imported")


def judge_descriptors(soft: int, hard: int, connections: int = CONNECTIONS) -> Diagnosis:
    """Judge how many descriptors there may be (-1: any number). A server raises the soft limit to the hard one by
    itself.
    """
    most = "any number" if hard < 0 else str(hard)
    found = f"{'any number' if soft < 0 else soft}, at most {most} (ulimit -n; a server takes all)"
    if 0 <= hard < connections + _DESCRIPTORS_BESIDE:
        return Diagnosis(
            "descriptors",
            MachineVerdict.NOTE,
            found,
            f"A server takes {connections} connections, each of them one. Raise the limit (docker run --ulimit "
            f"nofile=65536, LimitNOFILE= of systemd), or serve with --max-connections {max(hard // 2, 1)}.",
        )
    return Diagnosis("descriptors", MachineVerdict.GOOD, found)


def judge_shared_memory(total: int | None, free: int) -> Diagnosis:
    """Judge /dev/shm, in bytes; None where there is none. Trivium's own workers do not need it."""
    what = "/dev/shm"
    mend = (
        "Clients' shared memory (--client-shared-memory) and what handlers use, such as PyTorch's DataLoader, lie "
        "there: docker run --shm-size=1g, or in Kubernetes a volume emptyDir with medium: Memory at /dev/shm."
    )
    if total is None:
        return Diagnosis(what, MachineVerdict.NOTE, "there is none", mend)
    found = f"{size(total)}, {size(free)} free"
    return Diagnosis(
        what,
        *(
            (MachineVerdict.NOTE, found, mend)
            if min(total, free) <= _SMALL_SHM
            else (MachineVerdict.GOOD, found)
        ),
    )


def judge_scratch(folder: str, free: int | None) -> Diagnosis:
    """Judge the folder for temporary files, with its free bytes; None where it cannot be written."""
    what = "temporary files"
    if free is None:
        found = f"{folder or 'no folder'} cannot be written"
        return _broken(
            what, found, "Archives are unpacked there: set TMPDIR to a folder that can be written."
        )
    found = f"{folder}, {size(free)} free"
    if free < _SMALL_SCRATCH:
        mend = "Archives and weights are unpacked there: free some, or set TMPDIR to a larger folder."
        return Diagnosis(what, MachineVerdict.NOTE, found, mend)
    return Diagnosis(what, MachineVerdict.GOOD, found)


def judge_memory(free: int | None) -> Diagnosis:
    """Judge the free memory, in bytes, within the bounds of a container; None where nobody can tell."""
    if free is None:
        return Diagnosis("memory", MachineVerdict.GOOD, "not known on this system")
    if free < _SMALL_MEMORY:
        mend = "Each worker of a handler with PyTorch takes half a gigabyte and more. Give the container more memory."
        return Diagnosis("memory", MachineVerdict.NOTE, f"{size(free)} free", mend)
    return Diagnosis("memory", MachineVerdict.GOOD, f"{size(free)} free")


def judge_processors(count: int, allowed: GroupAllowance, threads: Mapping[str, str]) -> Diagnosis:
    """Judge processors against the time that a container gives them; `threads` are variables by which libraries choose
    how many threads they have.
    """
    what, quota = "processors", allowed.processors
    if quota is None or quota >= count:
        return Diagnosis(what, MachineVerdict.GOOD, f"{count}, all of their time")
    found = f"{count}, and the time of {quota:.3g} (the container's quota)"
    wanted = whole_processors(count, allowed)
    said = threads.get("OMP_NUM_THREADS", "")
    if not said.isdigit():
        return Diagnosis(
            what, MachineVerdict.GOOD, f"{found}; a server counts threads and workers for {wanted}"
        )
    if int(said) <= wanted:
        return Diagnosis(what, MachineVerdict.GOOD, f"{found}; OMP_NUM_THREADS={said}")
    return Diagnosis(
        what,
        MachineVerdict.NOTE,
        f"{found}; OMP_NUM_THREADS={said}",
        f"Each handler starts {said} threads, and the quota then halts all of them at once. Leave OMP_NUM_THREADS "
        f"out, or set it to {wanted}.",
    )


def judge_clock(now: float, newest_file: float) -> Diagnosis:
    """Judge the clock, in seconds of the epoch, against the time at which this installation was written."""
    if now + 86_400 < newest_file:
        mend = (
            "Certificates and keys are judged by it. Set it: timedatectl set-ntp true, on the machine itself."
        )
        return _broken("clock", "it is behind the files of this installation", mend)
    return Diagnosis("clock", MachineVerdict.GOOD, "not behind the files of this installation")


def judge_port(name: str, port: int, fault: str) -> Diagnosis:
    """Judge a port of this machine: why it cannot be listened at, empty for nothing."""
    what = f"port {port} ({name})"
    if not fault:
        return Diagnosis(what, MachineVerdict.GOOD, "free")
    mend = (
        f"A server may run already (trivium status); else serve with --{name.lower()}-port and another one."
    )
    return Diagnosis(what, MachineVerdict.NOTE, fault, mend)


def judge_gpus(devices: int, told: Sequence[str], cuda: str) -> Diagnosis:
    """Judge NVIDIA's GPUs: how many device files there are, what their driver tells of each, and what PyTorch says of
    CUDA ("yes", "no", or "" where it is not installed).
    """
    if not devices and not told:
        return Diagnosis("GPUs", MachineVerdict.GOOD, "none; models run on processors")
    if not told:
        return Diagnosis(
            "GPUs",
            MachineVerdict.NOTE,
            f"{devices} device files, and the driver does not answer",
            "nvidia-smi says why. In a container the driver's library is missing: docker run --gpus all, with "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    found = "; ".join(told)
    if cuda == "no":
        return Diagnosis(
            "GPUs",
            MachineVerdict.NOTE,
            f"{found}; PyTorch here does not see them",
            "Install a build of torch for CUDA that this driver takes, and see that CUDA_VISIBLE_DEVICES is not empty.",
        )
    return Diagnosis("GPUs", MachineVerdict.GOOD, found)


def size(count: int) -> str:
    """Return bytes in the unit that suits them."""
    return f"{count / _GB:.1f} GiB" if count >= _GB else f"{count / _MB:.0f} MiB"


def _broken(what: str, found: str, mend: str) -> Diagnosis:
    return Diagnosis(what, MachineVerdict.BROKEN, found, mend)
