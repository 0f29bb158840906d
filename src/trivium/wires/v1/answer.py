"""Writes what a model answers as predictions, one for each row that was asked about; a handler's own body as it is.

Source: TensorFlow Serving's documentation of its REST API, and KServe's of its v1 data plane. Of a model of tables that
has an output `predict` that one is the prediction, as KServe's servers of scikit-learn answer.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from trivium.codecs.conversion import is_slow_to_write
from trivium.codecs.header_text import JSON, has_controls, request_id_line
from trivium.codecs.nested_values import nested, text_or_base64
from trivium.codecs.v1_bodies import INPUTS
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.operations import ResponsePart
from trivium.types.payload import Raw, Tensor, Tensors
from trivium.types.wire import HttpAnswer, costly
from trivium.wires.v1.errors import refuse

PREDICTIONS, OUTPUTS = "predictions", "outputs"
_CHOSEN = "predict"
_AT_ONCE = 2**14
"""Elements that are objects of Python at a time while they are written."""


class PredictionsEncoder:
    """Writes the answer to one request. `asked` is the form that it had: `instances` or `inputs`. `ignored` returns the
    header line that names what of it had no effect on a model of tensors.
    """

    __slots__ = ("_asked", "_fields", "_has_begun", "_ignored")

    def __init__(self, request_id: str, asked: str, ignored: Callable[[], bytes] = bytes) -> None:
        self._fields = request_id_line(request_id)
        self._asked = asked
        self._ignored = ignored
        self._has_begun = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """Return the part. An error behind a first part breaks the answer off."""
        if part.final and is_slow_to_write(part.payload):
            return costly(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> HttpAnswer:
        try:
            answer = self._failed(part.error) if part.error is not None else self._part(part)
        except Exception as error:
            answer = self._failed(unwritable(error))
        self._has_begun = True
        return answer

    def _failed(self, error: ServeError) -> HttpAnswer:
        answer = refuse(error, self._fields)
        return HttpAnswer(answer.status, b"", (), 0, closes=True) if self._has_begun else answer

    def _part(self, part: ResponsePart) -> HttpAnswer:
        payload, final = part.payload, part.final
        if isinstance(payload, Tensors):
            body = _document(payload.items, self._asked)
            fields = b"" if self._has_begun else self._fields + self._ignored() + JSON
            return HttpAnswer(200, fields, (body,), len(body), final)
        if isinstance(payload, Raw):
            data = payload.parts[0].data if payload.parts else b""
            fields = b"" if self._has_begun else self._fields + _kind(payload)
            return HttpAnswer(payload.status or 200, fields, (data,) if len(data) else (), len(data), final)
        if payload is None:
            return HttpAnswer(200, b"" if self._has_begun else self._fields, (), 0, final)
        raise ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} generates text, which the v1 protocol does not answer. Use "
            "/v1/chat/completions or /v1/completions.",
        )


def _kind(payload: Raw) -> bytes:
    told = payload.parts[0].content_type if payload.parts else ""
    told = told or next(
        (text for name, text in payload.properties.items() if name.lower() == "content-type"), ""
    )
    return (
        JSON if not told or has_controls(told) else f"Content-Type: {told}\r\n".encode("latin-1", "replace")
    )


def _document(outputs: Sequence[Tensor], asked: str) -> bytes:
    if asked == INPUTS:
        only = outputs[0] if len(outputs) == 1 else None
        return b'{"%b":%b}' % (OUTPUTS.encode(), _by_name(outputs) if only is None else _text(only))
    chosen = [one for one in outputs if one.name == _CHOSEN] or outputs
    if len(chosen) == 1:
        told = _text(chosen[0])
    elif len({one.shape[:1] for one in chosen}) > 1:  # no rows to tell apart
        told = _by_name(chosen)
    else:
        told = _rows(chosen)
    return b'{"%b":%b}' % (PREDICTIONS.encode(), told)


def _by_name(tensors: Sequence[Tensor]) -> bytes:
    return msgspec.json.encode({one.name: msgspec.Raw(_text(one)) for one in tensors})


def _rows(tensors: Sequence[Tensor]) -> bytes:
    """Write rows as objects with a value of each tensor."""
    count = max(1, len(tensors[0].array))
    step = max(1, _AT_ONCE // max(1, sum(one.array.size for one in tensors) // count))
    return _joined(_row_group(tensors, begin, begin + step) for begin in range(0, count, step))


def _row_group(tensors: Sequence[Tensor], begin: int, end: int) -> bytes:
    if end - begin == 1:
        raw = {one.name: msgspec.Raw(_text(_part(one, begin, end))[1:-1]) for one in tensors}
        return msgspec.json.encode([raw])
    names = [one.name for one in tensors]
    columns = [nested(_part(one, begin, end), text_or_base64) for one in tensors]
    rows = zip(*columns, strict=True)
    return msgspec.json.encode([dict(zip(names, row, strict=True)) for row in rows])


def _text(tensor: Tensor) -> bytes:
    """Write a tensor as nested lists, of whose elements only some are objects of Python at a time."""
    size, count = tensor.array.size, len(tensor.array)
    if size <= _AT_ONCE:
        return msgspec.json.encode(nested(tensor, text_or_base64))
    if size // count > _AT_ONCE:
        array, kind = tensor.array, tensor.datatype
        return _joined(b"[%b]" % _text(Tensor(tensor.name, kind, row.shape, row)) for row in array)
    step = _AT_ONCE // (size // count)
    parts = (_part(tensor, begin, begin + step) for begin in range(0, count, step))
    return _joined(msgspec.json.encode(nested(part, text_or_base64)) for part in parts)


def _joined(lists: Iterable[bytes]) -> bytes:
    """Write lists as one that has the elements of all."""
    return b"[%b]" % b",".join(text[1:-1] for text in lists)


def _part(tensor: Tensor, begin: int, end: int) -> Tensor:
    array = tensor.array[begin:end]
    return Tensor(tensor.name, tensor.datatype, array.shape, array)
