"""Model folders on a cluster of Ray: `trivium.ray:app` for `serve run`, `serve deploy` and KubeRay.

Needs the extra `ray`. What is pure here is imported without it, so `app` loads on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivium.ray.application import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'trivium.ray' has no attribute {name!r}; it has: {', '.join(__all__)}")
    from trivium.ray import application

    return getattr(application, name)
