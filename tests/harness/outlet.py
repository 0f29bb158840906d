"""An outlet of items that calls a function with whatever is sent."""

from collections.abc import Callable
from typing import Any

from trivium_worker.wire.values import Item, Outlet

Take = Callable[[Item, Any, bool, Any], None]


class CallingOutlet(Outlet):
    """Gives each part, whether it is the last, and its parameters to a function."""

    def __init__(self, take: Take) -> None:
        self._take = take

    def send(self, item: Item, outcome: Any, final: bool, parameters: Any = None) -> None:
        self._take(item, outcome, final, parameters)

    def keep(self, item: Item, outcome: Any) -> None:
        self._take(item, outcome, False, None)
