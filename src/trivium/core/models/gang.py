"""An instance that is several worker processes: they start together, the first one answers, and they end together.

They meet at a port of this machine, by what their environment says. The end of one, or its silence, ends all of them,
and the pool opens another gang. To the pool it is one instance, with one credit.
"""

import asyncio
import socket
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from trivium.core.instances.delegating import DelegatingInstance
from trivium.core.workers.process import ProcessInstance
from trivium.core.workers.process_launcher import ProcessLauncher, Warm
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.interfaces import Port
from trivium.types.running import Batch, Event, ItemId, Placement, Rank, RecycleRequested, WorkerCommand


class RankPort:
    """Takes the events of a rank: those of the first are the gang's, of the others only that they should be replaced.
    Of what comes before the gang is complete nothing is passed on: who opens it is told of its end otherwise.
    """

    def __init__(self, is_first: bool) -> None:
        self.port: Port | None = None
        self._is_first = is_first

    def push(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        if self.port is not None and (wanted := self._wanted(events)):
            self.port.push(wanted)

    def deliver(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        if self.port is not None and (wanted := self._wanted(events)):
            self.port.deliver(wanted)

    def _wanted(self, events: Sequence[Event]) -> Sequence[Event]:
        return events if self._is_first else [one for one in events if isinstance(one, RecycleRequested)]


class GangInstance(DelegatingInstance):
    """Owns the processes of a gang. Where the others `are_passive` the first alone gets requests."""

    def __init__(
        self, ranks: Sequence[ProcessInstance], ports: Sequence[RankPort], are_passive: bool
    ) -> None:
        super().__init__(ranks[0])
        self._ranks = ranks
        self._ports = ports
        self._working = ranks[:1] if are_passive else ranks
        self._is_closing = False
        for number, rank in enumerate(ranks):
            rank.gone.add_done_callback(partial(self._lost, number))

    @property
    def threads(self) -> Collection[int]:
        """See `Instance`."""
        return [thread for rank in self._ranks for thread in rank.threads]

    @property
    def running_since(self) -> float | None:
        """See `Instance`: of the rank that has had a batch for longest."""
        return min((since for one in self._working if (since := one.running_since) is not None), default=None)

    def attach(self, port: Port) -> None:
        """See `Instance`. LOAD_FAILED where a rank is gone."""
        for rank, its in zip(self._ranks, self._ports, strict=True):
            its.port = port
            rank.attach(its)

    def start(self, batch: Batch) -> None:
        """Hand it over to all that work."""
        for rank in self._working:
            rank.start(batch)

    def cancel(self, item: ItemId) -> None:
        """See `Instance`."""
        for rank in self._working:
            rank.cancel(item)

    def hold(self, item: ItemId) -> None:
        """See `Instance`."""
        for rank in self._working:
            rank.hold(item)

    def resume(self, item: ItemId) -> None:
        """See `Instance`."""
        for rank in self._working:
            rank.resume(item)

    def close(self) -> None:
        """See `Instance`."""
        self._is_closing = True
        for rank in self._ranks:
            rank.close()

    def _lost(self, number: int, gone: "asyncio.Future[str]") -> None:
        """A rank has ended. When it was not to, all others end."""
        if not self._is_closing:
            for rank in self._ranks:
                rank.kill(f"rank {number} of its gang had ended: {gone.result()}")


async def open_gang(
    launcher: ProcessLauncher,
    make: Callable[[Placement], WorkerCommand],
    placement: Placement,
    port: Port,
    warm: Warm,
) -> GangInstance:
    """Start all processes of a gang at the same time, and have it warmed up. Raises LOAD_FAILED, with nothing left."""
    meeting = free_port()
    ports = [RankPort(number == 0) for number in range(placement.ranks)]
    placements = [_ranked(placement, number, meeting) for number in range(placement.ranks)]
    starts = [
        asyncio.ensure_future(launcher.launch(make(place), place, its))
        for place, its in zip(placements, ports, strict=True)
    ]
    try:
        ranks = await asyncio.gather(*starts)
        gang = GangInstance(ranks, ports, placement.are_passive)
    except BaseException:
        await _give_up(starts)
        raise
    try:
        await warm(gang, port)
        gang.attach(port)
    except BaseException:
        gang.close()
        raise
    return gang


async def _give_up(starts: "Sequence[asyncio.Future[ProcessInstance]]") -> None:
    for start in starts:
        start.cancel()
    for found in await asyncio.gather(*starts, return_exceptions=True):
        if isinstance(found, ProcessInstance):
            found.kill("another rank of its gang did not start")


def _ranked(placement: Placement, number: int, meeting: int) -> Placement:
    devices = placement.device_ids
    return replace(
        placement,
        name=f"{placement.name}_rank{number}",
        device_id=devices[number] if number < len(devices) else placement.device_id,
        rank=Rank(number, placement.ranks, meeting),
    )


def free_port() -> int:
    """Return a port of this machine that is free at this moment. Raises LOAD_FAILED where there is none."""
    try:
        with socket.socket() as opened:
            opened.bind(("127.0.0.1", 0))
            return int(opened.getsockname()[1])
    except OSError as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"There is no port at which the processes of a gang could meet: {said_by(error)}.",
        ) from error
