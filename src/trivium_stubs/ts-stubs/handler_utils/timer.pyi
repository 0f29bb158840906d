from collections.abc import Callable
from typing import Any

def timed(method: Callable[..., Any]) -> Callable[..., Any]: ...
