"""`timed`: how long the steps of a handler take, where its configuration says `handler: {profile: true}`."""

import functools
import time
from collections.abc import Callable
from typing import Any


def timed(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, whose milliseconds become the metric `ts_handler_<its name>`."""

    @functools.wraps(method)
    def run(handler: Any, *arguments: Any, **named: Any) -> Any:
        context = handler.context
        settings = (getattr(context, "model_yaml_config", None) or {}).get("handler")
        if not isinstance(settings, dict) or not settings.get("profile"):
            return method(handler, *arguments, **named)
        began = time.perf_counter()
        result = method(handler, *arguments, **named)
        spent = (time.perf_counter() - began) * 1000
        context.metrics.add_time("ts_handler_" + method.__name__, round(spent, 3), None, "ms")
        return result

    return run
