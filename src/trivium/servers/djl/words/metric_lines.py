"""Reads a line of a worker's output that tells of a metric: `[METRICS]Name.Unit:value|#Dimension:value|epoch|c`.

Source: spec sheet `djl`, sections 1.5 and 5.3. Pure.
"""

import re
from collections.abc import Mapping

_MARK = "[METRICS]"
_LINE = re.compile(
    r"\s*(?P<name>\w[\w ]*)\.(?P<unit>\w[\w /]*):(?P<value>[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?:\|#(?P<dimensions>[^|]*))?(?:\|[0-9]+)?(?:\|(?P<kind>[cgh]))?\s*"
)
_KINDS = {"c": "counter", "g": "gauge", "h": "histogram"}
_VERBS = {"counter": "add", "gauge": "set", "histogram": "observe"}


def read_metric(line: str) -> Mapping[str, object] | None:
    """Return the step of a custom metric that a line tells of; None where it tells of none.

    What is counted is a counter, anything else a gauge, unless the line says what it is. The first dimension is its
    label.
    """
    _, mark, text = line.partition(_MARK)
    found = _LINE.fullmatch(text) if mark else None
    if found is None:
        return None
    unit = found["unit"].strip()
    kind = _KINDS[found["kind"]] if found["kind"] else "counter" if unit.lower() == "count" else "gauge"
    name = found["name"].strip().replace(" ", "_")
    dimension, sign, value = (found["dimensions"] or "").partition(",")[0].partition(":")
    return {
        "kind": kind,
        "name": f"{name}_total" if kind == "counter" else name,
        "help": f"{name} in {unit}, as the model's handler tells it",
        "labels": {dimension.strip(): value.strip()} if sign and dimension.strip() else {},
        _VERBS[kind]: float(found["value"]),
    }
