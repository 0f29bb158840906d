"""metrics.yaml: the metrics that a TorchServe has, by name, with unit, kind and dimensions, and what is wrong with it.

Source: spec sheet `torchserve`, section 6, and the file that 0.12.0 ships, which counts where an operator gives none.
The server's own metrics stand under `ts_metrics`, those of handlers under `model_metrics`, which have Hostname as a
last dimension without naming it. YAML is read safely.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from trivium.codecs.yaml_documents import YamlRefused, load
from trivium.types.findings import Finding, Severity

MAX_BYTES = 2**18
MOST_ALIASES = 1000
"""The original's own file is full of them."""

COUNTER, GAUGE, HISTOGRAM = KINDS = ("counter", "gauge", "histogram")
HOSTNAME = "Hostname"
_SECTIONS = ("ts_metrics", "model_metrics")
_KEYS = ("dimensions", *_SECTIONS)
_FIELDS = ("name", "unit", "dimensions")


@dataclass(frozen=True, slots=True)
class DeclaredMetric:
    """A metric: its name, its `kind`, its unit as it is written, and the names of its dimensions, the host's last."""

    name: str
    kind: str
    unit: str
    dimensions: tuple[str, ...]


Declared = Mapping[str, DeclaredMetric]


@dataclass(frozen=True, slots=True)
class MetricsDeclarations:
    """Holds the metrics of a server, by name: its own, and those of its models' handlers."""

    server: Declared = field(default_factory=dict)
    models: Declared = field(default_factory=dict)


def _declared(kind: str, unit: str, dimensions: str, names: str) -> Iterator[DeclaredMetric]:
    for name in names.split():
        yield DeclaredMetric(name, kind, unit, tuple(dimensions.split()))


def _by_name(*several: Iterable[DeclaredMetric]) -> Declared:
    return {metric.name: metric for some in several for metric in some}


_HOST, _DEVICE, _VERSION = "Level Hostname", "Level DeviceId Hostname", "model_name model_version hostname"
DEFAULTS = MetricsDeclarations(
    _by_name(
        _declared(COUNTER, "Count", _HOST, "Requests2XX Requests4XX Requests5XX"),
        _declared(COUNTER, "Count", _VERSION, "ts_inference_requests_total"),
        _declared(
            COUNTER,
            "Microseconds",
            _VERSION,
            "ts_inference_latency_microseconds ts_queue_latency_microseconds",
        ),
        _declared(GAUGE, "Milliseconds", _HOST, "QueueTime WorkerThreadTime"),
        _declared(GAUGE, "Milliseconds", "WorkerName Level Hostname", "WorkerLoadTime"),
        _declared(GAUGE, "Percent", _HOST, "CPUUtilization"),
        _declared(GAUGE, "Megabytes", _HOST, "MemoryUsed MemoryAvailable"),
        _declared(GAUGE, "Percent", _HOST, "MemoryUtilization"),
        _declared(GAUGE, "Gigabytes", _HOST, "DiskUsage"),
        _declared(GAUGE, "Percent", _HOST, "DiskUtilization"),
        _declared(GAUGE, "Gigabytes", _HOST, "DiskAvailable"),
        _declared(GAUGE, "Percent", _DEVICE, "GPUMemoryUtilization"),
        _declared(GAUGE, "Megabytes", _DEVICE, "GPUMemoryUsed"),
        _declared(GAUGE, "Percent", _DEVICE, "GPUUtilization"),
    ),
    _by_name(_declared(GAUGE, "ms", "ModelName Level Hostname", "HandlerTime PredictionTime")),
)
"""What there is without a file: that of 0.12.0."""


def read_metrics_config(file: str, data: bytes) -> tuple[MetricsDeclarations, tuple[Finding, ...]]:
    """Return the metrics that a file declares, and a finding for each fault; with faults the metrics are not whole."""
    if len(data) > MAX_BYTES:
        return MetricsDeclarations(), (
            _fault(file, None, "", f"more than {MAX_BYTES} bytes", "a smaller file"),
        )
    try:
        values, node = load(data.decode("utf-8-sig"), MOST_ALIASES)
    except YamlRefused as refused:
        return MetricsDeclarations(), (_fault(file, refused.line, "", str(refused), "YAML of plain values"),)
    except ValueError as error:
        return MetricsDeclarations(), (_fault(file, None, "", str(error), "a file in UTF-8"),)
    if not isinstance(values, dict) or not isinstance(node, yaml.MappingNode):
        found = "nothing" if values is None else "no mapping"
        return MetricsDeclarations(), (
            _fault(file, 1, "", found, f"a mapping with {' and '.join(_SECTIONS)}"),
        )
    reader = _MetricsReader(file)
    return reader.read(node), tuple(reader.findings)


class _MetricsReader:
    """Reads one document, and keeps what is wrong with it."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.findings: list[Finding] = []

    def read(self, node: yaml.MappingNode) -> MetricsDeclarations:
        """Return the metrics of both sections."""
        found: dict[str, dict[str, DeclaredMetric]] = {section: {} for section in _SECTIONS}
        for key, value, line in _entries(node):
            if key not in _KEYS:
                self._note(line, key, "an unknown key", f"one of {', '.join(_KEYS)}")
            elif key == "dimensions":
                self._names(value, key)
            elif not _is_nothing(value):
                self._section(key, value, line, found[key])
        return MetricsDeclarations(found["ts_metrics"], found["model_metrics"])

    def _section(self, section: str, node: yaml.Node, line: int, found: dict[str, DeclaredMetric]) -> None:
        if not isinstance(node, yaml.MappingNode):
            self._note(line, section, "no mapping", f"lists under {', '.join(KINDS)}")
            return
        for kind, metrics, at in _entries(node):
            if kind not in KINDS:
                self._note(at, f"{section}.{kind}", "an unknown type", f"one of {', '.join(KINDS)}")
            elif isinstance(metrics, yaml.SequenceNode):
                for number, metric in enumerate(metrics.value):
                    self._metric(f"{section}.{kind}[{number}]", section, kind, metric, found)
            elif not _is_nothing(metrics):
                self._note(at, f"{section}.{kind}", "no list", "a list of metrics, each with - in front")

    def _metric(
        self, key: str, section: str, kind: str, node: yaml.Node, found: dict[str, DeclaredMetric]
    ) -> None:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.MappingNode):
            self._note(line, key, "no mapping", f"{', '.join(_FIELDS)}")
            return
        fields = {name: (value, at) for name, value, at in _entries(node)}
        for name, (_, at) in fields.items():
            if name not in _FIELDS:
                self._note(at, f"{key}.{name}", "an unknown key", f"one of {', '.join(_FIELDS)}")
        texts = {name: self._text(f"{key}.{name}", fields.get(name), line) for name in ("name", "unit")}
        if "dimensions" not in fields:
            self._note(line, f"{key}.dimensions", "nothing", "a list of names, [] for none")
        dimensions = (
            self._names(fields["dimensions"][0], f"{key}.dimensions") if "dimensions" in fields else None
        )
        if dimensions is None or not all(texts.values()):
            return
        last = (HOSTNAME,) if section == "model_metrics" and HOSTNAME not in dimensions else ()
        own = DEFAULTS.server.get(texts["name"]) if section == "ts_metrics" else None
        if own is not None and len(own.dimensions) != len(dimensions):
            wants = f"{len(own.dimensions)}, for {', '.join(own.dimensions)}"
            self._note(line, f"{key}.dimensions", f"{len(dimensions)} dimensions", wants)
        if texts["name"] in found:
            self._note(
                line, f"{key}.name", f"{texts['name']} for the second time", "each name once in a section"
            )
        found[texts["name"]] = DeclaredMetric(texts["name"], kind, texts["unit"], (*dimensions, *last))

    def _text(self, key: str, given: tuple[yaml.Node, int] | None, line: int) -> str:
        if given is None:
            self._note(line, key, "nothing", "a text that is not empty")
            return ""
        node, line = given
        if not isinstance(node, yaml.ScalarNode) or _is_nothing(node):
            self._note(line, key, "no text", "a text that is not empty")
            return ""
        return str(node.value)

    def _names(self, node: yaml.Node, key: str) -> tuple[str, ...] | None:
        line = node.start_mark.line + 1
        if _is_nothing(node):
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._note(line, key, "no list", "a list of names, [] for none")
            return None
        for each in node.value:
            if not isinstance(each, yaml.ScalarNode) or _is_nothing(each):
                self._note(each.start_mark.line + 1, key, "a dimension that is no text", "names alone")
                return None
        names = tuple(str(each.value) for each in node.value)
        if len(set(names)) < len(names):
            self._note(line, key, "a dimension twice", "each name once")
            return None
        return names

    def _note(self, line: int, key: str, found: str, expected: str) -> None:
        self.findings.append(_fault(self._file, line, key, found, expected))


def _entries(node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, int]]:
    for key, value in node.value:
        yield str(getattr(key, "value", "")), value, key.start_mark.line + 1


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and (node.tag.endswith(":null") or not node.value)


def _fault(file: str, line: int | None, key: str, found: str, expected: str) -> Finding:
    hint = "Correct the file, or leave metrics_config out: then TorchServe's own metrics.yaml counts."
    return Finding(Severity.ERROR, file, line, key, found[:300], expected, hint)


def rows_of(metrics: Declared) -> list[list[object]]:
    """Return metrics as a worker gets to know them: kind, name, unit and dimensions without the host's."""
    return [[each.kind, each.name, each.unit, list(each.dimensions[:-1])] for each in metrics.values()]
