"""Lays what others say of a model over and under its model-config.yaml: a registration, and the server's configuration.

Decides which value of a key counts. Source: spec sheet `torchserve`, section 2: the call, the file, the property
`models`, the server's default, in this order; time-outs of a file go before the call's, and so do its workers. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trivium.servers.torchserve.words.keys import ROWS
from trivium.servers.torchserve.words.metrics_config import Declared
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.settings.judging import wrong
from trivium.settings.kinds import Whole
from trivium.settings.setting import Setting
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

HANDLER, WORKERS = "handler", "initial_workers"
REGISTERED: Mapping[str, str] = {
    "batch_size": "batchSize",
    "max_batch_delay": "maxBatchDelay",
    "response_timeout": "responseTimeout",
    "startup_timeout": "startupTimeout",
}
"""Parameter of a registration -> the key of model-config.yaml that it stands for."""

_TIMEOUTS = frozenset({"responseTimeout", "startupTimeout"})
_LOWEST, _MOST = "minWorkers", "maxWorkers"


@dataclass(frozen=True, slots=True)
class SequenceNames:
    """Names the headers of requests that belong to sequences."""

    id: str = "ts_request_sequence_id"
    start: str = "ts_request_sequence_start"
    end: str = "ts_request_sequence_end"


@dataclass(frozen=True, slots=True)
class ServerRules:
    """Holds what a server's configuration says of its models, in keys of model-config.yaml: `under` of all of them, and
    `by_version` of one version of a name. `handler` is theirs who name none; of the machine's GPUs they see `gpus` at
    most (None: all), and `python` is the interpreter of their workers (empty: the server's). `envelope` is around the
    data of every request (empty: none). Their handlers find the `metrics` that are declared for them, and are timed
    (None: neither is asked for).
    """

    under: Mapping[str, SourceSetting] = field(default_factory=dict)
    by_version: Mapping[tuple[str, str], Mapping[str, SourceSetting]] = field(default_factory=dict)
    handler: SourceSetting | None = None
    gpus: int | None = None
    python: str = ""
    decodes_requests: bool = True
    limits_pixels: bool = True
    envelope: str = ""
    sequence_names: SequenceNames = SequenceNames()
    metrics: Declared | None = None
    answer_bytes: int | None = None
    unregister_seconds: float | None = None

    def of_model(self, name: str, version: str) -> Mapping[str, SourceSetting]:
        """Return what lies under the file of a version of a model."""
        return {**self.under, **self.by_version.get((name, version), {})}

    def notices(self, name: str, version: str) -> list[Finding]:
        """Return what is to be said where something was laid down of other versions of a model, and not of this one."""
        others = {at: rules for (of, at), rules in self.by_version.items() if of == name}
        if version in others:
            return []
        found = []
        for other, rules in others.items():
            for origin in [setting.origin for setting in rules.values()][:1]:
                text = (
                    f"it is about version {other} of {name}; of {version}, which is served, it says nothing"
                )
                hint = f"Write {version} in its place, if that is meant."
                found.append(Finding(Severity.NOTICE, origin.file, origin.line, origin.key, text, "", hint))
        return found


NO_RULES = ServerRules()
ENVELOPES = ("body", "json", "kserve", "kservev2")
"""What may be around the data of requests."""

ONE_AT_A_TIME = frozenset({"kserve", "kservev2"})
"""Envelopes that hold one request, whatever a batch has."""


def layered(
    config: ModelConfig, over: Mapping[str, SourceSetting], under: Mapping[str, SourceSetting]
) -> ModelConfig:
    """Return the configuration with the values that count; `ModelConfig.places` says where those of others stand."""
    values, places = dict(config.values), dict(config.places)
    findings = list(config.findings)

    def take(row: Setting, setting: SourceSetting) -> None:
        if fault := wrong(setting.origin, row, setting.value):
            findings.append(fault)
        else:
            values[row.name], places[row.name] = row.kind.read(setting.value), setting.origin

    for name, key in REGISTERED.items():
        if name in over and not (config.file and key in _TIMEOUTS):
            take(ROWS[key], over[name])
    has_workers = _has_workers(config)
    if WORKERS in over and not has_workers:
        for key in (_LOWEST, _MOST):
            take(replace(ROWS[key], kind=Whole()), over[WORKERS])
        has_workers = True
    for key, setting in under.items():
        is_settled = has_workers if key in (_LOWEST, _MOST) else key in values
        if not is_settled and not (config.file and key in _TIMEOUTS):
            take(replace(ROWS[key], kind=Whole()) if key == _LOWEST else ROWS[key], setting)
    return replace(config, values=values, places=places, findings=tuple(findings))


def _has_workers(config: ModelConfig) -> bool:
    """Tell whether a file says how many workers there are: both numbers, or one of them, that fit together."""
    lowest, most = config.number(_LOWEST), config.number(_MOST)
    return lowest is not None and lowest > 0 and (most is None or most >= lowest)


def config_origin(config: ModelConfig, key: str, rule: str) -> Origin:
    """Return where the value of a key stands: in the file, elsewhere, or nowhere, so that a rule filled it in."""
    return config.place(key) if key in config.values else Origin(rule, "")
