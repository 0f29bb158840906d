"""Devices, counts of workers and degrees of parallelism -> instance groups, each field with where it was found.

Source: spec sheet `djl`, sections 7.2, 7.3 and 8.7. Without accelerators the ranks of a gang run on the CPU.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trivium.servers.djl.folder.engine_choice import Choice
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words.handlers import imports_of
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.spec import Defaults, Device, InstanceGroup, Origin

MOST_RANKS = 64
"""Processes of a gang: more is a slip of the pen on one machine."""

_TENSOR, _PIPELINE = "option.tensor_parallel_degree", "option.pipeline_parallel_degree"
_MODE, _PASSIVE, _ASYNC = "option.mpi_mode", "option.use_passive_workers", "option.async_mode"
_GANGS = ("mpi", "deepspeed")
_EVERY = "max"


class GroupTranslation:
    """Makes the groups of one model. Errors gather in `settings`, and origins in `origin`."""

    def __init__(
        self,
        settings: DjlSettings,
        folder: DjlModelFolder,
        choice: Choice,
        defaults: Defaults,
        threads: int,
        origin: dict[str, Origin],
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._choice = choice
        self._cpus = defaults.cpus
        self._gpus = defaults.gpus
        self._threads = threads
        self._origin = origin
        self._name = folder.name

    def translate(self) -> tuple[InstanceGroup, ...]:
        """Return the groups."""
        devices = self._settings.devices(self._gpus)
        gpus = [number for kind, number in (one.value for one in devices) if kind is Device.GPU]
        engine = self._choice.engine.value
        if not engine.runs_handlers:
            size = self._size(gpus, False) if engine.passes_options and gpus else 1
            return tuple(
                self._plain(devices) if size == 1 else self._spanning(gpus, size, False, devices[0].origin)
            )
        is_gang = self._is_gang()
        size = self._size(gpus, is_gang)
        if size > MOST_RANKS:
            found = f"{size} processes or devices for one worker"
            self._settings.fault(_TENSOR, found, f"at most {MOST_RANKS}", "Write a smaller degree.")
            return ()
        if is_gang and size > 1:
            self._check_gang()
        if gpus and size > 1:
            return tuple(self._spanning(gpus, size, is_gang, devices[0].origin))
        groups = tuple(self._plain(devices, size if is_gang else 1))
        return (
            tuple(replace(one, ranks=size, are_passive=self._passive()) for one in groups)
            if is_gang
            else groups
        )

    def _is_gang(self) -> bool:
        engine = self._settings.text(["engine"]).value.lower()
        return engine in _GANGS or self._settings.switch(_MODE).value

    def _size(self, gpus: Sequence[int], is_gang: bool) -> int:
        """Return how many processes, or devices, one worker has: all GPUs for a gang that does not say it."""
        written = self._settings.text([_TENSOR]).value.lower()
        every = max(len(gpus), 1)
        if written == _EVERY or (not written and is_gang):
            tensor = every
        else:
            tensor = self._settings.number([_TENSOR], 1).value
        return tensor * self._settings.number([_PIPELINE], 1).value

    def _passive(self) -> bool:
        setting = self._settings.switch(_PASSIVE, True)
        self._origin["groups[0].are_passive"] = setting.origin
        return setting.value

    def _check_gang(self) -> None:
        entry = self._folder.file_of(self._choice.entry.value)
        if entry and "mpi4py" in imports_of(self._folder.text(entry)):
            self._settings.fault(
                "option.entryPoint",
                f"{entry} imports mpi4py, which needs mpirun, and processes are started without it",
                "torch.distributed, or sockets of its own",
                "RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set: "
                "torch.distributed.init_process_group('gloo') needs no more.",
            )
        if self._choice.is_asynchronous.value:
            self._settings.fault(
                _ASYNC,
                "an asynchronous handler in several processes",
                "a plain function",
                "Define it without async, or let it run in one process.",
            )

    def _spanning(
        self, gpus: Sequence[int], size: int, is_gang: bool, origin: Origin
    ) -> Iterator[InstanceGroup]:
        """Yield the groups of workers that have several GPUs each: one group of a gang, else one per worker."""
        places = len(gpus) // size
        if not places:
            found = f"GPU devices are not enough to run {size} partitions: there are {len(gpus)}"
            key = _TENSOR if self._settings.text([_TENSOR]).value else _PIPELINE
            self._settings.fault(
                key, found, f"at most {len(gpus)}", "Write a smaller degree, or name more GPUs."
            )
            return
        why = "DJL's default: one per group of GPUs"
        least, most = self._counts(Device.GPU, 1, why)
        if is_gang and most.value > places:
            found = f"{most.origin.key or 'maxWorkers'}={most.value}: we can only expand worker to {places}"
            hint = f"Each worker has {size} of {len(gpus)} GPUs."
            self._settings.fault(most.origin.key, found, f"at most {places}", hint)
        starts = [0] if is_gang else [index * size for index in range(places)]
        for index, start in enumerate(starts):
            mine = gpus[: places * size] if is_gang else gpus[start : start + size]
            group = self._group(index, Device.GPU, str(mine[0]), least, most, origin)
            ranks = size if is_gang else 1
            yield replace(
                group,
                device_ids=tuple(mine),
                span=size,
                ranks=ranks,
                are_passive=self._passive() if is_gang else False,
            )

    def _plain(
        self, devices: Sequence[Placed[tuple[Device, int]]], processes: int = 1
    ) -> Iterator[InstanceGroup]:
        for index, device in enumerate(devices):
            kind, number = device.value
            is_gpu = kind is Device.GPU
            default, why = (1, "DJL's default: one per GPU") if is_gpu else self._most_on_cpus()
            if not is_gpu and self._choice.engine.value.generates:
                default, why = 1, "rule: one copy of the weights"
            least, most = self._counts(kind, max(default // processes, 1), why)
            group = self._group(index, kind, str(number) if is_gpu else "", least, most, device.origin)
            yield replace(group, device_ids=(number,) if is_gpu else ())

    def _counts(self, kind: Device, default: int, why: str) -> tuple[Placed[int], Placed[int]]:
        settings = self._settings
        most = settings.number((f"{kind.value}.maxWorkers", "maxWorkers"), default, why)
        least = settings.number((f"{kind.value}.minWorkers", "minWorkers"), 1)
        if least.value > most.value:
            found = f"{least.origin.key}={least.value}, and at most {most.value} are allowed ({most.origin})"
            settings.notice(least.origin.key, found, "As many as allowed are kept; set maxWorkers, too.")
        return least, most

    def _group(
        self, index: int, kind: Device, number: str, least: Placed[int], most: Placed[int], device: Origin
    ) -> InstanceGroup:
        idle = self._settings.number(("max_idle_time", "option.max_idle_time"), 60)
        group = f"groups[{index}]."
        self._origin |= {f"{group}device": device, f"{group}device_ids": device}
        self._origin |= {f"{group}maximum": most.origin, f"{group}minimum": least.origin}
        self._origin[f"{group}idle_seconds"] = idle.origin
        return InstanceGroup(
            name=f"{self._name}_{kind.value}{number}",
            minimum=min(least.value, most.value),
            maximum=most.value,
            idle_seconds=float(idle.value),
            device=kind,
        )

    def _most_on_cpus(self) -> tuple[int, str]:
        if not self._threads:
            return 2, "DJL's default without OMP_NUM_THREADS"
        why = "" if self._threads == 1 else f", of which each worker uses {self._threads} (OMP_NUM_THREADS)"
        return self._cpus // min(self._threads, self._cpus), f"DJL's default: one per CPU{why}"
