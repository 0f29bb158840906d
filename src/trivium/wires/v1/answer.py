"""Writes what a model answers as predictions, one for each row that was asked about; a handler's own body as it is.

Source: TensorFlow Serving's documentation of its REST API, and KServe's of its v1 data plane. Of a model of tables that
has an output `predict` that one is the prediction, as KServe's servers of scikit-learn answer.
"""

from collections.abc import Callable, Sequence

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
        told = {one.name: _values(one) for one in outputs}
        return msgspec.json.encode({OUTPUTS: told[outputs[0].name] if len(outputs) == 1 else told})
    chosen = [one for one in outputs if one.name == _CHOSEN] or outputs
    if len(chosen) == 1:
        return msgspec.json.encode({PREDICTIONS: _values(chosen[0])})
    columns = {one.name: _values(one) for one in chosen}
    if len({one.shape[:1] for one in chosen}) > 1:  # no rows to tell apart
        return msgspec.json.encode({PREDICTIONS: columns})
    rows = zip(*columns.values(), strict=True)
    return msgspec.json.encode({PREDICTIONS: [dict(zip(columns, row, strict=True)) for row in rows]})


def _values(tensor: Tensor) -> list[object]:
    return nested(tensor, text_or_base64)
