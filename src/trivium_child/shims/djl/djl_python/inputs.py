"""A request as a DJL handler sees it: properties (headers) and content (the query's arguments, then the body).

Numpy and PIL are imported by those methods only that give their objects.
"""

import csv
import io
import json
from typing import Any, Dict, List, Optional, cast

from djl_python.pair_list import PairList

_DATA = "data"
_INDEX_END = 9
"""Where the separator stands in `batch_000.data`."""


class Properties(Dict[str, str]):
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
        self.properties: Dict[str, str] = Properties()
        self.content = PairList()
        self.function_name: Optional[str] = None

    def __str__(self) -> str:
        pairs = ["%s: %s" % (key, self.get_data(key)) for key in self.content.get_keys()]
        return "\n".join(["properties: %s" % dict(self.properties), *pairs])

    def is_empty(self) -> bool:
        """Is there no content? True for the initialisation request only."""
        return self.content.is_empty()

    def get_function_name(self) -> Optional[str]:
        """The name of the handler's function."""
        return self.function_name

    def get_properties(self) -> Dict[str, str]:
        """Headers and what else is said about the request; a key is found in any case."""
        return self.properties

    def get_property(self, key: str) -> Optional[str]:
        """One of them, or None."""
        return self.properties.get(key)

    def get_content(self) -> PairList:
        """All pairs."""
        return self.content

    def contains_key(self, key: str) -> bool:
        """Is there content with this key?"""
        return self.content.contains(key)

    def get_as_bytes(self, key: Optional[str] = None) -> Any:
        """The content `key`, without one `data` or else the first; None without content. KeyError for another key."""
        if self.content.is_empty():
            return None
        if key:
            if not self.content.contains(key):
                raise KeyError("%s: the request has %s" % (key, ", ".join(map(str, self.content.get_keys()))))
            return self.content.get(key)
        return self.content.get(_DATA) if self.content.contains(_DATA) else self.content.value_at(0)

    def get_as_string(self, key: Optional[str] = None) -> Any:
        """The content as UTF-8 text."""
        value = self.get_as_bytes(key)
        return None if value is None else bytes(value).decode("utf-8")

    def get_as_json(self, key: Optional[str] = None) -> Any:
        """The content as what its JSON says; ValueError where it is none."""
        value = self.get_as_bytes(key)
        return None if value is None else json.loads(bytes(value))

    def get_as_image(self, key: Optional[str] = None) -> Any:
        """The content as a PIL image."""
        value = self.get_as_bytes(key)
        if value is None:
            return None
        from PIL import Image

        return Image.open(io.BytesIO(value))

    def get_as_numpy(self, key: Optional[str] = None) -> Any:
        """The content as a list of numpy arrays: an NDList, or an npz archive by its first bytes."""
        value = self.get_as_bytes(key)
        if value is None:
            return None
        if bytes(value[:2]) == b"PK":
            return self.get_as_npz(key)
        from djl_python.np_util import from_nd_list

        return from_nd_list(value)

    def get_as_npz(self, key: Optional[str] = None) -> Any:
        """The content, an npz archive, as a list of numpy arrays. Pickled objects are refused."""
        value = self.get_as_bytes(key)
        if value is None:
            return None
        import numpy

        with numpy.load(io.BytesIO(value), allow_pickle=False) as archive:
            return [archive[name] for name in archive.files]

    def get_as_csv(self, key: Optional[str] = None) -> Any:
        """The content as a list of dicts, one per row, by the names in the first."""
        text = self.get_as_string(key)
        return None if text is None else list(csv.DictReader(io.StringIO(text)))

    def get_data(self, key: Optional[str] = None) -> Any:
        """The content as what the request's content type says it is; bytes for a type that is not known, or none."""
        content_type = (self.get_property("content-type") or "").strip().lower()
        if content_type.startswith("tensor/ndlist"):
            return self.get_as_numpy(key)
        if content_type.startswith("tensor/npz"):
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
        return "batch_size" in self.properties

    def get_batch_size(self) -> int:
        """Return how many requests these are."""
        return int(self.properties.get("batch_size", 1))

    def get_batches(self) -> "List[Input]":
        """An Input per request."""
        if not self.is_batch():
            return [self]
        items = [Input() for _ in range(self.get_batch_size())]
        for item in items:
            item.function_name = self.function_name
        for key, value in self.properties.items():
            at, name = _split(key)
            if at is None and key != "batch_size":
                for item in items:
                    item.properties[key] = value
            elif at is not None:
                items[at].properties[name] = value
        for pair_key, value in zip(self.content.get_keys(), self.content.get_values()):
            at, name = _split(cast(str, pair_key))
            if at is not None:
                items[at].content.add(name, value)
        return items


def _split(key: str) -> Any:
    """`batch_012.name` -> 12, `name`; (None, key) of anything else."""
    index = key[6:_INDEX_END]
    if key.startswith("batch_") and key[_INDEX_END : _INDEX_END + 1] == "." and index.isdigit():
        return int(index), key[_INDEX_END + 1 :]
    return None, key
