"""A request as a DJL handler sees it: properties (headers) and content (the query's arguments, then the body).

Numpy and PIL are imported by those methods only that give their objects.
"""

import csv
import io
import json
from typing import Any, cast

from djl_python.pair_list import PairList

_DATA = "data"
_BATCH, _SIZE = "batch_", "batch_size"
_INDEX, _NAME = slice(6, 9), slice(10, None)
"""Where the number and the name stand in `batch_000.data`; what is between them is not looked at."""


class Properties(dict[str, str]):
    """A dict that finds a key in any case: names of headers have none."""

    def __missing__(self, key: str) -> str:
        lower = key.lower()
        for name in self:
            if name.lower() == lower:
                return self[name]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if dict.__contains__(self, key):
            return True
        return isinstance(key, str) and any(name.lower() == key.lower() for name in self)

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or `default`."""
        try:
            return self[key]
        except KeyError:
            return default


class Input:
    """One request, or several that are batched. An empty one comes once, when the worker starts."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = Properties()
        self.content = PairList()
        self.function_name: str | None = None

    def __str__(self) -> str:
        pairs = [f"{key}: {self.get_data(key)}" for key in self.content.get_keys()]
        return "\n".join([f"properties: {self.properties}", *pairs])

    def is_empty(self) -> bool:
        """Is there no content? True for the initialisation request only."""
        return self.content.is_empty()

    def get_function_name(self) -> str | None:
        """The name of the handler's function."""
        return self.function_name

    def get_properties(self) -> dict[str, str]:
        """Headers and what else is said about the request; a key is found in any case."""
        return self.properties

    def get_property(self, key: str) -> str | Any:
        """One of them, its name in any case, or None."""
        lower = key.lower()
        return next((value for name, value in self.properties.items() if name.lower() == lower), None)

    def get_content(self) -> PairList:
        """All pairs."""
        return self.content

    def contains_key(self, key: str) -> bool:
        """Is there content with this key?"""
        return self.content.get(key) is not None

    def get_as_bytes(self, key: str | None = None) -> Any:
        """The content `key`, without one `data` or else the first; None without content. KeyError for another key."""
        if self.content.is_empty():
            return None
        found = self.content.get(key or _DATA)
        if found is None:
            if key:
                raise KeyError(f"requested data for key:{key} is not found!")
            return self.content.value_at(0)
        return found

    def get_as_string(self, key: str | None = None) -> Any:
        """The content as UTF-8 text; AttributeError without content, as all that follow have an error of their own."""
        value = self.get_as_bytes(key)
        return (bytes(value) if isinstance(value, memoryview) else value).decode("utf-8")

    def get_as_json(self, key: str | None = None) -> Any:
        """The content as what its JSON says; ValueError where it is none."""
        return json.loads(self.get_as_string(key))

    def get_as_image(self, key: str | None = None) -> Any:
        """The content as a PIL image."""
        from PIL import Image

        return Image.open(io.BytesIO(self.get_as_bytes(key)))

    def get_as_numpy(self, key: str | None = None) -> Any:
        """The content as a list of numpy arrays: an NDList, or an npz archive by its first bytes."""
        from djl_python.np_util import from_nd_list

        return from_nd_list(self.get_as_bytes(key))

    def get_as_npz(self, key: str | None = None) -> Any:
        """The content, an npz archive, as a list of numpy arrays. Pickled objects are refused."""
        from djl_python.np_util import from_npz

        return from_npz(self.get_as_bytes(key))

    def get_as_csv(self, key: str | None = None) -> Any:
        """The content as a list of dicts, one per row, by the names in the first."""
        return list(csv.DictReader(io.StringIO(self.get_as_string(key))))

    def get_data(self, key: str | None = None) -> Any:
        """The content as what the request's content type says it is; bytes for a type that is not known, or none."""
        content_type = self.get_property("content-type") or ""
        if content_type == "tensor/ndlist":
            return self.get_as_numpy(key)
        if content_type == "tensor/npz":
            return self.get_as_npz(key)
        if content_type.startswith("application/json"):
            return self.get_as_json(key)
        if content_type.startswith("text/"):
            return self.get_as_string(key)
        if content_type.startswith("image/"):
            return self.get_as_image(key)
        return self.get_as_bytes(key)

    def is_batch(self) -> bool:
        """Are these several requests?"""
        return _SIZE in self.properties

    def get_batch_size(self) -> int:
        """Return how many requests these are."""
        return int(self.properties.get(_SIZE, "1"))

    def get_batches(self) -> "list[Input]":
        """An Input per request, with the properties and the content that have its number in front."""
        if not self.is_batch():
            return [self]
        items = [Input() for _ in range(self.get_batch_size())]
        for key, value in self.properties.items():
            if key.startswith(_BATCH) and key != _SIZE:
                items[int(key[_INDEX])].properties[key[_NAME]] = value
        for pair_key, value in zip(self.content.get_keys(), self.content.get_values(), strict=False):
            name = cast(str, pair_key)
            items[int(name[_INDEX])].content.add(name[_NAME], value)
        return items
