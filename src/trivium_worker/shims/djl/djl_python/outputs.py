"""The answer of a DJL handler: a status, properties (headers) and content, or a stream of pieces.

Nothing here sets a content type but `error`: a handler says what it sends.
"""

import datetime
import json
import struct
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from djl_python.pair_list import PairList

_SIZE = struct.Struct(">i")


class _JsonEncoder(json.JSONEncoder):
    def default(self, value: Any) -> Any:
        """Numpy's numbers and arrays, and others that know themselves as lists; times as text."""
        if hasattr(value, "tolist"):
            return value.tolist()
        if isinstance(value, (datetime.date, datetime.time)):
            return str(value)
        return super().default(value)


def as_json(value: Any) -> str:
    """Return JSON as DJL writes it: indented, no blank behind a colon, not escaped to ASCII; ValueError for NaN."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, indent=2, separators=(",", ":"), cls=_JsonEncoder
    )


def default_stream_formatter(item: Any) -> str:
    """A line of JSON per piece, escaped to ASCII; NaN and infinity as Python writes them."""
    return json.dumps({"outputs": item}, cls=_JsonEncoder) + "\n"


class Output:
    """One answer, or the answers to a batch. Its methods return itself, so that calls can be chained."""

    def __init__(self, code: int = 200, message: str = "OK") -> None:
        self.code = code
        self.message = message
        self.properties: dict[str, Any] = {}
        self.content = PairList()
        self.stream_content: Iterable[Any] | None = None
        self.stream_output_formatter: Callable[[Any], Any] | None = None
        self.finalize_function: Callable[..., Any] | None = None
        self.finalize_args: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        pairs = zip(self.content.get_keys(), self.content.get_values(), strict=False)
        content = {key: f"type: {type(value)}" for key, value in pairs}
        shown = {"code": self.code, "message": self.message, "properties": self.properties}
        return json.dumps(dict(shown, content=content), indent=2)

    def set_code(self, code: int) -> "Output":
        """The HTTP status."""
        self.code = code
        return self

    def set_message(self, message: str) -> "Output":
        """The reason phrase."""
        self.message = message
        return self

    def add_property(self, key: str, val: Any) -> "Output":
        """A header, sent as text."""
        self.properties[key] = val
        return self

    def get_properties(self) -> dict[str, Any]:
        """All headers."""
        return self.properties

    def get_property(self, key: str) -> Any:
        """One of them, by its name as it was written, or None."""
        return self.properties.get(key)

    def get_content(self) -> PairList:
        """All pairs."""
        return self.content

    def error(self, error: str, code: int = 424, message: str = "invoke handler failure") -> "Output":
        """Answer with this error, as JSON, in place of what was added before."""
        self.code = code
        self.message = message
        self.properties["content-type"] = "application/json"
        self.content = PairList()
        self.stream_content = None
        return self.add_as_json({"code": code, "message": message, "error": error})

    def add(self, value: Any, key: str | None = None, batch_index: int | None = None) -> "Output":
        """Content: bytes as they are, text as UTF-8, anything else as JSON. `batch_index` says whose it is."""
        if type(value) is str:  # of a class of the user's, like an Enum of texts, JSON is sent
            data: bytes | bytearray | memoryview = value.encode("utf-8")
        elif type(value) in (bytes, bytearray, memoryview):
            data = value
        else:
            data = as_json(value).encode("utf-8")
        self.content.add(_key(key, batch_index), data)
        return self

    def add_as_json(self, val: Any, key: str | None = None, batch_index: int | None = None) -> "Output":
        """Content as JSON, whatever it is."""
        return self.add(as_json(val), key, batch_index)

    def add_as_numpy(self, np_list: Any, key: str | None = None, batch_index: int | None = None) -> "Output":
        """One numpy array or a list of them, as an NDList."""
        from djl_python.np_util import to_nd_list

        return self.add(to_nd_list(np_list), key, batch_index)

    def add_as_npz(self, np_list: Any, key: str | None = None, batch_index: int | None = None) -> "Output":
        """One numpy array or a list of them, as an npz archive."""
        from djl_python.np_util import to_npz

        return self.add(to_npz(np_list), key, batch_index)

    def add_stream_content(
        self,
        stream_content: Iterable[Any],
        output_formatter: Callable[[Any], Any] | None = default_stream_formatter,
    ) -> "Output":
        """Send what the iterator yields piece by piece. Without a formatter text and bytes go as they are, anything
        else as JSON.
        """
        self.stream_content = stream_content
        self.stream_output_formatter = output_formatter
        return self

    def finalize(self, finalize_function: Callable[..., Any], *args: Any) -> "Output":
        """Call the function once the answer has been sent; of several the last."""
        self.finalize_function = finalize_function
        self.finalize_args = args
        return self

    def has_finalizers(self) -> bool:
        """Is anything to be called?"""
        return bool(self.finalize_function)

    def execute_finalize(self) -> Any:
        """Call the function for the end of the answer; what that raises is printed on stderr and goes no further."""
        if not self.finalize_function:
            return None
        try:
            return self.finalize_function(*(self.finalize_args or ()))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return None

    @staticmethod
    def binary_encode(data: Mapping[str | None, Any]) -> bytearray:
        """Texts by name, in the framing of an item of continuous batching."""
        made = bytearray(struct.pack(">h", len(data)))
        for key, value in data.items():
            Output.write_utf8(made, key)
            Output.write_utf8(made, str(value))
        return made

    @staticmethod
    def write_utf8(msg: bytearray, val: str | None) -> None:
        """Put a text with its length in front, or the length -1 for None, behind what is there."""
        encoded = b"" if val is None else val.encode("utf-8")
        msg += _SIZE.pack(-1 if val is None else len(encoded)) + encoded


def _key(key: Any, batch_index: int | None) -> str | None:
    if key is not None and not isinstance(key, str):
        sys.stderr.write(f"the key {key!r} of an Output is no text and is taken as {str(key)!r}\n")
        key = str(key)
    return key if batch_index is None else f"batch_{batch_index}.{key or ''}"
