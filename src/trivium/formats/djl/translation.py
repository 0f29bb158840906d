"""serving.properties and what was chosen -> ModelSpec, each field with where its value was found.

Foreign words and units end here: milliseconds become seconds, devices become instance groups. Source: spec sheet
`djl`, sections 3, 7.2, 7.5, 7.8 and 9.5.
"""

from collections.abc import Iterator
from typing import TypeVar

from trivium.dialects.djl import adapters
from trivium.dialects.djl.settings import DEFAULT_PRIORITY, PRIORITY_LEVELS, DjlSettings, Setting
from trivium.formats.djl.engine_choice import Choice
from trivium.formats.djl.folder import DjlModelFolder
from trivium.formats.djl.parameters import parameters
from trivium.types.spec import (
    MOST_INSTANCES,
    All,
    Batching,
    Defaults,
    Device,
    Dynamic,
    Handler,
    InstanceGroup,
    Limits,
    ModelSpec,
    Origin,
    StandingCall,
)

MOST_IN_BATCH = 999
"""A batched request numbers its items with three digits."""

_BATCH = ("batch_size", "max_dynamic_batch_size")
_OURS = Limits()
Value = TypeVar("Value")


class Translation:
    """One folder's; `spec` is made once. Errors gather in `settings`."""

    def __init__(
        self, settings: DjlSettings, folder: DjlModelFolder, choice: Choice, defaults: Defaults
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._choice = choice
        self._defaults = defaults
        self._is_python = choice.engine.value.runs_handlers
        self._origin: dict[str, Origin] = {}

    def spec(self) -> ModelSpec:
        """The spec, without what is to be reported."""
        folder, choice, settings = self._folder, self._choice, self._settings
        own = parameters(settings, choice.engine.value)
        batching = self._batching()
        spec = ModelSpec(
            name=folder.name,
            version="1",
            is_versioned=False,
            in_turns=True,
            version_policy=All(),
            root=folder.path,
            engine=self._from("engine", choice.engine).engine,
            entry=self._from("entry", choice.entry),
            batching=batching,
            scheduling=self._scheduling(batching),
            groups=tuple(self._groups()),
            limits=self._limits(),
            parameters={name: self._from(f"parameters[{name}]", value) for name, value in own.items()},
            handler=self._handler() if self._is_python else None,
            functions=adapters.FUNCTIONS if self._is_python and settings.takes_adapters else (),
            standing=tuple(self._adapters()) if self._is_python and settings.takes_adapters else (),
            origin=self._origin,
        )
        self._rule("the name of the folder or archive", "name")
        self._rule("rule for a folder without a version", "version", "version_policy")
        self._rule(str(folder.path), "root")
        self._rule("option.enable_lora, and the folder adapters", "functions", "standing")
        return spec

    def _adapters(self) -> Iterator[StandingCall]:
        """Yield the adapters that the model's folder holds. Raises OSError."""
        place = self._folder.path / adapters.FOLDER
        for entry in sorted(place.iterdir()) if adapters.FOLDER in self._folder.folders else ():
            if entry.is_dir() and not entry.name.startswith("."):
                yield adapters.found(entry.name, str(entry))

    def _batching(self) -> Batching:
        settings = self._settings
        size = settings.number(_BATCH, 1)
        key = size.origin.key or _BATCH[0]
        if self._is_python and size.value > MOST_IN_BATCH:
            settings.fault(key, f"{key}={size.value}", f"at most {MOST_IN_BATCH}", "Write less.")
        if not self._is_python:
            size = self._native_batch(size, key)
        rows = self._from("batching.max_rows", size)
        self._origin["batching.merge"] = size.origin
        self._rule("rule: requests are put together, never their tensors", "batching.batch_axis")
        return Batching(False, rows, rows > 1)

    def _native_batch(self, size: Setting[int], key: str) -> Setting[int]:
        """Return the batch size of a native engine: 1 without a batchifier, since such a batch runs item by item."""
        settings = self._settings
        batchifier = settings.text(["batchifier"], "stack" if size.value > 1 else "none")
        if batchifier.value.lower() == "none":
            return Setting(1, batchifier.origin)
        if size.value > 1:
            found = f"{key}={size.value}: the batchifier {batchifier.value} is not supported in this version"
            settings.fault(key, found, "1, or batchifier=none", "Let clients send the batch dimension.")
        return size

    def _scheduling(self, batching: Batching) -> Dynamic:
        delay = self._settings.number(("max_batch_delay", "option.max_batch_delay"), 100, 0)
        levels = ("scheduling.levels", "scheduling.default_level")
        self._rule(f"the header x-priority: 1 to {PRIORITY_LEVELS}, {DEFAULT_PRIORITY} by default", *levels)
        if not batching.merge:
            return Dynamic(levels=PRIORITY_LEVELS, default_level=DEFAULT_PRIORITY)
        seconds = self._from("scheduling.max_delay", delay) / 1000
        return Dynamic(max_delay=seconds, levels=PRIORITY_LEVELS, default_level=DEFAULT_PRIORITY)

    def _groups(self) -> Iterator[InstanceGroup]:
        settings = self._settings
        idle = settings.number(("max_idle_time", "option.max_idle_time"), 60, 0)
        for index, device in enumerate(settings.devices(self._defaults.gpus)):
            kind, number = device.value
            is_gpu = kind is Device.GPU
            default = 1 if is_gpu else self._defaults.cpus
            why = "DJL's default: one per GPU" if is_gpu else "DJL's default: one per CPU"
            most = settings.number((f"{kind.value}.maxWorkers", "maxWorkers"), default, 1, why)
            least = settings.number((f"{kind.value}.minWorkers", "minWorkers"), 1)
            if most.value > MOST_INSTANCES:
                found, expected = f"{most.origin.key}={most.value}", f"a number from 1 to {MOST_INSTANCES}"
                settings.fault(
                    most.origin.key, found, expected, "Write how many this machine can run at once."
                )
            if least.value > most.value:
                found = (
                    f"{least.origin.key}={least.value}, and at most {most.value} are allowed ({most.origin})"
                )
                settings.notice(least.origin.key, found, "As many as allowed are kept; set maxWorkers, too.")
            group = f"groups[{index}]."
            self._origin[f"{group}device"] = self._origin[f"{group}device_ids"] = device.origin
            maximum = self._from(f"{group}maximum", most)
            yield InstanceGroup(
                name=f"{self._folder.name}_{kind.value}{number if is_gpu else ''}",
                minimum=min(self._from(f"{group}minimum", least), maximum),
                maximum=maximum,
                idle_seconds=float(self._from(f"{group}idle_seconds", idle)),
                device=kind,
                device_ids=(number,) if is_gpu else (),
            )

    def _limits(self) -> Limits:
        settings = self._settings
        queue = settings.number(
            ["job_queue_size"], self._defaults.queue_items, why="the server's default bound"
        )
        restarts = settings.number(
            ["retry_threshold"], _OURS.restarts, 0, "the server's default (DJL gives up at the first)"
        )
        bounds = {
            "queue_items": self._from("limits.queue_items", queue),
            "restarts": self._from("limits.restarts", restarts),
        }
        run = settings.number(["option.predict_timeout"], 120)
        deadline = float(self._from("limits.run_deadline", run))
        if not self._is_python:
            return Limits(run_deadline=deadline, **bounds)
        start = settings.number(["option.model_loading_timeout"], 240)
        return Limits(
            run_deadline=deadline,
            startup_deadline=float(self._from("limits.startup_deadline", start)),
            **bounds,
        )

    def _handler(self) -> Handler:
        settings, folder = self._settings, self._folder
        python = settings.text(["option.pythonExecutable"], "", "the server's own interpreter")
        self._rule("serving.properties", "handler.settings", "handler.environment")
        self._rule("the model directory", "handler.path", "handler.directory")
        return Handler(
            python=self._from("handler.python", python),
            function=self._from("handler.function", self._choice.function),
            path=(folder.path,),
            directory=folder.path,
            environment=settings.environment("option.env"),
            settings={"properties": settings.options()},
        )

    def _from(self, field: str, setting: Setting[Value]) -> Value:
        self._origin[field] = setting.origin
        return setting.value

    def _rule(self, rule: str, *fields: str) -> None:
        self._origin.update({field: Origin(rule, "") for field in fields})
