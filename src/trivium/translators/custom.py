"""The objects that a translator of one's own gets: `ctx`, which knows the model's folder, and `input`, the request."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivium.translators.files import file_in
from trivium.translators.pictures.pipeline import require_pillow
from trivium.types.errors import Code, ServeError
from trivium_child.picture_steps import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_DATA = "data"


class TranslatorContext:
    """The model of a translator: its arguments, and the files of its folder."""

    def __init__(self, folder: Path, arguments: Mapping[str, object]) -> None:
        self.arguments = arguments
        self._folder = folder

    def artifact(self, name: str) -> Path:
        """Return the path of a file in the model's folder. LOAD_FAILED for a name that leads out of it."""
        return file_in(self._folder, name)


class TranslatorInput:
    """One request: `content` has its body as `data` and the fields of a form by name; `properties` are its headers."""

    def __init__(self, content: Mapping[str, bytes], properties: Mapping[str, str]) -> None:
        self.content = content
        self.properties = properties

    def get_as_bytes(self, key: str = "") -> bytes:
        """Return a field; without a key `data`, or else the first. INVALID where it is not there."""
        found = self.content.get(key or _DATA)
        if found is None and not key:
            found = next(iter(self.content.values()), None)
        if found is None:
            there = ", ".join(self.content) or "nothing"
            message = f"Input data is empty: the request has no {key or _DATA!r}; it has {there}."
            raise ServeError(Code.INVALID, message)
        return bytes(found)

    def get_as_string(self, key: str = "") -> str:
        """Return a field as text. INVALID where it is no UTF-8."""
        try:
            return self.get_as_bytes(key).decode()
        except UnicodeDecodeError as error:
            raise ServeError(Code.INVALID, f"Input is no UTF-8 text: {error}.") from error

    def get_as_json(self, key: str = "") -> Any:
        """Return what a field's JSON says. INVALID where it is none."""
        try:
            return json.loads(self.get_as_string(key))
        except (ValueError, RecursionError) as error:
            raise ServeError(Code.INVALID, f"Input is not a valid json. {error}.") from error

    def get_as_image(self, key: str = "") -> "Picture":
        """Return a field as a Pillow image of 8 bits in RGB. INVALID where it is no picture."""
        require_pillow()
        try:
            return open_picture(self.get_as_bytes(key))
        except ValueError as error:
            raise ServeError(Code.INVALID, f"Input is not an Image data type: {error}.") from error
