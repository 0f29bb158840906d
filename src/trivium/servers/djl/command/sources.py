"""Gathers what configures a DJL server, from a file, the command line and the environment: the later goes before.

Decides which value counts and what is at fault in it, with file, line and the nearest key. Pure. Source: spec sheet
`djl`, sections 1.1 and 1.2: of file, flags and `SERVING_*` the environment wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trivium.codecs.java_properties import Properties
from trivium.codecs.near_names import near
from trivium.servers.djl.command.keys import KEYS, KeySupport
from trivium.servers.djl.words.stray_commas import without_stray_commas
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

PREFIX = "SERVING_"
_MEBIBYTE = 2**20
_OF_CONTAINERS = frozenset(
    {
        "features",
        "download_dir",
        "retry_threshold",
        "fail_fast",
        "health_check_override",
        "prometheus",
        "min_workers",
        "max_workers",
        "opts",
        "rolling_batch_buffer",
    }
)
"""Variables `SERVING_*` that are no keys of the file: others read them, or nobody here."""

_NOT_SERVED = ("cache_", "memory_cache", "ddb_", "s3_cache")
_NEAR = {key.lower(): key for key in KEYS}


@dataclass(slots=True)
class ServingSources:
    """The values that count, by key, each with where it stands, and what is to be said of the others."""

    settings: dict[str, SourceSetting] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def text(self, key: str) -> str:
        """The value of a key, or its default."""
        setting = self.settings.get(key)
        return KEYS[key].default if setting is None else setting.value.strip()

    def is_given(self, key: str) -> bool:
        """Tell whether somebody has set a key."""
        return key in self.settings

    def number(self, key: str) -> int:
        """The value of a number."""
        return int(self.text(key))

    def switch(self, key: str) -> bool:
        """The value of a truth value."""
        return self.text(key).lower() == "true"

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Those findings that keep the server from starting."""
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)


def gather(
    file: Properties | None, models: Sequence[str], store: str, environment: Mapping[str, str]
) -> ServingSources:
    """Put file, flags (`models` of -m and -w, the `store` of -s) and environment together, and judge each value."""
    found = ServingSources()
    if file is not None:
        file = without_stray_commas(file)
        found.findings += file.findings
        for key, entry in file.entries.items():
            _take(found, key, SourceSetting(entry.value, Origin(file.file, key, entry.line)))
    if store:
        _take(found, "model_store", SourceSetting(store, Origin("the command line", "-s")))
    if models:
        _take(found, "load_models", SourceSetting(",".join(models), Origin("the command line", "-m")))
    for name, value in environment.items():
        if value and name.startswith(PREFIX):
            _take_variable(found, name, value)
    _take_largest(found, environment)
    return found


def _take(found: ServingSources, key: str, setting: SourceSetting) -> None:
    row = KEYS.get(key) or KEYS.get(_NEAR.get(key.lower(), ""))
    origin = setting.origin
    if row is None:
        meant = near(key, KEYS)
        hint = f"Did you mean {meant}?" if meant else "Remove it; docs/djl.md lists all keys."
        finding = Finding(
            Severity.ERROR, origin.file, origin.line, key, f"{key} is no key", "one of DJL's", hint
        )
        found.findings.append(finding)
        return
    if not setting.value.strip():
        return
    shown = f"{key}={setting.value.strip()}"
    if fault := row.fault(setting.value):
        finding = Finding(
            Severity.ERROR, origin.file, origin.line, key, fault, row.expected, "Correct the value."
        )
        found.findings.append(finding)
        return
    if row.support is KeySupport.NO:
        hint = f"{row.how[:1].upper()}{row.how[1:]}."
        text = f"{shown} is not supported in this version"
        found.findings.append(Finding(Severity.ERROR, origin.file, origin.line, key, text, "", hint))
        return
    if row.support is KeySupport.UNUSED and setting.value.strip() != row.default:
        text = f"{shown} has no effect: {row.how}"
        found.findings.append(Finding(Severity.NOTICE, origin.file, origin.line, key, text))
    found.settings[row.name] = setting


def _take_variable(found: ServingSources, name: str, value: str) -> None:
    key = name.removeprefix(PREFIX).lower()
    if key in _OF_CONTAINERS:
        return
    if key.startswith(_NOT_SERVED):
        text = f"{name} has no effect: answers that are fetched later are kept in this server's memory"
        found.findings.append(Finding(Severity.NOTICE, "the environment", None, name, text))
        return
    if key not in _NEAR:
        meant = near(key, _NEAR)
        hint = f"Did you mean {PREFIX}{meant.upper()}?" if meant else "Remove it."
        text = f"{name} is no key of DJL's, and has no effect"
        found.findings.append(Finding(Severity.NOTICE, "the environment", None, name, text, "", hint))
        return
    _take(found, _NEAR[key], SourceSetting(value, Origin("the environment", name)))


def _take_largest(found: ServingSources, environment: Mapping[str, str]) -> None:
    """Take the largest request as SageMaker says it, in bytes or in mebibytes."""
    for name, factor in (("SAGEMAKER_MAX_PAYLOAD_IN_MB", _MEBIBYTE), ("SAGEMAKER_MAX_REQUEST_SIZE", 1)):
        value = environment.get(name, "").strip()
        if value.isascii() and value.isdigit() and len(value) < 10:
            origin = Origin("the environment", name)
            _take(found, "max_request_size", SourceSetting(str(int(value) * factor), origin))
