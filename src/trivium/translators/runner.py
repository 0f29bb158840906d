"""A runner around a runner: requests in a client's own form become tensors, and outputs become answers.

Tensors under the model's own names pass it by, unless clients have others than the model. Rows that fit together run
together, whichever requests they are from.
"""

from collections.abc import Iterator, Sequence
from time import monotonic

import msgspec

from trivium.translators.faults import refused
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.interfaces import Runner, SupportsInterrupt, Translator
from trivium.types.operations import Infer
from trivium.types.payload import Raw, Tensors
from trivium.types.running import Batch, Outcome, Ran, Translated

_Row = tuple[int, int]
"""Its request, by its place in the batch, and its place in that request."""


class TranslatedRunner:
    """Runs batches on `runner`, with `translator` before and after it; at most `most_rows` of them at once. With
    `translates_all` the translator is asked about tensors, too.
    """

    def __init__(
        self, runner: Runner, translator: Translator, most_rows: int, translates_all: bool = False
    ) -> None:
        self._runner = runner
        self._translator = translator
        self._most_rows = most_rows
        self._translates_all = translates_all

    def run(self, batch: Batch) -> Ran:
        """Return an outcome per item, in order. A fault of one item is its own."""
        outcomes: list[Outcome] = [None] * len(batch.items)
        is_asked = [self._translates_all or type(one.payload) is Raw for one in batch.operations]
        asked = [i for i, one in enumerate(is_asked) if one]
        plain = [i for i, one in enumerate(is_asked) if not one]
        translated = self._translated(batch, asked, outcomes)
        ready = monotonic()
        if plain:
            inner = Batch(
                [batch.items[i] for i in plain],
                [batch.operations[i] for i in plain],
                [batch.rows[i] for i in plain],
            )
            for i, outcome in zip(plain, self._runner.run(inner).outcomes, strict=True):
                outcomes[i] = outcome
        found = self._run_rows(batch, translated)
        began = monotonic()
        for i, one in translated.items():
            outcomes[i] = self._answer(one, [found[i, j] for j in range(len(one.rows))])
        return Ran(outcomes, ready, began)

    def interrupt(self) -> None:
        """See `SupportsInterrupt`: what runs is the model, for the most part."""
        if isinstance(self._runner, SupportsInterrupt):
            self._runner.interrupt()

    def close(self) -> None:
        """Free the translator and the model."""
        try:
            self._translator.close()
        finally:
            self._runner.close()

    def _translated(
        self, batch: Batch, asked: Sequence[int], outcomes: list[Outcome]
    ) -> dict[int, Translated]:
        """Return what requests became, by their places; those at fault get their outcomes."""
        if not asked:
            return {}
        made = self._translator.before([batch.operations[i] for i in asked])
        if len(made) != len(asked):
            raise ServeError(
                Code.MODEL_FAILED,
                f"The translator returned {len(made)} results for {len(asked)} requests; it must return one for each.",
            )
        found: dict[int, Translated] = {}
        for i, one in zip(asked, made, strict=True):
            if isinstance(one, ServeError):
                outcomes[i] = one
            else:
                found[i] = one
        return found

    def _run_rows(self, batch: Batch, translated: dict[int, Translated]) -> dict[_Row, Outcome]:
        found: dict[_Row, Outcome] = {}
        for group in _alike(translated):
            for at in range(0, len(group), self._most_rows):
                rows = group[at : at + self._most_rows]
                found.update(zip(rows, self._run_alike(batch, translated, rows), strict=True))
        return found

    def _run_alike(
        self, batch: Batch, translated: dict[int, Translated], rows: Sequence[_Row]
    ) -> list[Outcome]:
        operations: list[Infer] = [
            msgspec.structs.replace(batch.operations[i], payload=translated[i].rows[j]) for i, j in rows
        ]
        inner = Batch([batch.items[i] for i, _ in rows], operations, [1] * len(rows))
        try:
            return self._runner.run(inner).outcomes
        except ServeError as error:
            return [frameless(error)] * len(rows)

    def _answer(self, translated: Translated, outcomes: Sequence[Outcome]) -> Outcome:
        outputs: list[Tensors] = []
        for outcome in outcomes:
            if isinstance(outcome, ServeError):
                return _of_request(outcome)
            assert isinstance(outcome, Tensors), "models behind translators answer with tensors"
            outputs.append(outcome)
        try:
            return self._translator.after(translated, outputs)
        except ServeError as error:
            return frameless(error)


def _of_request(error: ServeError) -> ServeError:
    """Return the error of a row: tensors that the model cannot take come from the request, through the translator."""
    return frameless(refused(error)) if error.code is Code.INVALID else error


def _alike(translated: dict[int, Translated]) -> Iterator[list[_Row]]:
    """Yield the rows of all requests, those with the same names, datatypes and shapes together."""
    groups: dict[object, list[_Row]] = {}
    for i, one in translated.items():
        for j, row in enumerate(one.rows):
            key = tuple((tensor.name, tensor.datatype, tensor.shape) for tensor in row.items)
            groups.setdefault(key, []).append((i, j))
    yield from groups.values()
