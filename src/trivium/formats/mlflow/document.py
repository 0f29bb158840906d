"""Reads a file `MLmodel`: YAML with the flavors of one model and its signature, each value with its line.

What cannot be read raises ConfigError with file, line and mend; keys that mean nothing to anybody are reported.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from trivium.codecs.near_names import near
from trivium.codecs.yaml_documents import YamlRefused, load
from trivium.files import open_file
from trivium.types.errors import ConfigError
from trivium.types.findings import Change, Finding, Severity
from trivium.types.spec import Origin

FILE = "MLmodel"
LONGEST = 2**22
"""Bytes of a file that are read: signatures of thousands of columns have some hundred thousand."""

_TOP = frozenset(
    [
        "artifact_path",
        "auth_policy",
        "databricks_runtime",
        "env_vars",
        "flavors",
        "is_signature_from_type_hint",
        "metadata",
        "mlflow_version",
        "model_id",
        "model_size_bytes",
        "model_uuid",
        "prompts",
        "resources",
        "run_id",
        "saved_input_example_info",
        "signature",
        "time_created",
        "type_hint_from_example",
        "utc_time_created",
    ]
)
_SAVE = "Save the model anew with MLflow, or put the file back as MLflow wrote it."


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """One file. `flavors` are those that it names, each with its keys; `signature` is as written, without what is
    empty. `notices` are what was found beside that.
    """

    path: Path
    flavors: Mapping[str, Mapping[str, Any]]
    signature: Mapping[str, Any]
    lines: Mapping[str, int]
    notices: tuple[Finding, ...] = ()
    version: str = ""
    run: str = field(default="", compare=False)

    def origin(self, key: str) -> Origin:
        """Return where a key stands."""
        return Origin(str(self.path), key, self.lines.get(key))

    def finding(
        self, key: str, found: str, expected: str, hint: str, severity: Severity = Severity.ERROR
    ) -> Finding:
        """Return what is to be said of a key."""
        return Finding(severity, str(self.path), self.lines.get(key), key, found, expected, hint)

    def refuse(self, key: str, found: str, expected: str, hint: str) -> NoReturn:
        """Raise ConfigError with a finding."""
        raise ConfigError((*self.notices, self.finding(key, found, expected, hint)))

    def unknown(self, prefix: str, keys: Collection[str], known: Collection[str]) -> list[Finding]:
        """Return a notice for each key that has no meaning."""
        found = []
        for key in keys:
            if key in known:
                continue
            place = f"{prefix}{key}"
            meant = near(str(key).lower(), sorted(known), 0.75)
            hint = f"Did you mean {meant}?" if meant else "Remove it, or leave it: nothing reads it."
            finding = self.finding(
                place, "it has no meaning here and changes nothing", "", hint, Severity.NOTICE
            )
            mends = (Change(name=meant),) if meant else ()
            found.append(
                Finding(
                    finding.severity, finding.file, finding.line, place, finding.found, "", hint, mends=mends
                )
            )
        return found


def read_document(folder: Path) -> ModelDocument:
    """Read the file of a folder. Raises ConfigError, and OSError for one that cannot be opened."""
    path = folder / FILE
    with open_file(path) as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise _fault(path, None, "", f"more than {LONGEST} bytes", "a file as MLflow writes it", _SAVE)
    try:
        values, node = load(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _fault(path, None, "", f"no UTF-8 at byte {error.start}", "YAML", _SAVE) from error
    except YamlRefused as refused:
        raise _fault(path, refused.line, "", str(refused), "YAML that can be read", _SAVE) from refused
    if not isinstance(values, dict) or not isinstance(node, yaml.MappingNode):
        found = "nothing" if values is None else f"a {type(values).__name__}"
        raise _fault(path, None, "", found, "a mapping with the key flavors", _SAVE)
    lines = _lines(node)
    plain = ModelDocument(path, {}, {}, lines)
    flavors = values.get("flavors")
    if not isinstance(flavors, dict) or not flavors:
        told = "it lacks" if "flavors" not in values else f"{flavors!r:.80}"
        plain.refuse("flavors", told, "a mapping from names of flavors to their keys", _SAVE)
    for name, keys in flavors.items():
        if not isinstance(keys, dict):
            plain.refuse(f"flavors.{name}", f"{keys!r:.80}", "a mapping", _SAVE)
    signature = values.get("signature") or {}
    if not isinstance(signature, dict):
        plain.refuse("signature", f"{signature!r:.80}", "a mapping with inputs, outputs and params", _SAVE)
    notices = (
        *plain.unknown("", values, _TOP),
        *plain.unknown("signature.", signature, ("inputs", "outputs", "params")),
    )
    given = {key: one for key, one in signature.items() if one}
    version, run = (str(values.get(key) or "") for key in ("mlflow_version", "run_id"))
    return ModelDocument(path, flavors, given, lines, notices, version, run)


def _lines(node: yaml.MappingNode, prefix: str = "", depth: int = 3) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        found[name] = key.start_mark.line + 1
        if depth > 1 and isinstance(value, yaml.MappingNode):
            found |= _lines(value, f"{name}.", depth - 1)
    return found


def _fault(path: Path, line: int | None, key: str, found: str, expected: str, hint: str) -> ConfigError:
    return ConfigError((Finding(Severity.ERROR, str(path), line, key, found, expected, hint),))
