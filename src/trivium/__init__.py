"""Trivium: any model folder, any engine, any client.

The public names load on first use, so that `import trivium` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivium.catalogue import asgi, serving
    from trivium.core.server import Server
    from trivium.types.errors import Code, ServeError
    from trivium.types.operations import Infer, Listing, ModelDescription, ResponsePart
    from trivium.types.payload import Raw, RawPart, Tensor, Tensors
    from trivium.types.spec import ModelSpec

_HOMES = {
    "Code": "trivium.types.errors",
    "Infer": "trivium.types.operations",
    "Listing": "trivium.types.operations",
    "ModelDescription": "trivium.types.operations",
    "ModelSpec": "trivium.types.spec",
    "Raw": "trivium.types.payload",
    "RawPart": "trivium.types.payload",
    "ResponsePart": "trivium.types.operations",
    "ServeError": "trivium.types.errors",
    "Server": "trivium.core.server",
    "Tensor": "trivium.types.payload",
    "Tensors": "trivium.types.payload",
    "asgi": "trivium.catalogue",
    "serving": "trivium.catalogue",
}

__all__ = [
    "Code",
    "Infer",
    "Listing",
    "ModelDescription",
    "ModelSpec",
    "Raw",
    "RawPart",
    "ResponsePart",
    "ServeError",
    "Server",
    "Tensor",
    "Tensors",
    "asgi",
    "serving",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trivium' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
