"""Drives OpenVINO GenAI's `ContinuousBatchingPipeline`: ids in, ids out, a step at a time. The one place that knows it.

A text is never given to it. What it gets is checked here: a tensor of another type makes no error, and ends all that is
there. After a step that raised it is of no use any more, and is opened anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from trivium.codecs.openvino_words import plain_words
from trivium.engines.hf.answers import ChosenToken
from trivium.types.errors import said_by


class HandleState(Enum):
    """Says what has become of a sequence."""

    RUNS = "runs"
    ENDED = "ended"
    IGNORED = "ignored"
    """There was no memory for its keys and values, now."""


class PipelineFault(Exception):
    """Raised where the library raises, in its words."""


@dataclass(frozen=True, slots=True)
class GenaiLibrary:
    """The parts of the library: its module, and what makes a tensor of an array."""

    module: Any
    tensor: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """Says how a pipeline is opened: which folder or file, by which properties, with so many `blocks` for keys and
    values, and at most so many `tokens` in a step; `keeps`: beginnings of prompts are kept for others.
    """

    place: str
    properties: Mapping[str, object]
    blocks: int
    tokens: int
    keeps: bool


class GenaiPipeline:
    """An opened model. One thread uses it."""

    def __init__(self, library: GenaiLibrary, plan: PipelinePlan) -> None:
        self._library = library
        self._plan = plan
        self._number = 0
        self._pipeline: Any = None
        self.reopen()

    def reopen(self) -> None:
        """Open the model, anew if it was open: whatever it computed is forgotten. Raises PipelineFault."""
        self._pipeline = None
        scheduler = self._library.module.SchedulerConfig()
        scheduler.dynamic_split_fuse = True
        scheduler.num_kv_blocks = self._plan.blocks
        scheduler.max_num_batched_tokens = self._plan.tokens
        scheduler.enable_prefix_caching = self._plan.keeps
        properties = dict(self._plan.properties)
        try:
            opened = self._library.module.ContinuousBatchingPipeline
            self._pipeline = opened(self._plan.place, scheduler, "CPU", properties)
        except Exception as error:
            raise _fault(error) from error

    def begin(self, ids: Sequence[int], settings: Mapping[str, object]) -> "SequenceHandle":
        """Have a sequence computed in the next steps. Raises PipelineFault, and ValueError for ids that are none."""
        array = np.asarray([ids])
        if array.dtype != np.int64 or array.ndim != 2 or not array.size or int(array.min()) < 0:
            raise ValueError("the ids of a prompt are one row of whole numbers from 0")
        self._number += 1
        try:
            config = self._library.module.GenerationConfig()
            for name, value in settings.items():
                setattr(config, name, value)
            made = self._pipeline.add_request(self._number, self._library.tensor(array), config)
        except Exception as error:
            raise _fault(error) from error
        return SequenceHandle(made, self._library.module.GenerationStatus)

    def step(self) -> None:
        """Compute one step for all sequences that have begun. It holds the interpreter. Raises PipelineFault."""
        try:
            self._pipeline.step()
        except Exception as error:
            raise _fault(error) from error

    def close(self) -> None:
        """Free the model."""
        self._pipeline = None


class SequenceHandle:
    """One sequence of a pipeline. Whoever lets go of it ends it."""

    def __init__(self, made: Any, status: Any) -> None:
        self._made = made
        self._status = status

    def read(self) -> list[ChosenToken]:
        """Return the tokens that have come since the last time."""
        found: list[ChosenToken] = []
        while self._made.can_read():
            for output in self._made.read().values():
                ids, scores = output.generated_ids, output.generated_log_probs
                padded = [*scores, *[None] * (len(ids) - len(scores))]
                found += [ChosenToken(int(id), score) for id, score in zip(ids, padded, strict=True)]
        return found

    @property
    def state(self) -> HandleState:
        """Return what has become of it."""
        status = self._made.get_status()
        if status == self._status.RUNNING:
            return HandleState.RUNS
        return HandleState.IGNORED if status == self._status.IGNORED else HandleState.ENDED

    def cancel(self) -> None:
        """Have no more computed; the next step gives its memory back."""
        self._made.cancel()


def _fault(error: Exception) -> PipelineFault:
    return PipelineFault(plain_words(said_by(error)))
