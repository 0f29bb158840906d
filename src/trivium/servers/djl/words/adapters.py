"""Adapters in DJL's words: the functions of a handler that register them, and what these are called with.

Source: spec sheet `djl`, section 5.4. Pure.
"""

from trivium.types.payload import Raw
from trivium.types.spec import StandingCall

REGISTER, UPDATE, UNREGISTER = "register_adapter", "update_adapter", "unregister_adapter"
FUNCTIONS = (REGISTER, UPDATE, UNREGISTER)
FOLDER = "adapters"
"""Folder of a model whose folders are adapters from the start."""


def payload(name: str, src: str = "", arguments: tuple[tuple[str, str], ...] = ()) -> Raw:
    """Return what a function is called with: name and place as properties, the request's arguments as content."""
    properties = {"name": name, "alias": name}
    return Raw((), properties | ({"src": src} if src else {}), arguments)


def found(name: str, src: str) -> StandingCall:
    """Return the registration of an adapter that a model's own folder holds."""
    made = payload(name, src, (("name", name), ("src", src)))
    return StandingCall(name, REGISTER, made.properties, made.query)
