from collections.abc import Iterable
from typing import Any

def emit_metrics(metrics: Iterable[Any]) -> None: ...
