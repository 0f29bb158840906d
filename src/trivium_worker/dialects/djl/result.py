"""A DJL handler's Output -> what is sent: status, reason, headers, and one pair of its content.

Source: spec sheet `djl`, sections 4.4 and 8.4.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire.values import Failure, Part, Raw

_DATA = "data"
_BATCH_KEY = re.compile(r"batch_([0-9]{1,9})\.")
_BAD_BATCH = 400
_CODE = re.compile(r"[2-5][0-9]{2}\Z")
_ITEM_KEYS = frozenset(("data", "last", "code"))
_MOST_TEXTS = 100
"""An item has as many texts at most: more are no item."""


def whole(output: Any) -> Raw:
    """The answer to one request: of the content the pair `data`, or else the first. The others, which steps of a graph
    see, too, are behind it.
    """
    keys, values = output.content.keys, output.content.values
    first = keys.index(_DATA) if _DATA in keys else 0
    answer = _raw(output, values[first] if values else None)
    if answer.parts:
        answer.parts[0].name = "" if keys[first] in (None, _DATA) else str(keys[first])
    for index, (key, value) in enumerate(zip(keys, values, strict=False)):
        if index != first:
            answer.parts.append(Part(value, "", _DATA if key is None else str(key)))
    return answer


def batch_payloads(output: Any, count: int) -> list[Raw]:
    """An answer per request of a batch; of an error the same to all. Failure where they do not fit the requests."""
    if int(output.code) >= 300:
        same = whole(output)
        return [same for _ in range(count)]
    if output.stream_content is not None:
        raise _misfit(f"a streamed answer cannot be divided among {count} requests; set batch_size=1")
    keys, values = output.content.get_keys(), output.content.get_values()
    if len(keys) != count:
        raise _misfit(f"Batch output size mismatch, expected: {count}, actual: {len(keys)}")
    found: dict[int, Any] = {}
    for key, value in zip(keys, values, strict=False):
        match = _BATCH_KEY.match(key or "")
        index = int(match.group(1)) if match else count
        if index >= count or index in found:
            raise _misfit(
                f"the key {key!r} of a batch's output names no request of it, or one again; expected "
                f"are batch_0 to batch_{count - 1} with a dot behind, as batch_index makes them"
            )
        found[index] = value
    return [_raw(output, found[index]) for index in range(count)]


def piece_of(output: Any) -> tuple[Raw, bool]:
    """Return what an Output of an asynchronous handler says, and whether it is the last of its answer: an item of
    continuous batching says both itself, and may have the status of an error; anything else is a piece as it is.
    """
    said = whole(output)
    texts = _item_texts(said.parts[0].data) if said.parts and said.status < 300 else None
    if texts is None:
        return said, said.status >= 300
    code = texts.get("code")
    is_last = texts.get("last", "").lower() == "true"
    if code is None:
        data = texts.get("data", "").encode("utf-8")
        return Raw(
            [Part(data, said.parts[0].content_type)], said.properties, (), said.status, said.reason
        ), is_last
    if not _CODE.match(code):
        raise _misfit(f"the code {code!r} of an item is no HTTP status from 200 to 599")
    told: dict[str, Any] = {"code": int(code)}
    if "error" in texts:
        told["error"] = texts["error"]
    body = json.dumps(told, ensure_ascii=False).encode("utf-8")
    part = Part(body, said.parts[0].content_type)
    return Raw([part], said.properties, (), int(code), texts.get("error", said.reason)), True


def item_of(data: Any) -> dict[str, str]:
    """Read an item of a rolling batch. Failure for what is none."""
    texts = _item_texts(data)
    if texts is None:
        raise Failure(
            "an item of a rolling batch is no text by name with data, last or code among them; write it by "
            "Output.binary_encode",
            "model failed",
            424,
        )
    return texts


def _item_texts(data: Any) -> dict[str, str] | None:
    """Read an item as `Output.binary_encode` writes it. None where the bytes are none."""
    view, at, found = bytes(data), 2, []
    try:
        (count,) = struct.unpack_from(">h", view)
        if not 0 < count <= _MOST_TEXTS:
            return None
        for _ in range(2 * count):
            (size,) = struct.unpack_from(">i", view, at)
            begin = at + 4
            at = begin + max(size, 0)
            found.append(view[begin:at].decode("utf-8"))
    except (struct.error, UnicodeDecodeError):
        return None
    texts = dict(zip(found[::2], found[1::2], strict=False))
    return texts if at == len(view) and not _ITEM_KEYS.isdisjoint(texts) else None


def formatted(piece: Any, formatter: Callable[[Any], Any] | None) -> bytes:
    """One piece of a stream as bytes."""
    made = piece if formatter is None else formatter(piece)
    if isinstance(made, str):
        return made.encode("utf-8")
    if isinstance(made, (bytes, bytearray, memoryview)):
        return bytes(made)
    from djl_python.outputs import as_json

    return as_json(made).encode("utf-8")


@contextmanager
def closing(pieces: Any) -> Iterator[None]:
    """Let a generator clean up, whether it has been read to its end or not."""
    try:
        yield
    finally:
        close = getattr(pieces, "close", None)
        if callable(close):
            try:
                close()
            except Exception as error:  # the answer is out: nobody is left to be told
                print_trace(error)


def content_type_of(properties: dict[str, str]) -> str:
    """Return what the handler says that it sends; empty where it does not."""
    if not properties:
        return ""
    return next((text for key, text in properties.items() if key.lower() == "content-type"), "")


def _raw(output: Any, value: Any) -> Raw:
    said = output.properties
    properties = {str(key): str(text) for key, text in said.items()} if said else {}
    parts = [] if value is None else [Part(value, content_type_of(properties))]
    return Raw(parts, properties, status=int(output.code), reason=str(output.message or ""))


def _misfit(text: str) -> Failure:
    return Failure(text, "model failed", _BAD_BATCH)
