"""Has functions of user code called on every instance of a model, by the instance contract, wherever they run."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from trivium.core.graph.policy import MemberCall
from trivium.core.instances.scaler import Launch
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew
from trivium.types.interfaces import Instance, Port
from trivium.types.operations import Broadcast, Infer, Remembered
from trivium.types.payload import Payload, PayloadKind, Raw
from trivium.types.running import (
    Batch,
    Dead,
    Event,
    Executed,
    InstanceId,
    ItemId,
    Outcome,
    Part,
    Placement,
)
from trivium.types.spec import ModelSpec, StandingCall

log = logging.getLogger(__name__)

FIRST_CALL = 2**62
"""Numbers of calls that are no requests begin here."""

UNKNOWN_STATUS = 424
"""HTTP's status for a request that names a standing call that there is not."""

_numbers = itertools.count(FIRST_CALL)

RunOn = Callable[[InstanceId, ItemId, Infer], Awaitable[Payload]]
"""Runs an item on one instance, behind what that has in hand. Raises what it ends with."""


class MakesCalls(Protocol):
    """A model whose instances make standing calls."""

    @property
    def standing(self) -> tuple[StandingCall, ...]:
        """Return those that are made."""
        ...

    async def broadcast(self, operation: Broadcast) -> Payload:
        """See `Broadcasts`."""
        ...


Serving = Callable[[str, str], MakesCalls]
"""Finds who serves a model and version. Raises ServeError where nobody does."""


async def have_made(graph: str, calls: Sequence[MemberCall], serving: Serving) -> None:
    """Have the models of a graph make the calls that it needs; one that is made already, and equal, is shared. Raises
    LOAD_FAILED, and CONFLICT where there is another of its topic; then none of those that are new is left.
    """
    new: list[MemberCall] = []
    for name, version, call in calls:
        model = serving(name, version)
        operation = Broadcast(
            name, call.function, _payload(call), version, call.topic, Remembered.ADDED, undo=call.undo
        )
        try:
            if call not in model.standing:
                await model.broadcast(operation)
                new.append((name, version, call))
        except ServeError as error:
            if call in model.standing:  # another graph was quicker
                continue
            await have_undone(new, serving)
            text = f"Model '{graph}' needs {call.topic!r} in model '{name}'. {error.message}"
            raise ServeError(error.code, text, status=error.status, info=error.info) from error


async def have_undone(calls: Sequence[MemberCall], serving: Serving) -> None:
    """Have models make these calls no more. What cannot be undone is logged: nobody needs it."""
    for name, version, call in calls:
        payload = Raw((), {**call.properties})
        wish = Broadcast(name, call.undo, payload, version, call.topic, Remembered.FORGOTTEN)
        try:
            model = serving(name, version)
            if call in model.standing:
                await model.broadcast(wish)
        except ServeError as error:
            log.error("model '%s': %s did not undo %r: %s", name, call.undo, call.topic, error.message)


class CallPort:
    """Takes the events of an instance that makes one call, from any thread; `ended` is what that ended with."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Outcome] = self._loop.create_future()

    def push(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        self._loop.call_soon_threadsafe(self.deliver, tuple(events))

    def deliver(self, events: Sequence[Event]) -> None:
        """Keep the end of the call, or of the instance."""
        for event in events:
            if self.ended.done():
                return
            if isinstance(event, Executed) and event.outcomes:
                self.ended.set_result(event.outcomes[0])
            elif isinstance(event, Part) and event.final:
                self.ended.set_result(event.payload if event.error is None else event.error)
            elif isinstance(event, Dead):
                self.ended.set_exception(ServeError(Code.LOAD_FAILED, event.post_mortem))


class Broadcasts:
    """Has functions of user code called on all instances of a model version, and on each later one before it serves.

    One at a time; no instance is added meanwhile. Used on the loop only.
    """

    def __init__(self, spec: ModelSpec, run: RunOn, instances: Callable[[], Collection[InstanceId]]) -> None:
        self._spec = spec
        self._run = run
        self._instances = instances
        self._calls = {call.topic: call for call in spec.standing}
        self._lock = asyncio.Lock()

    @property
    def standing(self) -> tuple[StandingCall, ...]:
        """Return what each later instance calls, in the order in which it was added."""
        return tuple(self._calls.values())

    def check(self, topic: str) -> None:
        """Raise MODEL_FAILED for a topic without a call, if one is named, and the model has any functions to call."""
        if topic and self._spec.functions and topic not in self._calls:
            raise ServeError(
                Code.MODEL_FAILED,
                f"The adapter {topic[:200]} has not been registered",
                status=UNKNOWN_STATUS,
                info=ErrorInfo.of(reasons.UNKNOWN_CALL, model=self._spec.name, topic=topic),
            )

    def around(self, launch: Launch) -> Launch:
        """Launch as before, and have the instance make the standing calls. Raises LOAD_FAILED where one fails."""

        async def launched(placement: Placement, port: Port) -> Instance:
            instance = await launch(placement, port)
            try:
                async with (
                    self._lock
                ):  # whoever awaits this admits the instance before anybody has the lock again
                    for call in self.standing:
                        await self._call(instance, call)
                    if self._calls:
                        instance.attach(port)
            except BaseException:
                instance.close()
                raise
            return instance

        return launched

    async def broadcast(self, wish: Broadcast) -> Payload:
        """Carry it out on the open instances, and remember it as it says. Raises as `Broadcast` says."""
        if wish.function not in self._spec.functions:
            raise ServeError(
                Code.INVALID,
                f"Model '{self._spec.name}' has no function {wish.function[:200]!r} that may be called by name; there "
                f"are: {', '.join(self._spec.functions) or 'none'}. Its own configuration has to allow that.",
                info=ErrorInfo.of(reasons.NO_FUNCTION, model=self._spec.name, function=wish.function),
            )
        async with self._lock:
            earlier = self._earlier(wish)
            payload = wish.payload if earlier is None else _over(_payload(earlier), wish.payload)
            answer = await self._everywhere(wish, payload, payload if earlier is None else _payload(earlier))
            if wish.remembered is Remembered.FORGOTTEN:
                del self._calls[wish.topic]
            elif wish.remembered is not Remembered.NOT:
                self._calls[wish.topic] = StandingCall(
                    wish.topic, wish.later or wish.function, payload.properties, payload.query
                )
            return answer

    def _earlier(self, wish: Broadcast) -> StandingCall | None:
        if wish.remembered is not Remembered.NOT and wish.payload.parts:
            words = "A call that later instances make, too, has properties and arguments, and no body. Leave it out."
            raise ServeError(Code.INVALID, words)
        found = self._calls.get(wish.topic)
        info = ErrorInfo.of(
            reasons.UNKNOWN_CALL if found is None else reasons.CALL_TWICE,
            model=self._spec.name,
            topic=wish.topic,
        )
        name = f"of the name {wish.topic[:200]!r} in model '{self._spec.name}'"
        if wish.remembered is Remembered.ADDED and found is not None:
            raise ServeError(
                Code.CONFLICT, f"There is one {name} already. Take another name, or update that.", info=info
            )
        if wish.remembered in (Remembered.REPLACED, Remembered.FORGOTTEN) and found is None:
            there = ", ".join(self._calls) or "none"
            raise ServeError(Code.NOT_FOUND, f"There is none {name}; there are: {there}.", info=info)
        return found if wish.remembered is not Remembered.NOT else None

    async def _everywhere(self, wish: Broadcast, payload: Raw, before: Raw) -> Payload:
        """Return an answer of one instance. Raises the first failure, after those that did it have undone it."""
        numbers = list(self._instances())
        results = await self._on(numbers, wish.function, payload)
        failures = [result for result in results if isinstance(result, BaseException)]
        if not failures:
            return results[0] if results and not isinstance(results[0], BaseException) else Raw(())
        if wish.undo:
            well = [
                n for n, result in zip(numbers, results, strict=True) if not isinstance(result, BaseException)
            ]
            left = [number for number in well if number in self._instances()]
            for result in await self._on(left, wish.undo, before):
                if isinstance(result, BaseException):
                    log.error(
                        "model '%s': %s did not undo %s: %s", wish.model, wish.undo, wish.function, result
                    )
        raise anew(failures[0])

    async def _on(
        self, numbers: Collection[InstanceId], function: str, payload: Raw
    ) -> list[Payload | BaseException]:
        infer = self._infer(function, payload)
        runs = (self._well(self._run(number, next(_numbers), infer)) for number in numbers)
        return await asyncio.gather(*runs, return_exceptions=True)

    async def _well(self, run: Awaitable[Payload]) -> Payload:
        answer = await run
        _check(answer)
        return answer

    async def _call(self, instance: Instance, call: StandingCall) -> None:
        port = CallPort()
        instance.attach(port)
        instance.start(Batch([next(_numbers)], [self._infer(call.function, _payload(call))], [1]))
        about = f"{call.function} of {call.topic!r}"
        try:
            async with asyncio.timeout(self._spec.limits.startup_deadline):
                ended = await port.ended
        except TimeoutError as error:
            raise ServeError(Code.LOAD_FAILED, f"{about} did not end in time.") from error
        try:
            _check(ended)
        except ServeError as error:
            raise ServeError(Code.LOAD_FAILED, f"{about} failed: {error.message}") from error

    def _infer(self, function: str, payload: Raw) -> Infer:
        spec = self._spec
        return Infer(spec.name, payload, spec.version, wants=PayloadKind.RAW, method=function)


def _check(answer: object) -> None:
    """Raise what an answer says went wrong, by its status, too."""
    if isinstance(answer, ServeError):
        raise anew(answer)
    if isinstance(answer, Raw) and answer.status >= 300:
        text = b"".join(bytes(part.data[:1000]) for part in answer.parts[:1]).decode("utf-8", "replace")
        status = answer.status if answer.status >= 400 else None
        raise ServeError(Code.MODEL_FAILED, text or answer.reason or str(answer.status), status=status)


def _payload(call: StandingCall) -> Raw:
    return Raw((), call.properties, call.arguments)


def _over(earlier: Raw, payload: Raw) -> Raw:
    """Return the payload with those properties and arguments of an earlier one that it does not have itself."""
    names = {name for name, _ in payload.query}
    kept = tuple(pair for pair in earlier.query if pair[0] not in names)
    return Raw((), {**earlier.properties, **payload.properties}, (*kept, *payload.query))
