"""The parameters that a model's spec has for its engine: settings, each with the place that it was found at. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from trivium.settings.judging import meant_by
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec


def place_of(spec: ModelSpec, name: str) -> str:
    """Return where a parameter was found, in brackets, as a sentence goes on: the user's own file, line and key. Empty
    where nobody knows.
    """
    origin = spec.origin.get(f"parameters[{name}]")
    return "" if origin is None else f" ({origin})"


def read_parameters(spec: ModelSpec, rows: Iterable[Setting]) -> dict[str, Any]:
    """Return the values of those that the spec has. LOAD_FAILED names each that cannot be, and where it stands."""
    given = {row: spec.parameters[row.name] for row in rows if row.name in spec.parameters}
    wrong = [
        f"parameter '{row.name}' is '{text}'{place_of(spec, row.name)}; expected {row.kind.expected}"
        for row, text in given.items()
        if row.kind.refuses(text.strip())
    ]
    if wrong:
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {'; '.join(wrong)}.")
    return {row.name: row.kind.read(text.strip()) for row, text in given.items()}


def unknown_parameters(
    parameters: Mapping[str, str], engine: str, known: Iterable[str], others: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return a sentence for each parameter that means nothing to an engine, nor to the `others` that read them."""
    names = tuple(known)
    return tuple(
        _unknown(name, engine, names) for name in parameters if name not in names and name not in others
    )


def _unknown(name: str, engine: str, known: tuple[str, ...]) -> str:
    meant = meant_by(name, known)
    hint = f" Did you mean '{meant}'?" if meant else ""
    return (
        f"parameter '{name}' has no meaning to engine '{engine}' and changes nothing; it knows: {', '.join(known)}."
        f"{hint}"
    )
