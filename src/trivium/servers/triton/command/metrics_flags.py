"""The metrics flags of `tritonserver` as fields of our configuration.

Pure. Source: spec sheet `triton`, sections 1.1 and 6.2.
"""

from collections.abc import Mapping
from typing import Any

from trivium.servers.triton.command.flags import BOOL, read
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError

_SWITCHES = ("counter_latencies", "summary_latencies", "histogram_latencies")
_QUANTILES = "summary_quantiles"
_USUAL_QUANTILES = "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"
"""Of the original, each with the error that is allowed."""

_NOWHERE = -1
_SWITCH = Setting("--metrics-config", BOOL)


def metrics_fields(values: Mapping[str, Any]) -> dict[str, object]:
    """Field -> value."""
    told = _told(values["--metrics-config"])
    quantiles = _quantiles(told.get(_QUANTILES, _USUAL_QUANTILES))
    return {
        "metrics_host": values["--metrics-address"] or values["--http-address"],
        "metrics_port": values["--metrics-port"] if values["--allow-metrics"] else _NOWHERE,
        "metrics_interval": values["--metrics-interval-ms"] / 1000,
        "no_cpu_metrics": not values["--allow-cpu-metrics"],
        "no_gpu_metrics": not values["--allow-gpu-metrics"],
        "no_duration_metrics": not _is_on(told, "counter_latencies", "true"),
        "metrics_first_part": _is_on(told, "histogram_latencies", "false"),
        "metrics_quantiles": quantiles if _is_on(told, "summary_latencies", "false") else "",
    }


def _told(texts: tuple[str, ...]) -> dict[str, str]:
    told: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ServeError(
                Code.INVALID, f"--metrics-config option format is '<setting>=<value>'. Got {text}"
            )
        if key not in (*_SWITCHES, _QUANTILES):
            known = ", ".join((*_SWITCHES, _QUANTILES))
            raise ServeError(
                Code.INVALID, f"--metrics-config: there is no setting '{key}'; there are: {known}"
            )
        told[key] = value
    return told


def _is_on(told: Mapping[str, str], key: str, default: str) -> bool:
    return bool(read(_SWITCH, told.get(key, default)))


def _quantiles(text: str) -> str:
    """Return the quantiles without their errors: ours are of a fixed kind."""
    return ",".join(pair.partition(":")[0].strip() for pair in text.split(","))
