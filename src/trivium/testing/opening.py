"""Finds the handler at a path, as a server would, and completes what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trivium.core.models.completion import remarked
from trivium.model_catalogue import MODELS
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.interfaces import Engine, Format, WorkerEngine
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement, WorkerCommand
from trivium.types.spec import Defaults, Device, Isolation, ModelSpec


@dataclass(frozen=True)
class FoundHandler:
    """Holds a model that is a handler, complete, and what its worker would be started with."""

    spec: ModelSpec
    takes: frozenset[PayloadKind]
    program: WorkerCommand


def find_handler(
    path: Path, model: str, device: str, parameters: Mapping[str, str], scratch: Path
) -> FoundHandler:
    """Return the handler at a path: the only model, or the one of this name, in its greatest version. Archives are
    unpacked into `scratch`. Raises NOT_FOUND, and LOAD_FAILED for what a server would not load.
    """
    form = next((one for one in MODELS.formats if one.claims(path)), None)
    if form is None:
        known = "; ".join(f"{one.name}: {one.expects}" for one in MODELS.formats)
        raise ServeError(Code.NOT_FOUND, f"{path} is no model that is known. Known are {known}.")
    spec = _read(form, path, model, Defaults(scratch=scratch, engine_parameters=parameters))
    engine: Engine = MODELS.find_engine(spec)
    takes = engine.takes
    engine_facts = engine.facts
    if not isinstance(engine, WorkerEngine) or spec.handler is None:
        raise ServeError(
            Code.UNSUPPORTED,
            f"Model '{spec.name}' is no handler: the engine {spec.engine} runs its file. Test it by "
            "trivium.serving(...), which serves it in this program.",
        )
    if spec.handler.completes:
        facts = engine_facts(spec)
        spec = form.finish(remarked(spec, facts.remarks), facts)
    kind, _, number = device.partition(":")
    placed = Device.CPU if kind == "cpu" else Device.GPU
    name = f"{spec.groups[0].name}_0" if spec.groups else f"{spec.name}_0"
    placement = Placement(name, Isolation.PROCESS, placed, int(number or 0))
    return FoundHandler(spec, takes, engine.program(spec, placement))


def _read(form: Format, path: Path, model: str, defaults: Defaults) -> ModelSpec:
    reading = form.read(path, defaults)
    wrong = next((one for one in reading.unreadable if model in ("", one.name)), None)
    found = [one for one in reading.specs if model in ("", one.name)]
    if wrong is not None and not found:
        raise ConfigError(wrong.findings)
    names = dict.fromkeys(one.name for one in reading.specs)
    if not found or (len(names) > 1 and not model):
        there = ", ".join(names) or "none"
        what = f"has no model '{model}'" if model else f"has {len(names)} models"
        raise ServeError(
            Code.NOT_FOUND, f"{path} {what}: {there}. Name one of them, by handler(path, model=...)."
        )
    chosen = max(found, key=lambda one: (int(one.version) if one.version.isdecimal() else 0, one.version))
    return replace(chosen)
