"""A whole ModelSpec as JSON values and back, for processes of the server that need one: the probe, and workers.

The foreign document stays behind: it is whatever its dialect made of it, and no engine looks inside.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import msgspec

from trivium.types.schedules import Graph, Sequence
from trivium.types.spec import All, Dynamic, Latest, ModelSpec, Specific

_VARIANTS: Mapping[str, Mapping[str, type]] = {
    "scheduling": {kind.__name__: kind for kind in (Dynamic, Sequence, Graph)},
    "version_policy": {kind.__name__: kind for kind in (Latest, All, Specific)},
}
"""Fields that are one of several dataclasses: they are encoded as the class's name and its value."""

_LEFT_OUT = "foreign"
_TYPES = get_type_hints(ModelSpec)
_NAMES = tuple(field.name for field in fields(ModelSpec) if field.name != _LEFT_OUT)


def encode(spec: ModelSpec) -> dict[str, object]:
    """Return the spec, without its foreign document, as values that JSON can carry."""
    return {name: _encoded(name, getattr(spec, name)) for name in _NAMES}


def decode(values: Mapping[str, object]) -> ModelSpec:
    """Return the spec that `encode` was given. Raises msgspec.ValidationError for values that are no spec."""
    return ModelSpec(**{name: _decoded(name, values[name]) for name in _NAMES})  # type: ignore[arg-type]  # by _TYPES


def _encoded(name: str, value: object) -> object:
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    return [type(value).__name__, plain] if name in _VARIANTS else plain


def _decoded(name: str, value: object) -> object:
    kind = _TYPES[name]
    if name in _VARIANTS:
        tag, value = msgspec.convert(value, tuple[str, object])
        if tag not in _VARIANTS[name]:
            known = ", ".join(_VARIANTS[name])
            raise msgspec.ValidationError(f"{name} is a {tag!r}; expected one of {known}")
        kind = _VARIANTS[name][tag]
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_revived)


def _revived(kind: type, value: object) -> object:
    return Path(str(value)) if kind is Path else value
