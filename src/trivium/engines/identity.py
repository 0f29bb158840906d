"""The built-in identity engine: gives back what it gets, for tests, first steps and the bench.

It can take as long as it is told to, which makes it the slow model of tests and of queueing experiments. The
parameter `execute_delay_ms` is that of Triton's identity backend; `execute_delay_ms_per_row` is ours.
"""

import logging
import time

from msgspec.structs import replace

from trivium.settings.parameters import place_of
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Payload, PayloadKind, Tensors
from trivium.types.running import Batch, Outcome, Placement, Ran
from trivium.types.spec import Isolation, ModelFacts, ModelSpec

log = logging.getLogger(__name__)

KNOWN_PARAMETERS = frozenset({"execute_delay_ms", "execute_delay_ms_per_row"})

MOST_OVERSLEEP = 0.001
"""Seconds; a pause of the whole machine is no habit of its timers."""


class IdentityRunner:
    """Answers input i as output i, uncopied, after `delay` seconds plus `delay_per_row` for every row."""

    def __init__(self, spec: ModelSpec) -> None:
        pairs = zip(spec.inputs, spec.outputs, strict=False)
        self._outputs = {source.name: target.name for source, target in pairs}
        self._delay = _seconds(spec, "execute_delay_ms")
        self._delay_per_row = _seconds(spec, "execute_delay_ms_per_row")
        self._sleeps = self._delay + self._delay_per_row > 0
        self._oversleep = 0.0

    def run(self, batch: Batch) -> Ran:
        """The inputs of each item under the names of the outputs."""
        if self._sleeps:
            self._sleep(self._delay + self._delay_per_row * sum(batch.rows))
        return Ran([self._renamed(operation.payload) for operation in batch.operations])

    def close(self) -> None:
        """There is nothing to free."""

    def _sleep(self, seconds: float) -> None:
        """A thread oversleeps, more on a virtual machine; asking for less by what it did so far, the mean is right."""
        due = time.monotonic() + seconds
        time.sleep(max(seconds - self._oversleep, 0.0))
        late = time.monotonic() - due
        self._oversleep = min(max(self._oversleep + 0.1 * late, 0.0), MOST_OVERSLEEP)

    def _renamed(self, payload: Payload) -> Outcome:
        assert isinstance(payload, Tensors)
        names, items = self._outputs, payload.items
        if len(items) == 1:
            only = items[0]
            return Tensors((replace(only, name=names[only.name]),))
        return Tensors(tuple([replace(t, name=names[t.name]) for t in items]))


class IdentityEngine:
    """The descriptor. It opens no file; inputs and outputs are those of the configuration, in order."""

    name = "identity"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    isolation: tuple[Isolation, ...] = (Isolation.THREAD, Isolation.INLINE)
    has_facts = False

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the configuration says: there is no model file."""
        return ModelFacts(spec.inputs, spec.outputs, batchable=True)

    def open(self, spec: ModelSpec, placement: Placement) -> IdentityRunner:
        """LOAD_FAILED where outputs are not the inputs again, or a delay is not a number."""
        sources = [(tensor.datatype, tensor.dims) for tensor in spec.inputs]
        targets = [(tensor.datatype, tensor.dims) for tensor in spec.outputs]
        if sources != targets:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}': engine 'identity' gives back its inputs, so outputs must have the inputs' "
                f"datatypes and dims in the same order; the inputs are {sources}, the outputs {targets}.",
            )
        for name in spec.parameters.keys() - KNOWN_PARAMETERS:
            known = ", ".join(sorted(KNOWN_PARAMETERS))
            log.warning(
                "%s: parameter '%s' means nothing to engine 'identity'; it knows %s", spec.name, name, known
            )
        return IdentityRunner(spec)


def _seconds(spec: ModelSpec, key: str) -> float:
    text = spec.parameters.get(key, "0")
    try:
        value = float(text) / 1000
    except ValueError:
        value = -1.0
    if not 0 <= value < 3600:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': parameter '{key}' is '{text}'{place_of(spec, key)}; expected milliseconds from 0 "
            "to 3600000.",
        )
    return value


ENGINE = IdentityEngine()
