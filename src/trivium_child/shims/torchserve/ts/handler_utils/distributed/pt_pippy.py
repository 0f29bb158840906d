"""Models over several processes, which are not served yet: whatever is called here says so."""

from typing import Any, Callable

from ts.unserved import refusal


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)

    def call(*arguments: Any, **named: Any) -> Any:
        raise refusal("%s.%s" % (__name__, name))

    return call
