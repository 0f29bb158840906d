"""The one table of what is worth looking at, and of what is worth waking somebody for: metrics, how they are asked for,
and above which value something is wrong.

A dashboard for Grafana and alert rules for Prometheus are written from it. In an expression `$model` stands for the
labels by which a model's series are chosen, `$server` for those of a server's, `$range` for a time.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"\b(?:trivium|nv)_[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Alert:
    """Says when something is wrong: the expression yields a series for each case, and has to for so many `minutes`.
    `summary` is a sentence about one, in Prometheus' templates; `mend` what to do then.
    """

    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    mend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph: its `queries` with the name of each series, in a unit of Grafana's, and what is wrong there."""

    section: str
    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    alerts: tuple[Alert, ...] = ()


_BY_MODEL = "job, instance, model"
_REQUESTS, _CAPACITY, _HEALTH = "Requests", "Capacity", "Health"

PANELS: Sequence[Panel] = (
    Panel(
        _REQUESTS,
        "Requests answered well",
        "reqps",
        (("sum by (model) (rate(trivium_request_seconds_count{$model}[$range]))", "{{model}}"),),
    ),
    Panel(
        _REQUESTS,
        "Requests that failed",
        "reqps",
        (
            (
                "sum by (model, code) (rate(trivium_request_failures_total{$model}[$range]))",
                "{{model}} {{code}}",
            ),
        ),
        (
            Alert(
                "TriviumRequestsFail",
                f'sum by ({_BY_MODEL}) (rate(trivium_request_failures_total{{code!="cancelled"}}[$range])) / '
                f"(sum by ({_BY_MODEL}) (rate(trivium_request_seconds_count[$range])) + sum by ({_BY_MODEL}) "
                '(rate(trivium_request_failures_total{code!="cancelled"}[$range]))) > 0.05',
                5,
                "warning",
                "{{ $value | humanizePercentage }} of the requests to model {{ $labels.model }} fail",
                "The codes are in the graph of failed requests, the sentences in the server's log and on its console.",
            ),
        ),
    ),
    Panel(
        _REQUESTS,
        "Time to the answer",
        "s",
        tuple(
            (
                f"histogram_quantile({quantile}, sum by (model, le) "
                "(rate(trivium_request_seconds_bucket{$model}[$range])))",
                f"{{{{model}}}} p{quantile[2:].ljust(2, '0')}",
            )
            for quantile in ("0.5", "0.99")
        ),
    ),
    Panel(
        _REQUESTS,
        "Time in the queue, p99",
        "s",
        (
            (
                "histogram_quantile(0.99, sum by (model, le) "
                "(rate(trivium_queue_wait_seconds_bucket{$model}[$range])))",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        _REQUESTS,
        "Rows of an execution, mean",
        "short",
        (
            (
                "sum by (model) (rate(trivium_batch_rows_sum{$model}[$range])) / "
                "sum by (model) (rate(trivium_batch_rows_count{$model}[$range]))",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        _REQUESTS,
        "Computed for clients that had left",
        "reqps",
        (("sum by (model) (rate(trivium_wasted_items_total{$model}[$range]))", "{{model}}"),),
    ),
    Panel(
        _CAPACITY,
        "Saturation (1 is just full)",
        "short",
        (("max by (model) (avg_over_time(trivium_saturation{$model}[$range]))", "{{model}}"),),
        (
            Alert(
                "TriviumSaturated",
                "avg_over_time(trivium_saturation[$range]) > 1",
                10,
                "warning",
                "Model {{ $labels.model }} has more requests than it can take: saturation {{ $value | humanize }}",
                "Give it more instances, or run more replicas: scale by trivium_server_saturation.",
            ),
        ),
    ),
    Panel(
        _CAPACITY,
        "Share of the places that was used",
        "percentunit",
        (
            (
                "sum by (model) (rate(trivium_busy_seconds_total{$model}[$range])) / sum by (model) "
                "(trivium_places{$model})",
                "{{model}}",
            ),
        ),
    ),
    Panel(
        _CAPACITY,
        "Requests that wait",
        "short",
        (("sum by (model) (nv_inference_pending_request_count{$model})", "{{model}}"),),
    ),
    Panel(
        _CAPACITY,
        "Instances",
        "short",
        (("sum by (model, state) (trivium_instances{$model})", "{{model}} {{state}}"),),
        (
            Alert(
                "TriviumInstancesLack",
                f'sum by ({_BY_MODEL}) (trivium_instances{{state="lacking"}}) > 0',
                5,
                "critical",
                "{{ $value }} instances of model {{ $labels.model }} should be there and are not",
                "Why they do not open is in the server's log and on its console.",
            ),
        ),
    ),
    Panel(
        _CAPACITY,
        "Oldest run in hand",
        "s",
        (("max by (model) (trivium_oldest_run_seconds{$model})", "{{model}}"),),
        (
            Alert(
                "TriviumRunHangs",
                "trivium_oldest_run_seconds > 120",
                1,
                "warning",
                "A run of model {{ $labels.model }} has taken {{ $value | humanizeDuration }} so far",
                "It is ended at --run-timeout, or the model's own bound; set that to what a run may take.",
            ),
        ),
    ),
    Panel(
        _HEALTH,
        "Versions of models by state",
        "short",
        (("count by (state) (trivium_model_state{$model})", "{{state}}"),),
        (
            Alert(
                "TriviumModelFailed",
                'trivium_model_state{state="failed"} == 1',
                1,
                "critical",
                "Version {{ $labels.version }} of model {{ $labels.model }} could not be loaded",
                "The reason is in the repository's index, in the server's log and on its console.",
            ),
        ),
    ),
    Panel(
        _HEALTH,
        "Deaths of workers",
        "short",
        (
            (
                "sum by (model, cause) (increase(trivium_worker_deaths_total{$model}[$range]))",
                "{{model}} {{cause}}",
            ),
        ),
        (
            Alert(
                "TriviumWorkersDie",
                f"sum by ({_BY_MODEL}) (increase(trivium_worker_deaths_total[15m])) > 2",
                0,
                "warning",
                "Workers of model {{ $labels.model }} have died {{ $value | humanize }} times in a quarter of an hour",
                "Their last lines are in the server's log and on its console.",
            ),
            Alert(
                "TriviumOutOfMemory",
                f"sum by ({_BY_MODEL}) "
                '(increase(trivium_worker_deaths_total{cause=~"out_of_memory|memory_limit"}[15m])) > 0',
                0,
                "critical",
                "A worker of model {{ $labels.model }} was killed for want of memory",
                "Give the container more memory, or run fewer instances or smaller batches.",
            ),
        ),
    ),
    Panel(
        _HEALTH,
        "Resident memory",
        "bytes",
        (
            ('sum by (instance) (trivium_resident_bytes{process="server",$server})', "{{instance}} server"),
            ('sum by (model) (trivium_resident_bytes{process="worker",$model})', "{{model}} workers"),
        ),
    ),
    Panel(
        _HEALTH,
        "How late the event loop is, p99",
        "s",
        (
            (
                "histogram_quantile(0.99, sum by (instance, le) "
                "(rate(trivium_loop_delay_seconds_bucket{$server}[$range])))",
                "{{instance}}",
            ),
        ),
        (
            Alert(
                "TriviumLoopIsLate",
                "histogram_quantile(0.99, sum by (job, instance, le) "
                "(rate(trivium_loop_delay_seconds_bucket[$range]))) > 0.1",
                10,
                "warning",
                "The event loop of {{ $labels.instance }} is {{ $value | humanizeDuration }} late, in 1 of 100 looks",
                "The processors are too few, or taken by others; the log says which where it stalls.",
            ),
        ),
    ),
    Panel(
        _HEALTH,
        "Processors in use",
        "percentunit",
        (("max by (instance) (nv_cpu_utilization{$server})", "{{instance}}"),),
    ),
    Panel(
        _HEALTH,
        "What runs",
        "short",
        (
            (
                "max by (instance, version, python, engines) (trivium_build_info{$server})",
                "{{instance}} {{version}}, Python {{python}}, {{engines}}",
            ),
            ("max by (instance) (trivium_server_saturation{$server})", "{{instance}} saturation"),
        ),
        (
            Alert(
                "TriviumGone",
                "absent(trivium_build_info)",
                5,
                "critical",
                "No server is scraped",
                "See the targets of Prometheus: either none runs, or none can be reached.",
            ),
        ),
    ),
)


def alerts() -> Iterator[Alert]:
    """Yield all alerts of the table."""
    for panel in PANELS:
        yield from panel.alerts


def asked_for() -> frozenset[str]:
    """Return the names of all samples that the table asks for."""
    texts = [query for panel in PANELS for query, _ in panel.queries] + [
        alert.expression for alert in alerts()
    ]
    return frozenset(name for text in texts for name in _NAME.findall(text))


def rules() -> str:
    """Return the alert rules as a file that Prometheus reads, in YAML."""
    lines = [
        "# Alert rules for Trivium, printed by `trivium signals rules`: its docs/metrics.md says how to use them.",
        "groups:",
        "  - name: trivium",
        "    rules:",
    ]
    for alert in alerts():
        expression = alert.expression.replace("$range", "5m")
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {json.dumps(expression)}",
            *([f"        for: {alert.minutes}m"] if alert.minutes else []),
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {json.dumps(alert.summary)}",
            f"          description: {json.dumps(alert.mend)}",
        ]
    return "\n".join(lines) + "\n"


_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """Return the dashboard as a file that Grafana imports, in JSON."""
    shown: list[dict[str, object]] = []
    top = 0
    for section in dict.fromkeys(panel.section for panel in PANELS):
        place = {"h": 1, "w": 24, "x": 0, "y": top}
        shown.append({"type": "row", "title": section, "id": len(shown) + 1, "gridPos": place, "panels": []})
        top += 1
        mine = [panel for panel in PANELS if panel.section == section]
        for number, panel in enumerate(mine):
            row, column = divmod(number, _COLUMNS)
            shown.append(_graph(panel, len(shown) + 1, column * _WIDTH, top + row * _HEIGHT))
        top += -(-len(mine) // _COLUMNS) * _HEIGHT
    told = {
        "title": "Trivium",
        "uid": "trivium",
        "description": "Printed by `trivium signals dashboard`.",
        "tags": ["trivium"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("instance", "label_values(trivium_build_info, instance)"),
                _variable("model", 'label_values(trivium_model_state{instance=~"$instance"}, model)'),
            ]
        },
        "panels": shown,
    }
    return json.dumps(told, indent=2) + "\n"


def _variable(name: str, query: str) -> dict[str, object]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _graph(panel: Panel, number: int, left: int, top: int) -> dict[str, object]:
    targets = [
        {
            "refId": chr(ord("A") + i),
            "datasource": _SOURCE,
            "expr": query.replace("$model", 'instance=~"$instance",model=~"$model"')
            .replace("$server", 'instance=~"$instance"')
            .replace("$range", "$__rate_interval"),
            "legendFormat": legend,
        }
        for i, (query, legend) in enumerate(panel.queries)
    ]
    words = "\n\n".join(f"{alert.name}: {alert.mend}" for alert in panel.alerts)
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": words,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": left, "y": top},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }
