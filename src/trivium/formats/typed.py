"""The format of typed handlers: a file and its class, a folder with an `app.py`, or a folder of such folders -> specs.

Nothing of the file is read here, and none of it runs in the server: a process of its own runs it once, and tells what
the hints of `predict` say (`finish`).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trivium.formats.each import read_each, unopened
from trivium.types.datatype import BY_NAME
from trivium.types.errors import frameless
from trivium.types.spec import (
    Batching,
    Defaults,
    Device,
    Dynamic,
    Handler,
    InstanceGroup,
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    TensorSpec,
)

ENGINE = "python-typed"
FILE = "app.py"
"""The file that makes a folder the model: its only class with a method `predict`."""

_OTHERS = ("serving.properties", "model.py", "config.pbtxt", "MAR-INF", "MLmodel", "config.json", "model.xml")
"""Files by which a folder is another format's, whatever else lies in it."""

_SUFFIX = ".py"
_RULES = {
    "version": "rule for a handler without a version",
    "version_policy": "rule for a handler without a version",
    "groups[0].name": "the model's name",
    "groups[0].minimum": "rule for a handler: one instance",
    "limits.queue_items": "the server's default bound",
    "limits.run_deadline": "--run-timeout of the server",
    "limits.startup_deadline": "--startup-timeout of the server",
    "handler.path": "the folder of the file",
    "handler.directory": "the folder of the file",
}


class TypedFormat:
    """Typed handlers: `app.py:Sentiment`, `app.py`, and folders with such a file."""

    name = "typed"
    expects = f"a file with a typed handler, as app.py or app.py:Sentiment, or a folder with {FILE}"

    def claims(self, path: Path) -> bool:
        """Return whether a handler's file is here by its name, or a store of such folders and of no others."""
        try:
            return bool(_files(path))
        except (OSError, ValueError):
            return False

    def hint(self, path: Path) -> str:
        """Say of the name of a class behind a file that is not there that it is not."""
        file, name = split(path)
        if name and file.suffix == _SUFFIX and not file.is_file():
            return f"There is no file {file}, of which {name} would be the class."
        return ""

    def places(self, path: Path) -> Mapping[str, Path]:
        """See `SupportsPolling`: of a class its file, of a folder all that lies in it. Raises OSError."""
        return {_name_of(place): place if place.is_dir() else file for place, file in _files(path).items()}

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Return one version, "1", of each handler. Its file is not opened."""
        if path.name in ("", ".."):
            path = path.resolve()
        try:
            places = _files(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, frameless(error)),))
        return read_each(places, lambda place: [_spec(place, places[place], defaults)], _name_of)

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Return the spec with the tensors, the batches and the streams that the hints of `predict` tell."""
        told: Mapping[str, Any] = json.loads(facts.document)
        source = Origin(f"the hints of predict in {spec.entry}", "")
        is_batched: bool = told["is_batched"]
        inputs = tuple(_tensor(one, is_batched, is_optional) for *one, is_optional in told["inputs"])
        outputs = tuple(_tensor(one, is_batched) for one in told["outputs"])
        assert spec.handler is not None, "it was read so"
        settings = {name: told[name] for name in ("request", "answer", "example")}
        if told["in_flight"]:
            settings["in_flight"] = told["in_flight"]
        fields = (
            "batching.batch_axis",
            "batching.max_rows",
            "batching.merge",
            "scheduling.max_delay",
            "streams",
        )
        return replace(
            spec,
            inputs=inputs,
            outputs=outputs,
            batching=Batching(batch_axis=is_batched, max_rows=told["max_rows"], merge=is_batched),
            scheduling=Dynamic(max_delay=told["max_delay"]),
            streams=told["streams"],
            handler=replace(spec.handler, settings=settings),
            origin={
                **spec.origin,
                **_sources("inputs", len(inputs), source),
                **_sources("outputs", len(outputs), source),
                **dict.fromkeys((*fields, "handler.settings"), source),
            },
        )


def split(path: Path) -> tuple[Path, str]:
    """Return the file and the class that a path names; an empty class where it names none."""
    file, colon, name = path.name.rpartition(":")
    return (path.with_name(file), name) if colon and file and name.isidentifier() else (path, "")


def _files(path: Path) -> dict[Path, Path]:
    """Return the handlers at a path: how each is named, and its file. Raises OSError."""
    file, _ = split(path)
    if file.suffix == _SUFFIX and file.is_file():
        return {path: file}
    if not path.is_dir() or _is_others(path):
        return {}
    if (path / FILE).is_file():
        return {path: path / FILE}
    folders = [one for one in path.iterdir() if not one.name.startswith(".") and one.is_dir()]
    are = [(one / FILE).is_file() and not _is_others(one) for one in folders]
    return {one: one / FILE for one in sorted(folders)} if folders and all(are) else {}


def _is_others(path: Path) -> bool:
    return any((path / mark).exists() for mark in _OTHERS)


def _name_of(place: Path) -> str:
    file, name = split(place)
    return name or (file.stem if file.suffix == _SUFFIX and file.is_file() else place.name)


def _spec(place: Path, file: Path, defaults: Defaults) -> ModelSpec:
    name, folder = _name_of(place), file.absolute().parent
    told = (
        "the class's name" if split(place)[1] else "the file's name" if place == file else "the folder's name"
    )
    parameters = defaults.parameters_of(ENGINE)
    option = Origin("--engine-parameters of the server", "")
    on_gpus = defaults.gpus > 0
    return ModelSpec(
        name=name,
        version="1",
        is_versioned=False,
        root=folder,
        engine=ENGINE,
        entry=file.name,
        groups=(
            InstanceGroup(
                name,
                device=Device.GPU if on_gpus else Device.CPU,
                device_ids=(0,) if on_gpus else (),
            ),
        ),
        limits=Limits(
            queue_items=defaults.queue_items,
            run_deadline=defaults.run_deadline,
            startup_deadline=defaults.startup_deadline,
        ),
        parameters={key: value for key, value in parameters.items() if key != "python"},
        handler=Handler(
            python=parameters.get("python", ""),
            function=split(place)[1],
            path=(folder,),
            directory=folder,
            completes=True,
            takes_json=True,
        ),
        origin={
            **{field: Origin(rule, "") for field, rule in _RULES.items()},
            "groups[0].device": Origin("the first GPU" if on_gpus else "rule without GPUs: the CPU", ""),
            "name": Origin(told, ""),
            "engine": Origin(f"rule for {FILE} and for files of Python", ""),
            "handler.function": Origin(
                "the path" if split(place)[1] else "rule: the only class with predict", ""
            ),
            "handler.python": option
            if "python" in parameters
            else Origin("the server's own interpreter", ""),
            **{field: Origin(str(file), "") for field in ("root", "entry")},
            **{f"parameters[{key}]": option for key in parameters if key != "python"},
        },
    )


def _tensor(told: list[Any], is_batched: bool, is_optional: bool = False) -> TensorSpec:
    name, datatype, dims = told
    return TensorSpec(name, BY_NAME[datatype], tuple(dims[1:] if is_batched else dims), optional=is_optional)


def _sources(field: str, count: int, source: Origin) -> dict[str, Origin]:
    return {f"{field}[{at}].{part}": source for at in range(count) for part in ("name", "datatype", "dims")}


FORMAT = TypedFormat()
