from _typeshed import Incomplete
from collections.abc import Iterable
from typing import Any

class Metric:
    name: Incomplete
    unit: Incomplete
    value: Incomplete
    dimensions: Incomplete
    request_id: Incomplete
    def __init__(self, name: str, value: float, unit: str, dimensions: Iterable[Any], request_id: str | None = None, metric_method: str | None = None) -> None: ...
    def update(self, value: float) -> None: ...
    def reset(self) -> None: ...
    def emit(self) -> None: ...
