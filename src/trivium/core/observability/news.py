"""Passes on what happens to a server: whoever does something says so here, and nobody need hear it."""

from collections.abc import Callable

from trivium.types.observing import InstanceDeath, InstanceOpened, Timeline, WorkerSaid
from trivium.types.operations import VersionStatus

News = VersionStatus | InstanceDeath | InstanceOpened | WorkerSaid | Timeline


class ServerNews:
    """One per server; used on the loop only. `heard` is whoever listens, None while nobody does."""

    __slots__ = ("heard",)

    def __init__(self) -> None:
        self.heard: Callable[[News], None] | None = None

    def tell(self, news: News) -> None:
        """Tell who listens, if anybody does."""
        if self.heard is not None:
            self.heard(news)


NO_NEWS = ServerNews()
"""Nobody ever listens to these."""
