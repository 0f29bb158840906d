"""serving.properties and what was chosen -> ModelSpec, each field with where its value was found.

Foreign words and units end here: milliseconds become seconds, devices become instance groups. Source: spec sheet
`djl`, sections 3, 7.2, 7.5, 7.8 and 9.5.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from trivium.servers.djl.folder.engine_choice import Choice
from trivium.servers.djl.folder.environment import EnvironmentRules, own_environment
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.folder.groups import GroupTranslation
from trivium.servers.djl.folder.parameters import parameters
from trivium.servers.djl.words.engines import SKLEARN_HANDLER
from trivium.servers.djl.words.language_model_keys import DEFAULT_NAME, SERVED_NAME
from trivium.servers.djl.words.settings import DEFAULT_PRIORITY, PRIORITY_LEVELS, DjlSettings, Placed
from trivium.types import adapters
from trivium.types.metrics import ModelMetrics
from trivium.types.spec import (
    All,
    Batching,
    Defaults,
    Device,
    Dynamic,
    Handler,
    Join,
    Limits,
    MemoryNeed,
    ModelSpec,
    Origin,
    StandingCall,
    TranslatorSpec,
)

IN_FLIGHT = 1000
"""Requests that one worker of an asynchronous handler has in work at once, where the model says nothing. The original
has no bound.
"""

MOST_IN_BATCH = 999
"""A batched request numbers its items with three digits."""

HEADROOM_MB = 500
"""Megabytes that DJL leaves free, by its own default."""

_BATCH = ("batch_size", "max_dynamic_batch_size")
_ROLLING, _ROLLING_SIZE = "option.rolling_batch", "option.max_rolling_batch_size"
ROLLING_SIZE = 32
JOINS = {
    "none": Join.ROWS,
    "stack": Join.STACK,
    "stackbatchifier": Join.STACK,
    "padding": Join.PAD,
    "paddingstackbatchifier": Join.PAD,
}
"""Batchifiers, by their words and by the names of DJL's own classes."""

_OURS = Limits()
Value = TypeVar("Value")


class Translation:
    """One folder's; `spec` is made once. Errors gather in `settings`."""

    def __init__(
        self,
        settings: DjlSettings,
        folder: DjlModelFolder,
        choice: Choice,
        defaults: Defaults,
        rules: EnvironmentRules,
        translator: Placed[TranslatorSpec] | None = None,
    ) -> None:
        self._translator = translator
        self._settings = settings
        self._folder = folder
        self._choice = choice
        self._defaults = defaults
        self._rules = rules
        self._is_python = choice.engine.value.runs_handlers
        self._origin: dict[str, Origin] = {}
        self._groups = GroupTranslation(settings, folder, choice, defaults, rules.threads, self._origin)

    def spec(self) -> ModelSpec:
        """The spec, without what is to be reported."""
        folder, choice, settings = self._folder, self._choice, self._settings
        groups = self._groups.translate()
        memory = self._memory({group.device for group in groups})
        own = {**parameters(settings, choice.engine.value, folder, groups), **choice.parameters}
        batching = self._batching()
        spec = ModelSpec(
            name=folder.name,
            version="1",
            is_versioned=False,
            in_turns=True,
            version_policy=All(),
            root=choice.root.value if choice.root else folder.path,
            streams=choice.engine.value.generates or self._streams(),
            engine=self._from("engine", choice.engine).engine,
            entry=self._from("entry", choice.entry),
            batching=batching,
            scheduling=self._scheduling(),
            groups=groups,
            limits=self._limits(memory),
            metrics=self._metrics(),
            parameters={name: self._from(f"parameters[{name}]", value) for name, value in own.items()},
            handler=self._handler() if self._is_python else None,
            functions=adapters.FUNCTIONS if self._takes_adapters else (),
            standing=tuple(self._adapters()) if self._takes_adapters else (),
            translator=self._translated(),
            details=choice.checkpoint.details if choice.checkpoint else {},
            aliases=self._aliases(own),
            origin=self._origin,
        )
        self._rule("the name of the folder or archive", "name")
        self._rule("rule for a folder without a version", "version", "version_policy")
        self._origin["root"] = choice.root.origin if choice.root else Origin(str(folder.path), "")
        self._rule("option.enable_lora, and the folder adapters", "functions", "standing")
        if choice.checkpoint:
            self._origin |= choice.checkpoint.origin()
        return spec

    def _aliases(self, parameters: Mapping[str, Placed[str]]) -> tuple[str, ...]:
        """Return how clients of OpenAI's API may call a model that generates."""
        if not self._choice.engine.value.generates:
            return ()
        named = parameters.get(SERVED_NAME)
        if named is None:
            self._rule("rule: LMI calls its model so", "aliases")
            return (DEFAULT_NAME,)
        return (self._from("aliases", named),)

    def _streams(self) -> bool:
        """Do answers of a static batch leave in pieces?"""
        told = self._choice.parameters.get("enable_streaming")
        return told is not None and told.value != "false"

    def _translated(self) -> TranslatorSpec | None:
        if self._translator is None:
            return None
        properties = self._settings.properties
        for key in self._translator.value.arguments:
            file, line = properties.place(key)
            self._origin[f"translator.arguments[{key}]"] = Origin(file, key, line)
        return self._from("translator", self._translator)

    @property
    def _takes_adapters(self) -> bool:
        """Tell whether its code, or the engine of language models, registers adapters."""
        return (self._is_python or self._choice.engine.value.generates) and self._settings.takes_adapters

    def _adapters(self) -> Iterator[StandingCall]:
        """Return the adapters that the model's folder holds. Raises OSError."""
        place = self._folder.path / adapters.FOLDER
        return adapters.in_folder(place) if adapters.FOLDER in self._folder.folders else iter(())

    def _batching(self) -> Batching:
        settings = self._settings
        if self._choice.engine.value.generates:
            self._rule("rule for generated text: the engine joins requests, step by step", "batching")
            return Batching()
        is_list = self._is_python or self._choice.engine.value.answers_bodies
        size = settings.number(_BATCH, 1)
        key = size.origin.key or _BATCH[0]
        if is_list and size.value > MOST_IN_BATCH:
            settings.fault(key, f"{key}={size.value}", f"at most {MOST_IN_BATCH}", "Write less.")
        if self._rolls() and size.value > 1:
            settings.notice(key, f"{key}={size.value}: a handler with {_ROLLING} forms its batch by itself")
            size = Placed(1, settings.text([_ROLLING]).origin)
        if self._choice.is_asynchronous.value and size.value > 1:
            settings.notice(key, f"{key}={size.value}: an asynchronous handler gets its requests one by one")
            size = Placed(1, self._choice.is_asynchronous.origin)
        if self._choice.entry.value == SKLEARN_HANDLER and size.value > 1:
            settings.notice(key, f"{key}={size.value}: {SKLEARN_HANDLER} answers requests one by one")
            size = Placed(1, self._choice.entry.origin)
        rows = self._from("batching.max_rows", size)
        self._origin["batching.merge"] = size.origin
        self._rule("rule: clients send whole tensors", "batching.batch_axis")
        self._rule("rule: a batch is a list of requests", "batching.join")
        join = Join.ROWS if is_list else self._from("batching.join", self._join(size.value))
        if join is Join.ROWS and not is_list:
            rows = 1  # as in the original, such a batch runs item by item
        return Batching(False, rows, rows > 1, join)

    def _join(self, size: int) -> Placed[Join]:
        """Return how a native engine puts requests together: DJL's default is to stack them where there may be several,
        or where a translator makes them, and otherwise to leave them as they are.
        """
        settings, key = self._settings, "batchifier"
        stacks = size > 1 or self._translator is not None
        written = settings.text([key], "stack" if stacks else "none")
        join = JOINS.get(written.value.lower().rpartition(".")[2])
        if join is None and "." in written.value:
            found = f"{key}={written.value}, a class in Java, which does not run here"
            settings.fault(key, found, "stack, padding or none", "Write one of them, or remove the line.")
        return Placed(join or Join.ROWS, written.origin)

    def _scheduling(self) -> Dynamic:
        delay = self._settings.number(("max_batch_delay", "option.max_batch_delay"), 100)
        levels = ("scheduling.levels", "scheduling.default_level")
        self._rule(f"the header x-priority: 1 to {PRIORITY_LEVELS}, {DEFAULT_PRIORITY} by default", *levels)
        if self._choice.engine.value.generates:
            delay = Placed(0, Origin("rule for generated text: a request joins at the next step", ""))
        seconds = self._from("scheduling.max_delay", delay) / 1000
        return Dynamic(max_delay=seconds, levels=PRIORITY_LEVELS, default_level=DEFAULT_PRIORITY)

    def _metrics(self) -> ModelMetrics:
        settings = self._settings
        keys = ("log_model_metric", "log_request_metric")
        if not any(settings.switch(key).value for key in keys):
            return ModelMetrics()
        return ModelMetrics(
            log_every=self._from("metrics.log_every", settings.number(["metrics_aggregation"], 1000))
        )

    def _memory(self, devices: Collection[Device]) -> tuple[MemoryNeed, ...]:
        """Return what is to be free. DJL's head-room holds where a model asks for memory, and its server's always."""
        needs: list[MemoryNeed] = []
        settings = self._settings
        for device in (Device.CPU, Device.GPU):
            prefixes = ("",) if device is Device.CPU else ("gpu.", "")
            keys = [[f"{of}{kind}_memory_mb" for of in prefixes] for kind in ("required", "reserved")]
            required = settings.number(keys[0], 0)
            reserved = settings.number(keys[1], HEADROOM_MB if required.value else 0)
            if (device is Device.CPU or device in devices) and (required.value or reserved.value):
                field = f"limits.memory[{len(needs)}]"
                self._origin |= {f"{field}.required": required.origin, f"{field}.reserved": reserved.origin}
                needs.append(MemoryNeed(device, required.value * 2**20, reserved.value * 2**20))
        return tuple(needs)

    def _limits(self, memory: tuple[MemoryNeed, ...]) -> Limits:
        settings = self._settings
        queue = settings.number(
            ["job_queue_size"], self._defaults.queue_items, why="the server's default bound"
        )
        threshold = settings.number(
            ["retry_threshold"], -1, "the server's default (DJL gives up at the first death)"
        )
        made = Limits(
            queue_items=self._from("limits.queue_items", queue),
            memory=memory,
            fills_early=True,
        )
        if threshold.value >= 0:
            survived = self._from("limits.deaths", threshold)
            made = replace(made, restarts=self._from("limits.restarts", threshold), deaths=survived)
        run = settings.number(["option.predict_timeout"], 120)
        deadline = float(self._from("limits.run_deadline", run))
        made = replace(made, run_deadline=deadline)
        engine = self._choice.engine.value
        if not (self._is_python or engine.generates or engine.answers_bodies):
            self._rule("--startup-timeout of the server", "limits.startup_deadline")
            return replace(made, startup_deadline=self._defaults.startup_deadline)
        start = settings.number(["option.model_loading_timeout"], 240)
        return replace(made, startup_deadline=float(self._from("limits.startup_deadline", start)))

    def _handler(self) -> Handler:
        settings, folder = self._settings, self._folder
        python = settings.text(["option.pythonExecutable"], "", "the server's own interpreter")
        environment = dict(settings.environment("option.env"))
        if self._rules.threads:
            environment.setdefault("OMP_NUM_THREADS", str(self._rules.threads))
        if python.value and shutil.which(python.value, path=environment.get("PATH")) is None:
            found = f"{python.value}, which is not there or may not be run"
            hint = "Give the path of a Python 3.10 or newer, or leave it out for the server's own."
            settings.fault(python.origin.key, found, "an interpreter", hint)
        self._rule("serving.properties", "handler.settings", "handler.environment")
        self._rule("the model directory", "handler.path", "handler.directory")
        self._rule("requirements.txt and option.enable_venv", "handler.own")
        return Handler(
            python=self._from("handler.python", python),
            function=self._from("handler.function", self._choice.function),
            path=(folder.path,),
            directory=folder.path,
            environment=environment,
            settings={"properties": settings.options(), **self._in_flight(), **self._slots()},
            own=own_environment(settings, folder, self._rules, self._defaults.installs),
        )

    def _in_flight(self) -> dict[str, object]:
        """Return how many requests a worker has in work at once, of an asynchronous handler."""
        settings, key = self._settings, "trivium_in_flight"
        bound = settings.number([key], IN_FLIGHT, why="the server's own bound")
        if not self._choice.is_asynchronous.value:
            if bound.origin.key:
                settings.notice(key, f"{key} has no effect: the handler is not asynchronous")
            return {}
        return {"in_flight": self._from("handler.settings[in_flight]", bound)}

    def _slots(self) -> dict[str, object]:
        """Return how many requests a worker has in work at once, of a handler that forms a rolling batch by itself."""
        if not self._rolls():
            return {}
        size = self._settings.number([_ROLLING_SIZE], ROLLING_SIZE, why="DJL's default")
        return {"slots": self._from("handler.settings[slots]", size)}

    def _rolls(self) -> bool:
        """Does the handler get all requests that have not ended, again and again?"""
        settings = self._settings
        word = settings.text([_ROLLING]).value.lower()
        if not self._is_python or word in ("", "disable"):
            return False
        if self._choice.is_asynchronous.value:
            found = f"{_ROLLING}={word}: the handler is asynchronous, and has its requests at once already"
            settings.fault(_ROLLING, found, "one of the two", f"Remove {_ROLLING}, or option.async_mode.")
        return True

    def _from(self, field: str, setting: Placed[Value]) -> Value:
        self._origin[field] = setting.origin
        return setting.value

    def _rule(self, rule: str, *fields: str) -> None:
        self._origin.update({field: Origin(rule, "") for field in fields})
