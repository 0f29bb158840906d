"""The worker as the calls of pb_utils see it: its host, its model, which requests are open.

One per process, filled in by the adapter before user code is loaded. Must not know how the host is reached.
"""

import contextvars
import threading
from collections.abc import Sequence
from typing import Any

from trivium_worker.runtime.adapter import Host
from trivium_worker.wire.values import Item

COROUTINE_ITEMS: "contextvars.ContextVar[tuple[Item, ...]]" = contextvars.ContextVar("items", default=())
"""The items of the batch that a coroutine belongs to: it may outlive the call of `execute` that made it."""


class Backend:
    """`batch` are the items that `execute` has now, `open` those that some response sender still answers.
    `is_serving` from the end of `initialize` to the beginning of `finalize`. Where requests `may_come_again`, user code
    gets copies of their tensors, so that they come as they were.
    """

    __slots__ = (
        "batch",
        "declared",
        "host",
        "instance",
        "is_decoupled",
        "is_serving",
        "main_thread",
        "may_come_again",
        "model_dir",
        "open",
    )

    def __init__(self) -> None:
        self.host = Host()
        self.instance = ""
        self.model_dir = ""
        self.declared: frozenset[str] = frozenset()
        self.is_decoupled = False
        self.is_serving = False
        self.may_come_again = False
        self.batch: Sequence[Item] = ()
        self.open: dict[int, Item] = {}
        self.main_thread = 0

    def start(self, host: Host, instance: str, model_dir: str, config: "dict[str, object]") -> None:
        """`config` is the model's configuration; called by the thread that runs batches."""
        outputs: Any = config.get("output")
        policy = config.get("model_transaction_policy")
        self.host = host
        self.instance = instance
        self.model_dir = model_dir
        batching = config.get("sequence_batching")
        states = batching.get("state", []) if isinstance(batching, dict) else []
        self.may_come_again = isinstance(batching, dict) and bool(batching.get("iterative_sequence"))
        self.declared = frozenset(
            [output["name"] for output in outputs or ()] + [state["output_name"] for state in states]
        )
        self.is_decoupled = isinstance(policy, dict) and bool(policy.get("decoupled"))
        self.main_thread = threading.get_ident()

    def parents(self) -> list[Item]:
        """The items on whose behalf a call to another model is made: the API does not say which. Those that the
        caller has in hand; for a thread that outlived its `execute` the only open one, or none.
        """
        items = COROUTINE_ITEMS.get()
        if not items and not (self.is_decoupled and threading.get_ident() != self.main_thread):
            items = tuple(self.batch)
        if not items:
            items = tuple(self.open.values())
            items = items if len(items) == 1 else ()
        return [item for item in items if not self.has_left(item)] or list(items[:1])

    def has_left(self, item: Item) -> bool:
        """Does nobody wait for its answer any more?"""
        return item.is_cancelled or (item.number not in self.open and item not in self.batch)


BACKEND = Backend()
