"""Finds the engine of a model: as it is, or with the model's translator around it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trivium.translators.runner import TranslatedRunner
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding
from trivium.types.interfaces import ChoosesIsolation, Engine, FindEngine, OpensRunner, Runner, TranslatorKind
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelFacts, ModelSpec


class TranslatedEngine:
    """Opens the runners of an engine with a translator around them. Implements `OpensRunner`, `SupportsCheck`
    and `ChoosesIsolation`.

    It runs where both can, and by default where the translator would rather.
    """

    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS, PayloadKind.RAW})

    def __init__(self, engine: Engine, opens: OpensRunner, kind: TranslatorKind) -> None:
        self._engine = engine
        self._opens = opens
        self._kind = kind
        self.name = engine.name
        self.has_facts = engine.has_facts
        self.isolation: tuple[Isolation, ...] = tuple(
            one for one in kind.isolation if one in engine.isolation
        )

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the engine makes of the model file."""
        return self._engine.facts(spec)

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`."""
        return self._kind.check(spec)

    def default_isolation(self, spec: ModelSpec) -> Isolation:
        """See `ChoosesIsolation`: where the translator has to be, else where the engine wants such a model, if the
        translator can be there.
        """
        engine, kind = self._engine, self._kind
        chosen = kind.default_isolation(spec) if isinstance(kind, ChoosesIsolation) else self.isolation[0]
        if chosen in self.isolation[1:]:
            return chosen
        if (
            isinstance(engine, ChoosesIsolation)
            and (wanted := engine.default_isolation(spec)) in self.isolation
        ):
            return self.isolation[0] if wanted is engine.isolation[0] else wanted
        return self.isolation[0]

    def open(self, spec: ModelSpec, placement: Placement) -> Runner:
        """Open one instance: the translator first, which is cheaper, then the model."""
        translator = self._kind.open(spec)
        assert spec.translator is not None, "the spec names a translator"
        own = spec.translator.inputs
        try:
            runner = self._opens.open(replace(spec, inputs=own) if own else spec, placement)
        except BaseException:
            translator.close()
            raise
        most_rows = max(spec.batching.max_rows, spec.translator.most_rows)
        return TranslatedRunner(runner, translator, most_rows, bool(own))


def engine_finder(engines: Mapping[str, Engine], kinds: Mapping[str, TranslatorKind]) -> FindEngine:
    """Make what finds engines among these, and translators among those of these `kinds`. It raises UNSUPPORTED for a
    model whose engine or translator is not among them.
    """

    def find(spec: ModelSpec) -> Engine:
        engine = engines.get(spec.engine)
        if engine is None:
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{spec.name}' wants engine '{spec.engine}' ({spec.origin.get('engine', 'as read')}); "
                f"this server has: {', '.join(sorted(engines))}. Convert it to a form that one of them runs, or "
                "write it as a handler in Python.",
                info=ErrorInfo.of(
                    reasons.NO_ENGINE, model=spec.name, version=spec.version, engine=spec.engine
                ),
            )
        return engine if spec.translator is None else _translated(engine, spec, spec.translator.name)

    def _translated(engine: Engine, spec: ModelSpec, name: str) -> Engine:
        kind = kinds.get(name)
        if kind is None:
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{spec.name}' wants the translator '{name}'; this server has: {', '.join(sorted(kinds))}.",
            )
        if not isinstance(engine, OpensRunner):
            raise ServeError(
                Code.UNSUPPORTED,
                f"Model '{spec.name}' has the translator '{name}', and its engine '{spec.engine}' runs a handler, "
                "which translates by itself. Remove the translator, or serve a model file.",
            )
        return TranslatedEngine(engine, engine, kind)

    return find
