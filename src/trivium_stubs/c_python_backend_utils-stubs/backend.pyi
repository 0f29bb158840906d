import contextvars
from _typeshed import Incomplete
from collections.abc import Sequence
from trivium_worker.runtime.adapter import Host as Host
from trivium_worker.wire.values import Item as Item

COROUTINE_ITEMS: contextvars.ContextVar[tuple[Item, ...]]

class Backend:
    host: Incomplete
    instance: str
    model_dir: str
    declared: frozenset[str]
    is_decoupled: bool
    is_serving: bool
    may_come_again: bool
    batch: Sequence[Item]
    open: dict[int, Item]
    main_thread: int
    def __init__(self) -> None: ...
    def start(self, host: Host, instance: str, model_dir: str, config: dict[str, object]) -> None: ...
    def parents(self) -> list[Item]: ...
    def has_left(self, item: Item) -> bool: ...

BACKEND: Incomplete
