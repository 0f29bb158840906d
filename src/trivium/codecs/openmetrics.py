"""OpenMetrics 1.0: the families of `exposition` in the text of that standard, with exemplars.

Names of samples are those of Prometheus' own format, whoever scrapes in which: a counter whose name does not end as the
standard asks is of the type `unknown` here. Bounds are floating-point numbers, as it asks, too.
"""

import re
from collections.abc import Iterable

from trivium.codecs.exposition import ExposedMetric, number
from trivium.types.metrics import Exemplar

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TOTAL = "_total"
_WHOLE_BOUND = re.compile(r'((?:le|quantile)="\d+)"(?=\} )')
_SIX_DIGITS = 7


def is_wanted(accept: str) -> bool:
    """Tell whether a header Accept names this format. Whoever asks for it at all reads it, and prefers it."""
    return any(
        each.partition(";")[0].strip() == "application/openmetrics-text" for each in accept.lower().split(",")
    )


def text(families: Iterable[ExposedMetric]) -> bytes:
    """The whole answer."""
    lines: list[str] = []
    for family in families:
        name, kind = family.name, family.kind
        if kind == "counter":
            name, kind = (name.removesuffix(_TOTAL), kind) if name.endswith(_TOTAL) else (name, "unknown")
        lines.append(f"# TYPE {name} {kind}")
        lines.append(f"# HELP {name} {_escaped(family.help)}")
        has_bounds = kind in ("histogram", "summary")
        for i, line in enumerate(family.lines):
            line = _WHOLE_BOUND.sub(_with_point, line) if has_bounds else line
            exemplar = family.exemplars.get(i)
            lines.append(_value_as_here(line) if exemplar is None else f"{line}{_written(exemplar)}")
    lines.append("# EOF\n")
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _with_point(found: re.Match[str]) -> str:
    """Return a bound that was written as a whole number as the standard has it: 1.0, and 1e+06."""
    begin, _, digits = found[1].rpartition('"')
    if len(digits) < _SIX_DIGITS:
        return f'{begin}"{digits}.0"'
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0").rstrip(".")
    return f'{begin}"{mantissa}e+{len(digits) - 1:02d}"'


def _value_as_here(line: str) -> str:
    return f"{line[:-3]}NaN" if line.endswith(" Nan") else line


def _written(exemplar: Exemplar) -> str:
    return f' # {{trace_id="{exemplar.trace}"}} {number(exemplar.value)} {exemplar.when:.3f}'


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
