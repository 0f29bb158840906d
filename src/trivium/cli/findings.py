"""The output of `trivium check`: what a model's files set, each fault with its hint, and how much holds by default.

Presentation only. Nothing is cut off but a value as long as a document. Must not judge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rich.console import Console
from rich.text import Text

from trivium.cli.layout import aligned, labelled
from trivium.cli.written_values import written_value
from trivium.codecs.field_words import field_words
from trivium.codecs.spec_rows import named_text, origin_of, shown_value, spec_rows
from trivium.codecs.visible_text import visible
from trivium.types.findings import Finding, Severity
from trivium.types.spec import InvalidModel, ModelSpec, Origin

_ASKED = ("the environment", "the command line", "the request", "--engine-parameters")
"""How places begin that are no files and where somebody has set something all the same."""

_MOST_READ = 2**20
_DETAIL = "details["
_DEFAULT = Origin("default", "")
_STYLES = {Severity.ERROR: "bold red", Severity.NOTICE: "bold yellow", Severity.REMARK: "bold cyan"}


def print_model(console: Console, model: ModelSpec | InvalidModel, shows_all: bool = False) -> bool:
    """Print what a reading found of one model; True if it can be served."""
    if isinstance(model, InvalidModel):
        place = next((one.file for one in model.findings if "://" in one.file), str(model.root))
        _print(
            console,
            Text.assemble(("cannot be served: ", "bold red"), f"model {model.name} in {visible(place)}"),
        )
        _print_findings(console, model.findings)
        return False
    _print(console, Text.assemble(("model ", "bold green"), f"{model.name}, version {model.version}"))
    for file in dict.fromkeys(origin.file for origin in model.origin.values() if origin.line is not None):
        _print(console, Text(f"  read from {named_text(model, visible(file))}"))
    left = _print_fields(console, model) if shows_all else _print_what_is_set(console, model)
    _print_findings(console, model.reports)
    if left:
        values = "value holds" if left == 1 else "values hold"
        _print(console, Text(f"  {left} further {values} by default (--all lists them)", "dim"))
    console.print()
    return all(finding.severity is not Severity.ERROR for finding in model.reports)


def print_file(console: Console, file: Path, findings: Sequence[Finding]) -> None:
    """Print what is to be said of a file that configures a server."""
    is_faulty = any(finding.severity is Severity.ERROR for finding in findings)
    word = ("cannot be served: ", "bold red") if is_faulty else ("configuration ", "bold green")
    _print(console, Text.assemble(word, visible(str(file))))
    _print_findings(console, findings)
    console.print()


def print_values(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print values with where they stand, a row for each."""
    _print_rows(console, headings, [[shown_value(cell) for cell in row] for row in rows])
    console.print()


def _print_fields(console: Console, spec: ModelSpec) -> int:
    """Print all values; none is left out."""
    rows = [
        [
            field_words(name),
            named_text(spec, value),
            named_text(spec, str(_short(origin_of(spec, name) or _DEFAULT))),
        ]
        for name, value in spec_rows(spec)
    ]
    _print_rows(console, ("field", "value", "from where"), rows)
    return 0


def _print_what_is_set(console: Console, spec: ModelSpec) -> int:
    """Print keys as their files have them, and below what the model itself tells of. Returns how many values are left
    out.
    """
    fields = [(name, value, origin_of(spec, name)) for name, value in spec_rows(spec)]
    keys: dict[Origin, list[str]] = {}
    for name, value, origin in fields:
        if origin is not None and name in spec.origin and not name.startswith(_DETAIL) and _is_set(origin):
            known = origin if origin.key else replace(origin, key=_inner(name))
            keys.setdefault(known, []).append(value)
    for name, _, origin in fields:  # a block without anything in it that is set
        if origin is None or not origin.key or name.startswith(_DETAIL) or not _is_set(origin):
            continue
        if not any(_holds(origin, one) for one in keys):
            keys[origin] = ["given"]
    order = sorted(keys, key=lambda one: (one.line is None, one.file, one.line or 0))
    rows = [
        [one.key, named_text(spec, _set_value(spec, one, keys[one])), named_text(spec, _place(one))]
        for one in order
    ]
    _print_rows(console, ("key", "value", "from where"), rows)
    told = list(_told(spec))
    pairs = [(what, named_text(spec, f"{value} ({place})")) for what, value, place, _ in told]
    for line in labelled([(visible(what), visible(words)) for what, words in pairs], console.width, 2):
        _print(console, Text(line))
    return len(fields) - sum(len(values) for values in keys.values()) - sum(count for *_, count in told)


def _inner(name: str) -> str:
    """Return how somebody knows a field who set it without a key of its own: `parameters[slots]` as `slots`."""
    return name.rpartition("[")[2].removesuffix("]") if name.endswith("]") else name


def _holds(block: Origin, inner: Origin) -> bool:
    """Is a key that block, or inside it?"""
    return inner.file == block.file and (
        inner.key == block.key or inner.key.startswith((f"{block.key}.", f"{block.key}["))
    )


def _is_set(origin: Origin) -> bool:
    """Has somebody set a value there, by a key of a file, a variable or a flag?"""
    return (origin.line is not None and bool(origin.key)) or origin.file.startswith(_ASKED)


def _set_value(spec: ModelSpec, origin: Origin, values: Sequence[str]) -> str:
    """Return what is written behind a key, if its line tells it, else what was made of it."""
    if origin.line is not None:
        is_properties = origin.file.endswith(".properties")
        file = origin.file
        if spec.shown_root is not None:  # it was unpacked
            file = file.replace(str(spec.shown_root), str(spec.root))
        written = written_value(_line(file, origin.line), origin.key, is_properties)
        if written is not None:
            return shown_value(written)
    distinct = list(dict.fromkeys(filter(None, values)))
    telling = [value for value in distinct if value not in ("yes", "no")] or distinct
    return ", ".join(telling)


def _line(file: str, line: int) -> str:
    lines = _read_lines(file)
    return lines[line - 1] if 0 < line <= len(lines) else ""


@lru_cache(8)
def _read_lines(file: str) -> tuple[str, ...]:
    if not Path(file).is_file():  # it was fetched, or has gone
        return ()
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            return tuple(text.read(_MOST_READ).splitlines())
    except OSError:
        return ()


def _place(origin: Origin) -> str:
    return origin.file if origin.line is None else f"{Path(origin.file).name}:{origin.line}"


def _told(spec: ModelSpec) -> Iterator[tuple[str, str, str, int]]:
    """Give what the model's own files tell: what, its value, where it is from, and how many values that are."""
    for word, field in (("input", "inputs"), ("output", "outputs")):
        for at, tensor in enumerate(getattr(spec, field)):
            origin = origin_of(spec, f"{field}[{at}].dims")
            if origin is not None and origin.line is None and "the model file" in origin.file:
                kind = tensor.kind(spec.batching.batch_axis)
                yield f"{word} {tensor.name}", kind, str(origin), len(("name", "datatype", "dims"))
    for name, value in spec.details.items():
        origin = origin_of(spec, f"{_DETAIL}{name}]") or _DEFAULT
        yield name, shown_value(value), str(_short(origin)), 1


def _short(origin: Origin) -> Origin:
    """Return an origin with the name of its file alone, which `read from` has whole."""
    return origin if origin.line is None else replace(origin, file=Path(origin.file).name)


def _print_findings(console: Console, findings: Sequence[Finding]) -> None:
    for finding in findings:
        place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
        style = _STYLES[finding.severity]
        _print(console, Text.assemble("  ", (f"{finding.severity.value} ", style), place))
        pairs = [(label, getattr(finding, label)) for label in ("key", "found", "expected", "hint")]
        for line in labelled([pair for pair in pairs if pair[1]], console.width, 4):
            _print(console, Text(line))


def _print_rows(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    cells = [[visible(cell) for cell in row] for row in rows]
    for line in aligned(headings, cells, console.width, 2):
        _print(console, Text(line))


def _print(console: Console, text: Text) -> None:
    """Print one line, which is not broken."""
    console.print(text, soft_wrap=True)
