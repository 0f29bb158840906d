"""The edge to the system's scheduler, on the system itself: threads and processes are found, placed, or gone."""

import os
import subprocess
import sys
import threading

import pytest

from trivium.affinity.processors import Processors
from trivium_worker.wire import system

pytestmark = pytest.mark.skipif(not system.can_stay(), reason="threads cannot be placed on this system")
GONE = 2**22 + 1  # one more than any thread's number can be, by proc(5)


def test_the_children_of_a_process_are_those_of_all_its_threads():
    processors = Processors()
    before = set(processors.children(os.getpid()))
    started, is_started, over = [], threading.Event(), threading.Event()

    def start():
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        is_started.set()
        over.wait(60)  # the system tells a child by the thread that started it

    thread = threading.Thread(target=start)
    try:
        start_here = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        thread.start()
        assert is_started.wait(60)
        pids = {start_here.pid, started[0].pid}
        assert set(processors.children(os.getpid())) - before == pids
        assert processors.children(start_here.pid) == []
    finally:
        over.set()
        thread.join()
        for child in (start_here, *started):
            child.communicate(b"\n", timeout=120)
    assert not pids & set(processors.children(os.getpid()))


def test_a_thread_is_put_somewhere_and_back():
    processors, here = Processors(), threading.get_native_id()
    place = processors.place(here)
    assert place is not None
    alone = place.behind(min(place.processors))
    try:
        processors.put(here, alone)
        assert processors.place(here) == alone
        assert processors.here() == min(place.processors)
    finally:
        processors.put(here, place)
    assert processors.place(here) == place
    assert here in processors.threads(os.getpid())


def test_what_is_gone_has_nothing_and_is_put_nowhere():
    processors = Processors()
    assert processors.place(GONE) is None
    assert (processors.threads(GONE), processors.children(GONE)) == ([], [])
    place = processors.place(os.getpid())
    assert place is not None
    processors.put(GONE, place)


def test_every_processor_has_its_ticks():
    ticks = Processors().ticks()
    assert len(ticks) == len(os.sched_getaffinity(0)) or len(ticks) == os.cpu_count()
    assert all(0 <= busy <= both for busy, both in ticks.values())
