"""The response cache: answers that are kept, of all models together, and given again to the same request.

A model version that caches has a section of it, which goes when the version does. A hit is answered before the queue
is looked at; a miss goes its way, and what it is answered is kept, if it went well and in one part.
"""

import itertools
import logging
from collections.abc import Callable, Mapping

from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.response_cache_policy import LastUsed, digest, size_of
from trivium.core.request import Item
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import ResponsePart
from trivium.types.payload import Scalar, Tensors
from trivium.types.spec import ModelSpec
from trivium.types.state import ItemState

log = logging.getLogger(__name__)

Key = tuple[int, bytes]
Answer = tuple[Tensors, Mapping[str, Scalar]]


class ResponseCache:
    """One per server, of `limit` bytes at most. Used on the loop only."""

    def __init__(self, limit: int) -> None:
        self.kept: LastUsed[Answer] = LastUsed(limit)
        self.hits = self.misses = 0
        self.lookup_seconds = self.insertion_seconds = 0.0
        self._sections = itertools.count(1)

    def section(self, spec: ModelSpec, now: Callable[[], float]) -> "Section":
        """Make the cache of one loaded version. Two of the same name have nothing in common: the files may have
        changed. Raises LOAD_FAILED for one that may answer in several parts.
        """
        if spec.streams:
            raise ServeError(
                Code.LOAD_FAILED,
                f"The answers of model '{spec.name}' cannot be cached: it may answer a request in several parts. "
                "Switch its response cache off.",
                info=ErrorInfo.of(reasons.NOT_CACHEABLE, model=spec.name, version=spec.version),
            )
        return Section(self, next(self._sections), spec.name, spec.version, now)


class Section:
    """Caches the answers of one loaded version."""

    def __init__(
        self, cache: ResponseCache, number: int, model: str, version: str, now: Callable[[], float]
    ) -> None:
        self._cache = cache
        self._number = number
        self._model = model
        self._version = version
        self._now = now
        self._is_closed = False

    def answers(self, item: Item, counters: VersionCounters) -> bool:
        """End an item that was let in with what is kept for it. Where nothing is, its answer will be."""
        infer = item.operation
        if type(infer.payload) is not Tensors or infer.sequence is not None:
            return False
        cache = self._cache
        began = self._now()
        key = self._number, digest(self._model, self._version, infer)
        found = cache.kept.get(key)
        ended = self._now()
        cache.lookup_seconds += ended - began
        if found is None:
            cache.misses += 1
            counters.missed(ended - began)
            item.sink = Keeper(self, key, item.sink, counters).take
            return False
        cache.hits += 1
        item.state = ItemState.ENDED
        counters.cached(item, ended - began, ended)
        payload, parameters = found
        try:
            item.sink(ResponsePart(payload, None, None, True, parameters, self._model, self._version))
        except Exception:
            log.exception("the receiver of an answer of model '%s' failed", self._model)
        return True

    def keep(self, key: Key, payload: Tensors, parameters: Mapping[str, Scalar]) -> float:
        """Keep a copy, if there is room for it; the seconds that took."""
        if self._is_closed:
            return 0.0
        began = self._now()
        size = size_of(payload)
        if size <= self._cache.kept.limit:
            self._cache.kept.put(key, (payload.copied(), dict(parameters)), size)
        spent = self._now() - began
        self._cache.insertion_seconds += spent
        return spent

    def close(self) -> None:
        """Nothing of it is kept any more, nor will be."""
        self._is_closed = True
        self._cache.kept.drop(lambda key: isinstance(key, tuple) and key[0] == self._number)


class Keeper:
    """Stands before the receiver of an answer that may be kept: one part, final, without an error."""

    __slots__ = ("_counters", "_is_first", "_key", "_section", "_sink")

    def __init__(self, section: Section, key: Key, sink: Sink, counters: VersionCounters) -> None:
        self._section = section
        self._key = key
        self._sink = sink
        self._counters = counters
        self._is_first = True

    def take(self, part: ResponsePart) -> None:
        """Keep it, and pass it on."""
        if part.final and self._is_first and type(part.payload) is Tensors:
            self._counters.kept(self._section.keep(self._key, part.payload, part.parameters))
        self._is_first = False
        self._sink(part)
