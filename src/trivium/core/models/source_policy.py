"""Decides what becomes of a model that was read when its source asks for another name, version or setting."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trivium.codecs.visible_text import visible
from trivium.types.findings import Finding, Severity
from trivium.types.registered_names import LONGEST, unfit_name
from trivium.types.sources import ModelSource
from trivium.types.spec import InvalidModel, ModelSpec, ReadResult


def applied(reading: ReadResult, source: ModelSource, takes_settings: bool = False) -> ReadResult:
    """Return the reading with what its source asks for: a name, if it holds one model, and a version, if one version.

    What cannot be taken makes the models invalid, with a finding for each wish. `takes_settings`: the format has
    considered all other wishes, and a version that its files write down stays.
    """
    specs = reading.specs
    name = "" if takes_settings and source.is_named_after_uri and _name_themselves(specs) else source.name
    faults = (
        *_name_faults(reading, source, name),
        *(() if takes_settings else _setting_faults(reading, source)),
    )
    if faults:
        names = dict.fromkeys([spec.name for spec in specs] or [source.name or source.uri])
        invalid = tuple(InvalidModel(each, _root(specs, each), faults) for each in names)
        return ReadResult((), (*reading.unreadable, *invalid))
    if name:
        specs = tuple(replace(spec, name=name) for spec in specs)
    if source.version and not (takes_settings and any(spec.is_versioned for spec in specs)):
        specs = tuple(replace(spec, version=source.version, is_versioned=True) for spec in specs)
    broken = tuple(replace(one, name=name or one.name) for one in reading.unreadable)
    return ReadResult(specs, broken)


def with_fit_names(reading: ReadResult) -> ReadResult:
    """Return the reading without the models whose name, or version, may not be registered: they are invalid."""
    unfit = {
        spec.name: InvalidModel(
            visible(spec.name)[:LONGEST], spec.root, (_unfit_fault(spec, key, text, why),)
        )
        for spec in reading.specs
        for key, text in (("name", spec.name), ("version", spec.version))
        if (why := unfit_name(text))
    }
    if not unfit:
        return reading
    specs = tuple(spec for spec in reading.specs if spec.name not in unfit)
    return ReadResult(specs, (*reading.unreadable, *unfit.values()))


def _unfit_fault(spec: ModelSpec, key: str, text: str, why: str) -> Finding:
    found = f"{visible(text)[:80]!r}, which {why}"
    expected = f"1 to {LONGEST} bytes of printable text"
    return Finding(Severity.ERROR, str(spec.root), None, key, found, expected, "Give another one.")


def _name_themselves(specs: tuple[ModelSpec, ...]) -> bool:
    """Tell whether files name their model: then the name comes from a key."""
    return any("name" in spec.origin and spec.origin["name"].key for spec in specs)


def _name_faults(reading: ReadResult, source: ModelSource, name: str) -> Iterator[Finding]:
    names = {spec.name for spec in reading.specs} | {one.name for one in reading.unreadable}
    if name and len(names) > 1:
        yield _fault(
            source,
            "name",
            f"the name {name} for {len(names)} models",
            "a path with one model",
            "Give it no name, or ask for each by its own path.",
        )
    if source.version and len(reading.specs) > 1:
        found = f"version {source.version} for {len(reading.specs)} versions"
        yield _fault(
            source, "version", found, "a path with one version", "Give it no version, or the path of one."
        )


def _setting_faults(reading: ReadResult, source: ModelSource) -> Iterator[Finding]:
    for spec in reading.specs:
        if source.engine and source.engine != spec.engine:
            found = f"engine {source.engine}, where the files ask for {spec.engine}"
            yield _fault(
                source, "engine", found, f"no engine, or {spec.engine}", f"Leave {source.engine} out."
            )
    if source.devices:
        yield _fault(
            source,
            "devices",
            ", ".join(source.devices),
            "devices in the model's own configuration",
            "Write them there.",
        )
    for key, setting in (*source.over.items(), *source.under.items()):
        yield Finding(
            Severity.ERROR,
            setting.origin.file,
            setting.origin.line,
            key,
            f"{key}={setting.value}",
            "a setting in the model's own files",
            "Write it there: this format takes no settings from outside.",
        )


def _fault(source: ModelSource, key: str, found: str, expected: str, hint: str) -> Finding:
    """The hint speaks neither of a request nor of a command line: a source comes from either."""
    return Finding(Severity.ERROR, source.uri, None, key, found, expected, hint)


def _root(specs: tuple[ModelSpec, ...], name: str) -> Path:
    return next((spec.root for spec in specs if spec.name == name), Path(name))
