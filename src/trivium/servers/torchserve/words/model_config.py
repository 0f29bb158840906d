"""model-config.yaml: its values, the line of each key, and what is wrong with it or not served.

Source: spec sheet `torchserve`, section 3.4. YAML is read safely: no tags of its own, bounded in bytes, depth, aliases
and in what they come to. A value of the wrong type is reported and counts as absent, as in the original.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from trivium.codecs.yaml_documents import YamlRefused, load
from trivium.servers.torchserve.words.keys import ANY, ROWS
from trivium.servers.torchserve.words.yaml_values import TooMuch, as_json
from trivium.settings.judging import meant_by
from trivium.settings.kinds import TEXT
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Change, Finding, Severity
from trivium.types.spec import Origin

MAX_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """`values`: the keys that were read, of the right type; `document`: all of it as JSON (`yaml_values`). `places` are
    those of values that others have laid over or under the file's.
    """

    file: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    document: Mapping[str, object] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    places: Mapping[str, Origin] = field(default_factory=dict)

    def number(self, key: str) -> int | None:
        """The value of a key of kind NUMBER, None where there is none."""
        value = self.values.get(key)
        return value if isinstance(value, int) else None

    def numbers(self, key: str) -> tuple[int, ...]:
        """The value of a key of kind NUMBERS, empty where there is none."""
        value = self.values.get(key)
        return tuple(value) if isinstance(value, list) else ()

    def notice(self, key: str, found: str, hint: str = "", *mends: Change) -> Finding:
        """A NOTICE at a key, or where the value stands that counts in its place."""
        place = self.place(key)
        return Finding(Severity.NOTICE, place.file, place.line, place.key, found, "", hint, mends=mends)

    def place(self, key: str) -> Origin:
        """Return where the value of a key stands."""
        return self.places.get(key) or Origin(self.file, key, self.lines.get(key))


def read_model_config(file: str, data: bytes) -> ModelConfig:
    """The configuration, with a finding for each fault and each key that is not served; never raises."""
    if len(data) > MAX_BYTES:
        return ModelConfig(file, findings=(_fault(file, None, f"more than {MAX_BYTES} bytes"),))
    try:
        values, node = load(data.decode("utf-8-sig"))
        document = as_json(values)
    except YamlRefused as refused:
        return ModelConfig(file, findings=(_fault(file, refused.line, str(refused)),))
    except (TooMuch, ValueError, RecursionError, OverflowError) as error:
        return ModelConfig(file, findings=(_fault(file, None, str(error)),))
    if values is None:
        return ModelConfig(file)
    if (
        not isinstance(node, yaml.MappingNode)
        or not isinstance(values, dict)
        or not isinstance(document, dict)
    ):
        return ModelConfig(file, findings=(_fault(file, 1, "no mapping of keys to values"),))
    return _judged(file, values, document, _key_lines(node))


def _key_lines(node: yaml.MappingNode) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            lines.setdefault(key.value, []).append(key.start_mark.line + 1)
    return lines


def _judged(
    file: str, values: dict[object, object], document: dict[str, object], places: dict[str, list[int]]
) -> ModelConfig:
    lines = {key: found[-1] for key, found in places.items()}
    config = ModelConfig(file, {}, document, lines)
    findings = [
        config.notice(key, f"written {len(found)} times; the last one counts")
        for key, found in places.items()
        if len(found) > 1
    ]
    read: dict[str, object] = {}
    for key, row in ROWS.items():
        value = values.get(key)
        if value is None:
            continue
        is_quoted = isinstance(value, str) and row.kind not in (TEXT, ANY)
        if is_quoted or row.kind.refuses(value):
            text = f"{value!r}"[:80] + f" is not {row.kind.expected}; it counts as absent"
            findings.append(config.notice(key, text))
        elif row.support is Support.YES:
            read[key] = value
        elif row.support is not Support.PASSED_ON and value not in row.harmless:
            findings.append(_unserved(config, key, row))
    findings += _slips(config, values)
    return ModelConfig(file, read, document, lines, tuple(findings))


def _slips(config: ModelConfig, values: Mapping[object, object]) -> Iterator[Finding]:
    """Keys that are nearly one of the server's: they are the handler's, as any other, unless they were misspelt."""
    for key in values:
        if isinstance(key, str) and key not in ROWS and (meant := meant_by(key, ROWS, 0.8)):
            found = "is no key of the server's, and is left to the handler"
            if ROWS[meant].support is Support.REFUSED:
                yield config.notice(key, found, f"Did you mean {meant}? That is refused: {ROWS[meant].how}.")
            else:
                yield config.notice(key, found, f"Did you mean {meant}?", Change(name=meant))


def _unserved(config: ModelConfig, key: str, row: Setting) -> Finding:
    if row.support is Support.REPORTED:
        return config.notice(key, f"is read and has no effect: {row.how}")
    hint = "Remove it, if the handler works without."
    return Finding(Severity.ERROR, config.file, config.lines.get(key), key, row.how, f"no {key}", hint)


def _fault(file: str, line: int | None, found: str) -> Finding:
    return Finding(
        Severity.ERROR, file, line, "", found[:300], "a YAML mapping of plain values", "Correct the file."
    )
