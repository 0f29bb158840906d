"""Keeps the adapters of a model by their names: those that are registered, and those that requests still have.

A request keeps the adapter that it began with. What is replaced or removed stays until the last such request has ended.
What an adapter is, and what it takes to have one, is the matter of each engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Generic, TypeVar

from trivium.types import reasons
from trivium.types.adapters import FUNCTIONS, NAME, SOURCE, UNREGISTER
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw
from trivium.types.spec import ModelSpec

A = TypeVar("A")

UNKNOWN_STATUS = 424
"""HTTP's status for a request that names an adapter that there is not."""


class AdapterRegistry(ABC, Generic[A]):
    """Those of one model. Used by the thread that steps."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._loaded: dict[str, A] = {}
        self._retired: list[A] = []

    @property
    def held(self) -> int:
        """Return how many there are, of those that some request still has, too."""
        return len(self._loaded) + len(self._retired)

    @property
    def has_retired(self) -> bool:
        """Return whether one was replaced or removed that some request may still have."""
        return bool(self._retired)

    def find(self, name: str) -> A:
        """Return the adapter of a request that names it. MODEL_FAILED where there is none."""
        found = self._loaded.get(name)
        if found is None:
            raise ServeError(
                Code.MODEL_FAILED,
                f"The adapter {name[:200]} has not been registered",
                status=UNKNOWN_STATUS,
                info=ErrorInfo.of(reasons.UNKNOWN_CALL, model=self._spec.name, topic=name[:200]),
            )
        return found

    def call(self, function: str, payload: Raw) -> A | None:
        """Register, update or unregister an adapter, as the call of that name does. Returns the one that new requests
        do not get any more. MODEL_FAILED, with the file and the key, for one that cannot be served; OUT_OF_MEMORY.
        """
        if function not in FUNCTIONS:
            raise ServeError(
                Code.INVALID,
                f"Model '{self._spec.name}' has no function {function[:200]!r}; there are: {', '.join(FUNCTIONS)}.",
                info=ErrorInfo.of(reasons.NO_FUNCTION, model=self._spec.name, function=function[:200]),
            )
        name = payload.properties.get(NAME, "")
        before = self._loaded.get(name)
        if function == UNREGISTER:
            self._loaded.pop(name, None)
        else:
            try:
                made = self._load(name, payload.properties.get(SOURCE, ""), before)
            except ServeError as error:
                code = error.code if error.code is Code.OUT_OF_MEMORY else Code.MODEL_FAILED
                raise ServeError(code, error.message) from error
            self._registered(made)
            self._loaded[name] = made
        if before is not None:
            self._retire(before)
            self._retired.append(before)
        return before

    def sweep(self, used: Collection[A | None]) -> None:
        """Let those go that were replaced or removed, and that no request has."""
        for one in [one for one in self._retired if one not in used]:
            self._retired.remove(one)
            self._let_go(one)

    def _all(self) -> tuple[A, ...]:
        return (*self._loaded.values(), *self._retired)

    @abstractmethod
    def _load(self, name: str, source: str, before: A | None) -> A:
        """Return the adapter of a folder, which takes the place of the one `before`. Raises ServeError."""

    def _registered(self, made: A) -> None:
        """Note that new requests may have it from now on."""

    def _retire(self, one: A) -> None:
        """Note that no new request gets it any more."""

    @abstractmethod
    def _let_go(self, one: A) -> None:
        """Free what it takes: no request has it."""
