"""Our own engines in a worker process: the server's setup for it, and the adapter that runs it there.

It speaks the frames of `trivium_child`, under the server's own interpreter: where a model file may crash its
engine, or an engine holds the interpreter's lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from trivium.codecs import binary
from trivium.core.workers.execution import execute
from trivium.types.datatype import BY_NAME
from trivium.types.errors import ServeError
from trivium.types.interfaces import Engine
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Outcome, Placement, Program
from trivium.types.spec import ModelSpec
from trivium_child import values
from trivium_child.adapter import Adapter
from trivium_child.main import serve


def program(
    command: Sequence[str], environment: Mapping[str, str], spec: ModelSpec, placement: Placement
) -> Program:
    """The worker of one instance; `command` ends up in `run`."""
    plain = replace(
        spec, root=spec.root.absolute(), foreign=None, origin={}, reports=(), warmups=(), handler=None
    )
    setup = {
        "dialect": "engine",
        "path": [],
        "spec": msgspec.to_builtins(plain, enc_hook=_as_text),
        "placement": msgspec.to_builtins(placement),
    }
    return Program(tuple(command), Path.cwd(), environment, setup)


def run(arguments: Sequence[str], engines: Mapping[str, Engine]) -> None:
    """What the worker process does."""

    def choose(told: dict[str, Any]) -> Any:
        spec = msgspec.convert(told["spec"], ModelSpec, dec_hook=_as_path)
        placement = msgspec.convert(told["placement"], Placement)
        return lambda setup, host: EngineAdapter(engines[spec.engine], spec, placement)

    serve(list(arguments), choose)


class EngineAdapter(Adapter):
    """Runs an engine's runner as a handler."""

    def __init__(self, engine: Engine, spec: ModelSpec, placement: Placement) -> None:
        try:
            self._runner = engine.open(spec, placement)
        except ServeError as error:
            raise values.Failure(error.message, error.code.value) from error
        self._model = spec.name

    def run(self, items: list[values.Item]) -> list[values.Outcome]:
        """An outcome per item."""
        batch = Batch([], [], [])
        for item in items:
            assert isinstance(item.payload, list), "the door lets only tensors in"
            tensors = tuple(
                binary.decode(t.name, BY_NAME[t.datatype], t.shape, memoryview(t.data)) for t in item.payload
            )
            batch.items.append(item.number)
            batch.operations.append(Infer(self._model, Tensors(tensors), id=item.request_id))
            batch.rows.append(item.rows)
        return [_outcome(outcome) for outcome in execute(self._runner, batch).outcomes]

    def close(self) -> None:
        """Free the model."""
        self._runner.close()


def _outcome(outcome: Outcome) -> values.Outcome:
    if isinstance(outcome, ServeError):
        return values.Failure(outcome.message, outcome.code.value, outcome.status)
    assert isinstance(outcome, Tensors)
    return [values.Tensor(t.name, t.datatype.wire, t.shape, binary.encode(t)) for t in outcome.items]


def _as_text(value: object) -> str:
    return str(value)


def _as_path(kind: type, value: object) -> Path:
    assert kind is Path
    return Path(str(value))
