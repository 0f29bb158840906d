from collections.abc import Callable
from typing import Any

Measure = Callable[[dict[str, Any]], None]

class Sink:
    measure: Measure | None

def tell(kind: str, name: str, unit: str, labels: dict[str, str], value: float, request: str = '') -> None: ...
