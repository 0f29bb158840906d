"""The output of `trivium check`: each model with where its values come from, and each fault with its hint.

Presentation only. Nothing is cut off but a value as long as a document: what does not fit a line goes on in the
next. Must not judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trivium.codecs.visible_text import visible
from trivium.types.datatype import DataType
from trivium.types.findings import Finding, Severity
from trivium.types.spec import InvalidModel, ModelSpec, TensorSpec, VersionPolicy

_UNSHOWN = frozenset({"foreign", "origin", "reports", "name", "version", "shown_root"})

LONGEST_SHOWN = 120
"""Characters of a value: a handler's settings may hold a whole document."""


def print_check(console: Console, specs: Sequence[ModelSpec], unreadable: Sequence[InvalidModel]) -> bool:
    """Print all that a reading found; True if everything in it can be served."""
    for spec in specs:
        _print_model(console, spec)
    for model in unreadable:
        place = next((one.file for one in model.findings if "://" in one.file), str(model.root))
        _print(
            console,
            Text.assemble(("cannot be served: ", "bold red"), f"model {model.name} in {visible(place)}"),
        )
        for finding in model.findings:
            _print_finding(console, finding)
    faults = [finding for spec in specs for finding in spec.reports if finding.severity is Severity.ERROR]
    return not unreadable and not faults


def print_file(console: Console, file: Path, findings: Sequence[Finding]) -> None:
    """Print what is to be said of a file that configures a server."""
    is_faulty = any(finding.severity is Severity.ERROR for finding in findings)
    word = ("cannot be served: ", "bold red") if is_faulty else ("configuration ", "bold green")
    _print(console, Text.assemble(word, visible(str(file))))
    for finding in findings:
        _print_finding(console, finding)
    console.print()


def print_values(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print values with where they stand, a row for each. Its name, the first cell, is not broken, since it is looked
    for.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=index == 0)
    for row in rows:
        table.add_row(*(Text(visible(_shown(cell))) for cell in row))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()


def _print_model(console: Console, spec: ModelSpec) -> None:
    _print(console, Text.assemble(("model ", "bold green"), f"{spec.name}, version {spec.version}"))
    for file in dict.fromkeys(origin.file for origin in spec.origin.values() if origin.line is not None):
        _print(console, Text(f"read from {_named(spec, file)}"), indent=2)
    # With pad_edge=False rich cuts the last column short instead of folding it.
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("field", "value", "from where"):
        table.add_column(heading, overflow="fold", min_width=26 if heading == "field" else None)
    for name, value in _rows(spec):
        table.add_row(Text(name), Text(_named(spec, value)), Text(_named(spec, _origin(spec, name))))
    console.print(Padding(table, (0, 0, 0, 2)))
    for finding in spec.reports:
        _print_finding(console, finding)
    console.print()


def _rows(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    for field in fields(spec):
        if field.name not in _UNSHOWN:
            yield from _flat(field.name, getattr(spec, field.name))


def _named(spec: ModelSpec, text: str) -> str:
    """Return a text that names the archive in place of where it was unpacked."""
    return text if spec.shown_root is None else text.replace(str(spec.root), str(spec.shown_root))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Blocks by field and lists of blocks by index, as `origin` names them; everything else as one value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{name}[{key}]", _shown(inner)
    elif isinstance(value, tuple) and any(is_dataclass(inner) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{name}[{index}]", inner)
    elif is_dataclass(value) and "." not in name and not isinstance(value, VersionPolicy):
        for field in fields(value):
            inner = getattr(value, field.name)
            if isinstance(value, TensorSpec) and value.open and field.name in ("datatype", "dims"):
                yield f"{name}.{field.name}", "those of the request"
            elif inner not in (None, {}) and (inner != () or field.name == "dims"):
                yield from _flat(f"{name}.{field.name}", inner)
    else:
        yield name, _shown(value)


def _shown(value: object) -> str:
    match value:
        case DataType():
            return value.wire
        case Enum():
            return str(value.value)
        case bool():
            return "yes" if value else "no"
        case tuple() | frozenset():
            return f"[{', '.join(_shown(inner) for inner in value)}]"
        case str() if len(value) > LONGEST_SHOWN:
            return f"{value[:LONGEST_SHOWN]}... ({len(value)} characters)"
        case Path() | str() | int() | float() | None:
            return str(value)
        case _ if is_dataclass(value):
            parts = ((field.name, getattr(value, field.name)) for field in fields(value))
            inside = ", ".join(f"{name} {_shown(part)}" for name, part in parts if part is not None)
            kind = f"{type(value).__name__.lower()} " if isinstance(value, VersionPolicy) else ""
            return f"{kind}{inside}".rstrip()
        case _:
            return str(value)


def _origin(spec: ModelSpec, field: str) -> str:
    """Return the origin of the field, or of the innermost field around it that has one; a file's is its name."""
    while field and field not in spec.origin:
        field = field.rpartition("." if "." in field else "[")[0]
    if not field:
        return "default"
    origin = spec.origin[field]
    return str(origin if origin.line is None else replace(origin, file=Path(origin.file).name))


def _print_finding(console: Console, finding: Finding) -> None:
    style = "bold red" if finding.severity is Severity.ERROR else "bold yellow"
    place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    _print(console, Text.assemble((f"{finding.severity.value} ", style), place), indent=2)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label in ("key", "found", "expected", "hint"):
        words = getattr(finding, label)
        if words:
            grid.add_row(label, Text(words))
    console.print(Padding(grid, (0, 0, 0, 4)))


def _print(console: Console, text: Text, indent: int = 0) -> None:
    text.overflow = "fold"
    console.print(Padding(text, (0, 0, 0, indent)))
