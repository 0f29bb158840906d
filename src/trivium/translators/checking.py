"""Turns the faults that a translator finds in a spec into findings at the places where its arguments were written."""

from collections.abc import Sequence

from trivium.translators.reading import ArgumentFinding
from trivium.types.findings import Finding, Severity
from trivium.types.spec import ModelSpec, Origin, TranslatorSpec


def findings_of(spec: ModelSpec, found: Sequence[ArgumentFinding]) -> list[Finding]:
    """Return the findings of arguments, each where it stands."""
    made = []
    for one in found:
        severity = Severity.NOTICE if one.is_notice else Severity.ERROR
        place = _place(spec, one.key)
        made.append(Finding(severity, place.file, place.line, one.key, one.found, one.expected, one.hint))
    return made


def fault_at(spec: ModelSpec, key: str, found: str, expected: str, hint: str) -> Finding:
    """Return an error at an argument, or at the translator itself where that was not written."""
    place = _place(spec, key)
    return Finding(Severity.ERROR, place.file, place.line, place.key, found, expected, hint)


def translator_of(spec: ModelSpec) -> TranslatorSpec:
    """Return what the spec says of its translator, which it has."""
    assert spec.translator is not None, "the spec names a translator"
    return spec.translator


def input_name(spec: ModelSpec, index: int) -> str:
    """Return the name of an input by its position; that of its position where the model file tells no names."""
    return spec.inputs[index].name if index < len(spec.inputs) else f"INPUT__{index}"


def _place(spec: ModelSpec, key: str) -> Origin:
    written = spec.origin.get(f"translator.arguments[{key}]") or spec.origin.get("translator")
    return written or Origin(str(spec.root), key)
