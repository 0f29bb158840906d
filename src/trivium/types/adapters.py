"""Adapters of a model by the standing calls that register them: what these are called, and what they are called with.

Whoever makes them (DJL's routes, a folder of adapters) and whoever carries them out (a handler in Python, the engine of
language models) agree on these words. Source: spec sheet `djl`, section 5.4.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.types.payload import Raw
from trivium.types.spec import StandingCall

REGISTER, UPDATE, UNREGISTER = "register_adapter", "update_adapter", "unregister_adapter"
FUNCTIONS = (REGISTER, UPDATE, UNREGISTER)
FOLDER = "adapters"
"""Folder of a model whose folders are adapters from the start."""
NAME, SOURCE = "name", "src"
"""Properties of a call: which adapter it is about, and the path of its folder."""


def payload(name: str, src: str = "", arguments: tuple[tuple[str, str], ...] = ()) -> Raw:
    """Return what a function is called with: name and place as properties, the request's arguments as content."""
    properties = {NAME: name, "alias": name}
    return Raw((), properties | ({SOURCE: src} if src else {}), arguments)


def found(name: str, src: str) -> StandingCall:
    """Return the registration of an adapter that a model's own folder holds."""
    made = payload(name, src, ((NAME, name), (SOURCE, src)))
    return StandingCall(name, REGISTER, made.properties, made.query)


def adapter_folders(text: str) -> Mapping[str, str] | None:
    """Read NAME=FOLDER pairs with ; between them: the folder of each adapter by its name. None where they are none."""
    found: dict[str, str] = {}
    for pair in (one.strip() for one in text.split(";")):
        name, sign, folder = (part.strip() for part in pair.partition("="))
        if pair and not (sign and name and folder and name not in found):
            return None
        if pair:
            found[name] = folder
    return found


def in_folder(place: Path) -> Iterator[StandingCall]:
    """Yield the registrations of the adapters whose folders lie in this one, by their names. Raises OSError."""
    for entry in sorted(place.iterdir()):
        if entry.is_dir() and not entry.name.startswith("."):
            yield found(entry.name, str(entry))
