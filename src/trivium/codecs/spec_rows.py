"""A spec as rows for people: each field with its value in words, and where that was found. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

from trivium.codecs.field_words import join_words
from trivium.types.datatype import DataType
from trivium.types.spec import Join, ModelSpec, Origin, TensorSpec, VersionPolicy

_UNSHOWN = frozenset({"foreign", "origin", "reports", "name", "version", "shown_root"})
LONGEST_SHOWN = 120
"""Characters of a value: a handler's settings may hold a whole document."""


def spec_rows(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """Yield each field by its name, like `inputs[0].dims`, and its value."""
    for field in fields(spec):
        if field.name not in _UNSHOWN:
            yield from _flat(field.name, getattr(spec, field.name))


def named_text(spec: ModelSpec, text: str) -> str:
    """Return a text that names the archive in place of where it was unpacked."""
    return text if spec.shown_root is None else text.replace(str(spec.root), str(spec.shown_root))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Blocks by field and lists of blocks by index, as `origin` names them; everything else as one value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{name}[{key}]", shown_value(inner)
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
        yield name, shown_value(value, is_shape=name.endswith(".dims"))


def shown_value(value: object, is_shape: bool = False) -> str:
    """Return a value in words; a long text is cut off."""
    match value:
        case DataType():
            return value.wire
        case Join():
            return join_words(value)
        case Enum():
            return str(value.value)
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case () if not is_shape:
            return "none"
        case tuple() | frozenset():
            return f"[{', '.join(shown_value(inner) for inner in value)}]"
        case str() if len(value) > LONGEST_SHOWN:
            return f"{value[:LONGEST_SHOWN]}... ({len(value)} characters)"
        case Path() | str() | int() | float():
            return str(value)
        case _ if is_dataclass(value):
            parts = ((field.name, getattr(value, field.name)) for field in fields(value))
            inside = ", ".join(f"{name} {shown_value(part)}" for name, part in parts if part is not None)
            kind = f"{type(value).__name__.lower()} " if isinstance(value, VersionPolicy) else ""
            return f"{kind}{inside}".rstrip()
        case _:
            return str(value)


def origin_of(spec: ModelSpec, field: str) -> Origin | None:
    """Return the origin of the field, or of the innermost field around it that has one; None for a default."""
    while field and field not in spec.origin:
        field = field.rpartition("." if "." in field else "[")[0]
    return spec.origin[field] if field else None
