"""Bounds of worker processes: what the kernel keeps is kept, what it refuses fails the load, and memory is sealed."""

import os

import numpy as np
import pytest
from tests.harness.python_models import place, scene

from trivium.catalogue import configured
from trivium.types.errors import ServeError
from trivium_worker.wire.system import anonymous_memory

BODY = """
    def execute(self, requests):
        import resource, socket
        found = []
        for request in requests:
            kind = int(of(request, "IN")[0][0])
            if kind == 0:
                value = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            elif kind == 1:
                value = len(os.sched_getaffinity(0))
            elif kind == 2:
                value = len(socket.if_nameindex())
            elif kind == 3:
                self.kept = bytearray(os.urandom(1) * 400_000_000)
                value = len(self.kept)
            elif kind == 4:
                value = 0
                for name in os.listdir("/proc/%d/fd" % os.getppid()):
                    path = "/proc/%d/fd/%s" % (os.getppid(), name)
                    if "memfd:trivium" in os.readlink(path):
                        try:
                            os.truncate(path, 1)
                        except PermissionError:
                            value += 1
            found.append(answer(OUT=np.array([[value]], "<i4")))
        return found
"""


def asked(tmp_path, *kinds, **options):
    place(tmp_path, "m", BODY, "")
    answers = []

    async def play(server):
        for kind in kinds:
            answers.append(await server.infer("m", {"IN": np.array([[kind]], "<i4")}))

    scene(play, tmp_path, **options)
    return [int(answer.items[0].array[0][0]) for answer in answers]


def test_files_and_processors_are_bounded(tmp_path):
    assert asked(tmp_path, 0, 1, worker_files=77, worker_processors=1) == [77, 1]


def test_without_bounds_nothing_is_bounded(tmp_path):
    assert asked(tmp_path, 1, 2)[0] == len(os.sched_getaffinity(0))


def test_an_offline_worker_has_no_network_but_its_own(tmp_path):
    assert asked(tmp_path, 2, worker_offline=True) == [1]


def test_what_cannot_be_kept_fails_the_load_with_the_reason(tmp_path):
    with pytest.raises(ServeError, match="--worker-processors cannot be kept: it asks for 4096 processors"):
        asked(tmp_path, 1, worker_processors=4096)


def test_a_worker_with_too_much_memory_is_killed_and_named(tmp_path):
    with pytest.raises(ServeError, match=r"bytes of memory, and may have 300000000"):
        asked(tmp_path, 3, 3, 3, worker_memory=300_000_000)


def test_shared_memory_cannot_be_cut_off_by_a_handler(tmp_path):
    (refused,) = asked(tmp_path, 4)
    assert refused >= 1
    descriptor = anonymous_memory("trivium-test", 4096)
    for size in (1, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    os.close(descriptor)


def test_processors_and_a_shared_processor_exclude_each_other():
    assert configured().workers.shares_processor
    assert not configured(worker_processors=1).workers.shares_processor
