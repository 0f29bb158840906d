"""Writes a measurement as the line of a log: `Name.Unit:value|#Dimension:value,...|epoch|kind`.

Source: spec sheet `djl`, section 1.5. Programs that read a server's log know it by this form.
"""

from collections.abc import Mapping

_RESERVED = str.maketrans(dict.fromkeys("|,#\r\n", "_"))
"""Characters that part a line: they become underscores in names and values."""


def metric_line(
    name: str, unit: str, value: float, dimensions: Mapping[str, str], epoch: float, kind: str = "g"
) -> str:
    """Return the line of a gauge (or with the kind c a counter) at a time, in seconds since 1970."""
    shown = ",".join(f"{key}:{text.translate(_RESERVED)}" for key, text in dimensions.items())
    number = f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{name}.{unit}:{number}|#{shown}|{epoch:.0f}|{kind}"
