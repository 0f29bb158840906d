"""When the sweeper looks and when it sleeps, on a loop whose time is moved by hand."""

import heapq
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.harness.http_connection import HttpHarness

from trivium.frontends.http.state import HttpState, Sweeper
from trivium.frontends.limits import HttpLimits


class HandLoop:
    """`call_later` and `time`, as a loop has them; `run(until)` moves the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.looks: list[float] = []
        self._timers: list[tuple[float, int, list[Callable[[], None]]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
        cell = [callback]
        heapq.heappush(self._timers, (self.now + seconds, len(self.looks) + id(cell), cell))
        return SimpleNamespace(cancel=cell.clear)

    def run(self, until: float) -> None:
        while self._timers and self._timers[0][0] <= until:
            self.now, _, cell = heapq.heappop(self._timers)
            if cell:
                self.looks.append(self.now)
                cell.pop()()
        self.now = until


class IdleGuest:
    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.is_idle = True
        self.late = 0

    def on_deadline(self) -> None:
        self.late += 1
        self.deadline += 50

    def drain(self) -> None: ...
    def unfinished(self) -> str | None: ...
    def abort(self) -> None: ...


def site() -> HttpState:
    place = HttpHarness(HttpLimits()).site
    place.connections.clear()
    return place


def test_without_connections_it_never_wakes() -> None:
    loop, place = HandLoop(), site()
    Sweeper(place, loop)  # type: ignore[arg-type]
    loop.run(10_000.0)
    assert loop.looks == []


def test_with_idle_connections_it_wakes_at_the_first_deadline() -> None:
    loop, place = HandLoop(), site()
    connections = [IdleGuest(170.0), IdleGuest(130.0)]
    place.connections.update(connections)
    Sweeper(place, loop)  # type: ignore[arg-type]
    loop.run(165.0)
    assert loop.looks == [130.0]
    assert [guest.late for guest in connections] == [0, 1]
    loop.run(181.0)
    assert loop.looks == [130.0, 170.0, 180.0]


def test_who_rouses_it_finds_the_right_time_and_deadlines_are_kept_from_then_on() -> None:
    loop, place = HandLoop(), site()
    guest = IdleGuest(1000.0)
    place.connections.add(guest)
    Sweeper(place, loop)  # type: ignore[arg-type]
    loop.run(170.0)
    assert place.now == 100.0
    assert place.wake is not None
    place.wake()
    assert place.now == 170.0
    assert place.wake is None
    guest.is_idle, guest.deadline = False, 171.2
    loop.run(172.0)
    assert guest.late == 1
    assert loop.looks == [170.5, 171.0, 171.5, 172.0]
    guest.is_idle, guest.deadline = True, 1000.0
    loop.run(999.0)
    assert loop.looks == [170.5, 171.0, 171.5, 172.0, 172.5]


def test_after_its_end_it_wakes_nobody() -> None:
    loop, place = HandLoop(), site()
    guest = IdleGuest(130.0)
    place.connections.add(guest)
    Sweeper(place, loop).close()  # type: ignore[arg-type]
    loop.run(1000.0)
    assert guest.late == 0
    assert place.wake is None
