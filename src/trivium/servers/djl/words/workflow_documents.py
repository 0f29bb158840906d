"""The text of a workflow, JSON or YAML: its values, the line of each, and the parameters put into it.

Source: spec sheet `djl`, section 6.1. Pure, and bounded: in bytes, in depth, without aliases. What it means is for
`workflows` to say.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from trivium.codecs.yaml_documents import MAX_DEPTH, YamlRefused, load
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import ConfigError
from trivium.types.findings import Change, Finding, Severity

FILES = ("workflow.json", "workflow.yml", "workflow.yaml")
"""What makes a folder a workflow, in the order in which they are looked for."""

MAX_BYTES = 2**17
MODEL_DIR = "model_dir"
_WORD = re.compile(r"\{([^{}\s]{1,100})\}")
_SHOWN = 80
_MOST_FINDINGS = 100

Place = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


@dataclass(slots=True)
class WorkflowText:
    """A definition as read. `used` are the parameters that stand in its text; `findings` grows with each fault."""

    file: str
    values: Mapping[str, object]
    lines: Mapping[Place, int]
    used: frozenset[str] = frozenset()
    findings: list[Finding] = field(default_factory=list)

    def line(self, place: Place) -> int | None:
        """Return the line of a value, or of the innermost one around it whose line is known."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def fault(self, place: Place, found: str, expected: str, hint: str, *mends: Change) -> None:
        """Note what is wrong with a value, with the changes that the hint names. Raises ConfigError with all findings
        once they are many.
        """
        key = dotted(place)
        fault = _fault(self.file, self.line(place), key, found, expected, hint)
        self.findings.append(replace(fault, mends=mends))
        if len(self.findings) >= _MOST_FINDINGS:
            raise ConfigError(tuple(self.findings))

    def notice(self, place: Place, found: str, hint: str = "") -> None:
        """Note something to know."""
        key = dotted(place)
        if len(self.findings) < _MOST_FINDINGS - 1:
            self.findings.append(Finding(Severity.NOTICE, self.file, self.line(place), key, found, "", hint))

    @property
    def has_faults(self) -> bool:
        """Tell whether it cannot be served."""
        return any(one.severity is Severity.ERROR for one in self.findings)


def dotted(place: Place) -> str:
    """Return a place as people write it: `workflow.out[1]`."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}"[:_SHOWN] for one in place).lstrip(".")


def shown(value: object) -> str:
    """Return the beginning of a value, for a sentence."""
    return repr(value)[:_SHOWN]


def read_text(file: str, data: bytes, parameters: Mapping[str, str]) -> WorkflowText:
    """Return what is in a file, by its suffix; each `{parameter}` in its text is replaced by its value first. Raises
    ConfigError for what is no object of values.
    """
    text = _decoded(file, data)
    is_json = file.lower().endswith(".json")
    used = frozenset(word for word in _WORD.findall(text) if word in parameters)
    if used:
        text = _WORD.sub(lambda found: _filled(found, parameters, is_json), text)
        _check_size(file, len(text), "with its parameters filled in it has")
    values, lines = _of_json(file, text) if is_json else _of_yaml(file, text)
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise _refused(file, 1, f"{shown(values)}, which is no object", _OBJECT)
    return WorkflowText(file, values, lines, used)


_OBJECT = 'an object such as {"models": {...}, "workflow": {"out": [...]}}'


def _decoded(file: str, data: bytes) -> str:
    _check_size(file, len(data), "it has")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(file, None, f"bytes that are no UTF-8 ({error.reason})", _OBJECT) from error


def _check_size(file: str, size: int, words: str) -> None:
    if size > MAX_BYTES:
        found = f"{words} more than {MAX_BYTES} bytes"
        raise _refused(
            file, None, found, "a definition that people write", "Keep data in files of the models."
        )


def _filled(found: re.Match[str], parameters: Mapping[str, str], is_json: bool) -> str:
    value = parameters.get(found[1])
    if value is None:
        return found[0]
    return json.dumps(value, ensure_ascii=False)[1:-1] if is_json else value


def _of_json(file: str, text: str) -> tuple[object, Mapping[Place, int]]:
    try:
        values = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise _refused(file, error.lineno, f"no JSON: {error.msg}", _OBJECT) from error
    except (ValueError, RecursionError) as error:
        raise _refused(file, None, f"no JSON that is read: {str(error)[:200]}", _OBJECT) from error
    if is_deep(values):
        raise _refused(file, None, f"values nested over {MAX_DEPTH} deep", "fewer levels")
    try:  # JSON is YAML, whose reader knows lines
        _, node = load(text.replace("\t", " "), 0)
    except YamlRefused:
        return values, {}
    return values, _lines(file, node)


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the key {shown(name)} stands twice in one object")
        made[name] = value
    return made


def _of_yaml(file: str, text: str) -> tuple[object, Mapping[Place, int]]:
    try:
        values, node = load(text, 0)
    except YamlRefused as refused:
        raise _refused(
            file, refused.line, f"no YAML that is read: {str(refused)[:200]}", _OBJECT
        ) from refused
    return values, _lines(file, node)


def _lines(file: str, node: yaml.Node | None) -> Mapping[Place, int]:
    """Return the line of each value, that of its key where it has one. Raises ConfigError for a key that is there
    twice.
    """
    found: dict[Place, int] = {}
    waiting: list[tuple[Place, yaml.Node | None]] = [((), node)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, yaml.MappingNode):
            for key, value in one.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                inner = (*place, key.value)
                line = key.start_mark.line + 1
                if inner in found and key.value != "<<":
                    raise _refused(file, line, f"the key {shown(key.value)} a second time", "each key once")
                found[inner] = line
                waiting.append((inner, value))
        elif isinstance(one, yaml.SequenceNode):
            for number, value in enumerate(one.value):
                found[(*place, number)] = value.start_mark.line + 1
                waiting.append(((*place, number), value))
    return found


def is_deep(value: object) -> bool:
    """Tell whether a value is nested deeper than is read."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner = [
            list(one.values()) if isinstance(one, dict) else one
            for one in level
            if isinstance(one, dict | list)
        ]
        if not inner:
            return False
        level = [each for one in inner for each in one]
    return True


def _refused(
    file: str, line: int | None, found: str, expected: str, hint: str = "Correct the file."
) -> ConfigError:
    return ConfigError((_fault(file, line, "", found, expected, hint),))


def _fault(file: str, line: int | None, key: str, found: str, expected: str, hint: str) -> Finding:
    info = ErrorInfo.of(reasons.INVALID_GRAPH)
    return Finding(Severity.ERROR, file, line, key, found, expected, hint, info)
