"""Says with what a worker process starts under any interpreter: the program, its variables, and its setup."""

from collections.abc import Mapping
from pathlib import Path

import trivium_worker
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20),
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""For glibc, as the server has it for itself: fresh pages for every large array cost more than the array's copy. And
huge pages where the kernel gives them: behind each run the addresses of a model's thousands of small pages have to be
looked up again (2 % of a large model's run).
"""

CHILD = Path(trivium_worker.__file__).parent


def worker_setup(dialect: str, spec: ModelSpec, placement: Placement) -> dict[str, object]:
    """Return the setup of a dialect's worker: its model and its place, and nothing of a handler."""
    return {
        "dialect": dialect,
        "model": spec.name,
        "version": spec.version,
        "instance": placement.name,
        "device": placement.device.value,
        "device_id": placement.device_id if placement.rank or not placement.device_ids else 0,
        "root": str(spec.root.absolute()),
        "entry": spec.entry,
        "function": "",
        "max_rows": spec.batching.max_rows,
        "path": [],
        "settings": {},
        "parameters": dict(spec.parameters),
        "python": "",
    }


def place_variables(placement: Placement) -> Mapping[str, str]:
    """Return what the environment of a process says of its place: the only devices that it sees, where it has several,
    and its rank in a gang, in the names that torchrun and Open MPI have for it.
    """
    told: dict[str, str] = {}
    rank = placement.rank
    if placement.device_ids and placement.device is Device.GPU and rank is None:
        told["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, placement.device_ids))
    if rank is not None:
        index, count = str(rank.index), str(rank.count)
        told |= {"RANK": index, "LOCAL_RANK": index, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(rank.port)}
        told |= {f"OMPI_COMM_WORLD_{name}": index for name in ("RANK", "LOCAL_RANK")}
        told |= {f"OMPI_COMM_WORLD_{name}": count for name in ("SIZE", "LOCAL_SIZE")}
    return told
