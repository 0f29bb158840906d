"""The two sides of an adapter: what the runtime asks of it, and what it may ask of the runtime.

`main` makes one adapter per worker by the dialect that its setup names, and calls it from the main thread only. One
that takes many requests at once is called on an event loop there.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

from trivium_worker.wire.values import Item, Outcome, Payload, Scalar, SequencePlace

Send = Callable[[Payload], Awaitable[None]]


class Setup:
    """The setup of a worker. `root` is the model's folder, `entry` the file in it (or a module),
    `function` what to call in it; `settings` the dialect's own document, `parameters` the model's.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.dialect: str = told["dialect"]
        self.model: str = told["model"]
        self.version: str = told["version"]
        self.instance: str = told["instance"]
        self.device: str = told["device"]  # "cpu" or "gpu"
        self.device_id: int = told["device_id"]
        self.root: str = told["root"]
        self.entry: str = told["entry"]
        self.function: str = told["function"]
        self.max_rows: int = told["max_rows"]  # items, or rows, in one batch at most
        self.settings: dict[str, Any] = told["settings"]
        self.parameters: dict[str, str] = told["parameters"]


class Step:
    """Counts what one step did: `rows` sequences that got a token, tokens of prompts that were read, tokens that came
    and those among them that nobody gets, the share of the room for keys and values that is taken, and its bytes;
    tokens of prompts that were looked for among what is kept, and that were there.
    """

    __slots__ = (
        "cached_tokens",
        "new_tokens",
        "prompt_tokens",
        "queried_tokens",
        "room",
        "rows",
        "share",
        "wasted_tokens",
    )

    def __init__(  # noqa: PLR0913 - what a step counts
        self,
        rows: int,
        prompt_tokens: int = 0,
        new_tokens: int = 0,
        share: float = 0.0,
        wasted_tokens: int = 0,
        room: int = 0,
        queried_tokens: int = 0,
        cached_tokens: int = 0,
    ) -> None:
        self.queried_tokens = queried_tokens
        self.cached_tokens = cached_tokens
        self.room = room
        self.wasted_tokens = wasted_tokens
        self.rows = rows
        self.prompt_tokens = prompt_tokens
        self.new_tokens = new_tokens
        self.share = share


class Answer:
    """One part of the answer to an upward call."""

    def __init__(self, payload: Payload | None, final: bool, parameters: dict[str, Scalar]) -> None:
        self.payload = payload
        self.final = final
        self.parameters = parameters


class Call(NamedTuple):
    """A request to another model. `trace` is the number of the item of whose trace it is a part, 0 for none; with `one`
    it fails where the model may answer in several parts. With `form` a model that generates takes a body in the form
    of the dialect's own clients, and answers so.
    """

    model: str
    version: str
    payload: Payload
    outputs: Sequence[str] = ()
    parameters: dict[str, Scalar] | None = None
    request_id: str = ""
    timeout: float | None = None
    sequence: SequencePlace | None = None
    trace: int = 0
    one: bool = False
    form: bool = False


class Host:
    """The server as an adapter sees it. All calls may come from any thread; those that wait, wait for the server."""

    def call(self, parent: Item | None, call: Call) -> "Iterator[Answer]":
        """Run another model and yield the parts of its answer; closing the iterator cancels. Raises Failure, and at
        once where every instance of it waits for this very call.
        """
        raise NotImplementedError

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """`ready` (model, version), `load` (model; config, a text, and files, by path in base64, in place of what its
        folder has), `unload` (model, with_dependents): the answer, or Failure.
        """
        raise NotImplementedError

    def log(self, level: str, message: str) -> None:
        """One line for the server's log under the model's name: debug, info, warning or error."""
        raise NotImplementedError

    def measure(self, metric: dict[str, Any]) -> None:
        """A custom metric: kind, name, help, labels, and `add`, `set` or `observe` with the number; `unit` and
        `request`, where that is known.
        """
        raise NotImplementedError

    def wake(self) -> None:
        """Have `Adapter.step` called again. It returns at once."""
        raise NotImplementedError


class Adapter:
    """One handler dialect. Constructing it loads and initialises user code; what is raised fails the load."""

    in_flight = 0
    """Requests that it takes at once, each by a call of `serve`; 0: it has a `run`, which gets a batch at a time."""

    slots = 0
    """Requests that it works on at once, a step at a time: it has `add`, `step`, `abort` and `reset`. 0: it has not."""

    loop: Any = None
    """The event loop that `serve` is called on, of one that takes many requests at once."""

    has_check = False
    """Has user code a say in whether it is ready? Then `check` asks it."""

    def __init__(self, setup: Setup, host: Host) -> None:
        raise NotImplementedError

    def run(self, items: list[Item]) -> list[Outcome]:
        """Return an outcome per item, in order. A raised Failure is every item's; anything else raised is reported with
        its traceback. A wrong number of results is for the adapter to find and to say in its dialect's words.
        """
        raise NotImplementedError

    async def serve(self, item: Item, send: Send) -> Outcome:
        """Return the outcome of one request, or None where it has been sent. `send` takes a part that is not the last,
        and waits for room. The call is cancelled when nobody waits for the item any more.
        """
        raise NotImplementedError

    def add(self, item: Item) -> None:
        """Take a request into the batch: one of `slots` is free. It is answered by `item.offer` and `item.send`. A
        raised Failure is the answer.
        """
        raise NotImplementedError

    def step(self) -> Step | None:
        """Compute one step for all that were added; None where none of them had anything to compute, to be called again
        after `Host.wake` or a further request. What is raised ends all that have begun, and `reset` follows.
        """
        raise NotImplementedError

    def abort(self, item: Item) -> int:
        """Forget a request that nobody waits for any more, and return the tokens that had been computed for it. No
        effect on one that has ended.
        """
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all requests, after a step that raised."""
        raise NotImplementedError

    def check(self) -> str:
        """Nothing, or why it cannot serve now. Called in a thread of its own, also while `run` does."""
        return ""

    def close(self) -> None:
        """User code may clean up. Nothing follows."""
