"""The answer of a DJL handler: a status, properties (headers) and content, or a stream of pieces.

Nothing here sets a content type but `error`: a handler says what it sends.
"""

import datetime
import json
import struct
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

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
        self.properties: Dict[str, Any] = {}
        self.content = PairList()
        self.stream_content: Optional[Iterable[Any]] = None
        self.stream_output_formatter: Optional[Callable[[Any], Any]] = None
        self._finalizers: List[Tuple[Callable[..., Any], Tuple[Any, ...]]] = []

    def __str__(self) -> str:
        pairs = zip(self.content.get_keys(), self.content.get_values())
        lines = ["code: %s, message: %s, properties: %s" % (self.code, self.message, self.properties)]
        return "\n".join(lines + ["%s: %s" % pair for pair in pairs])

    def set_code(self, code: int) -> "Output":
        """The HTTP status."""
        self.code = code
        return self

    def set_message(self, message: str) -> "Output":
        """The reason phrase."""
        self.message = message
        return self

    def add_property(self, key: str, value: Any) -> "Output":
        """A header, sent as text."""
        self.properties[key] = value
        return self

    def get_properties(self) -> Dict[str, Any]:
        """All headers."""
        return self.properties

    def get_property(self, key: str) -> Any:
        """One of them, its name in any case, or None."""
        for name, value in self.properties.items():
            if name.lower() == key.lower():
                return value
        return None

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

    def add(self, value: Any, key: Optional[str] = None, batch_index: Optional[int] = None) -> "Output":
        """Content: bytes as they are, text as UTF-8, anything else as JSON. `batch_index` says whose it is."""
        if isinstance(value, str):
            data: Union[bytes, bytearray, memoryview] = value.encode("utf-8")
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = value
        else:
            data = as_json(value).encode("utf-8")
        self.content.add(_key(key, batch_index), data)
        return self

    def add_as_json(
        self, value: Any, key: Optional[str] = None, batch_index: Optional[int] = None
    ) -> "Output":
        """Content as JSON, whatever it is."""
        return self.add(as_json(value), key, batch_index)

    def add_as_numpy(
        self, value: Any, key: Optional[str] = None, batch_index: Optional[int] = None
    ) -> "Output":
        """One numpy array or a list of them, as an NDList."""
        from djl_python.np_util import to_nd_list

        return self.add(to_nd_list(_listed(value)), key, batch_index)

    def add_as_npz(
        self, value: Any, key: Optional[str] = None, batch_index: Optional[int] = None
    ) -> "Output":
        """One numpy array or a list of them, as an npz archive."""
        import io

        import numpy

        file = io.BytesIO()
        numpy.savez(file, *_listed(value))
        return self.add(file.getvalue(), key, batch_index)

    def add_stream_content(
        self,
        iterator: Iterable[Any],
        output_formatter: Optional[Callable[[Any], Any]] = default_stream_formatter,
    ) -> "Output":
        """Send what the iterator yields piece by piece. Without a formatter text and bytes go as they are, anything
        else as JSON.
        """
        self.stream_content = iterator
        self.stream_output_formatter = output_formatter
        return self

    def finalize(self, function: Callable[..., Any], *arguments: Any) -> "Output":
        """Call the function once the answer has been sent."""
        self._finalizers.append((function, arguments))
        return self

    def has_finalizers(self) -> bool:
        """Is anything to be called?"""
        return bool(self._finalizers)

    def execute_finalize(self) -> None:
        """Call the function for the end of the answer; what that raises is printed on stderr and goes no further."""
        for function, arguments in self._finalizers:
            try:
                function(*arguments)
            except Exception:
                traceback.print_exc(file=sys.stderr)

    @staticmethod
    def binary_encode(values: Mapping[str, Any]) -> bytearray:
        """Texts by name, in the framing of an item of continuous batching."""
        made = bytearray(struct.pack(">h", len(values)))
        for key, value in values.items():
            for text in (str(key).encode("utf-8"), str(value).encode("utf-8")):
                made += _SIZE.pack(len(text)) + text
        return made


def _key(key: Any, batch_index: Optional[int]) -> Optional[str]:
    if key is not None and not isinstance(key, str):
        sys.stderr.write("the key %r of an Output is no text and is taken as %r\n" % (key, str(key)))
        key = str(key)
    return key if batch_index is None else "batch_%d.%s" % (batch_index, key or "")


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
