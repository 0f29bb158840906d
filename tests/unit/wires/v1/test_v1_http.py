"""KServe's v1 protocol as a wire: its routes, its answers for rows and for columns, and bodies of handlers."""

import json
from typing import Any

import numpy as np
import pytest

from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Payload, Raw, RawForm, RawPart, Tensors
from trivium.types.wire import Body, CostlyAnswer, Head, HttpAnswer
from trivium.wires.v1.http import V1Http

WIRE = V1Http(lambda: "id", IgnoredFieldLog())
ROWS = {"instances": [[1], [2]]}


def head(path: str, method: str = "POST") -> Head:
    return Head(method, path, "", {b"content-type": b"application/json"}, 0, (b"Content-Type",))


def answer(document: object, payload: Payload | None, error: ServeError | None = None) -> HttpAnswer:
    asked = head("/v1/models/m:predict")
    operation, encoder = WIRE.decode(asked, WIRE.head(asked), Body(json.dumps(document).encode()))
    assert isinstance(operation, Infer)
    found: HttpAnswer = encoder.encode(ResponsePart(payload, error=error))  # type: ignore[assignment]
    return found.write() if isinstance(found, CostlyAnswer) else found


def told(document: object, **outputs: Any) -> Any:
    found = answer(document, Tensors.of({name: np.asarray(one) for name, one in outputs.items()}))
    assert found.status == 200
    return json.loads(b"".join(found.buffers))


def test_the_routes() -> None:
    assert WIRE.head(head("/v1/models/a%20b:predict")).model == "a b"
    found = WIRE.head(head("/v1/models/m/versions/3:predict"))
    assert (found.model, found.version, found.takes_body) == ("m", "3", True)
    for path, method, code in (
        ("/v1/models/m", "POST", Code.NOT_FOUND),
        ("/v1/models/:predict", "POST", Code.NOT_FOUND),
        ("/v1/models/m:predict", "GET", Code.METHOD),
    ):
        with pytest.raises(ServeError, match=r":predict|use POST") as raised:
            WIRE.head(head(path, method))
        assert raised.value.code is code


def test_a_body_goes_on_as_it_came() -> None:
    asked = head("/v1/models/m:predict")
    operation, _ = WIRE.decode(asked, WIRE.head(asked), Body(b"anything"))
    assert isinstance(operation, Infer)
    assert isinstance(operation.payload, Raw)
    assert operation.payload.form is RawForm.ROWS
    assert operation.payload.parts == (RawPart(b"anything", "application/json"),)
    assert dict(operation.payload.properties) == {"Content-Type": "application/json"}


def test_rows_are_answered_by_rows() -> None:
    assert told(ROWS, y=[[1.5], [2.5]]) == {"predictions": [[1.5], [2.5]]}
    assert told(ROWS, a=[1, 2], b=[[3], [4]]) == {"predictions": [{"a": 1, "b": [3]}, {"a": 2, "b": [4]}]}
    assert told(ROWS, predict=[7, 8], predict_proba=[[0.1], [0.2]]) == {"predictions": [7, 8]}
    assert told(ROWS, a=[1, 2], b=[3]) == {"predictions": {"a": [1, 2], "b": [3]}}
    assert told(ROWS, y=[float("nan"), 1.0]) == {"predictions": [None, 1.0]}
    assert told(ROWS, y=np.array([b"a", b"\xff"], object)) == {"predictions": ["a", {"b64": "/w=="}]}


def test_columns_are_answered_by_columns() -> None:
    assert told({"inputs": [1]}, y=[1, 2]) == {"outputs": [1, 2]}
    assert told({"inputs": {"x": [1]}}, a=[1], b=[2, 3]) == {"outputs": {"a": [1], "b": [2, 3]}}


def test_fields_without_effect_are_told_where_the_model_takes_tensors() -> None:
    document = {**ROWS, "signature_name": "serving_default"}
    found = answer(document, Tensors.of({"y": np.zeros(1)}))
    assert b"Trivium-Ignored: signature_name\r\n" in found.fields
    assert b"Trivium-Ignored" not in answer(document, Raw((RawPart(b"{}", "application/json"),))).fields


def test_a_handlers_answer_is_its_own() -> None:
    found = answer(ROWS, Raw((RawPart(b"text", "text/plain"),), status=201))
    assert (found.status, b"".join(found.buffers)) == (201, b"text")
    assert b"Content-Type: text/plain\r\n" in found.fields
    assert b"X-Evil" not in answer(ROWS, Raw((RawPart(b"", "a\r\nX-Evil: 1"),))).fields


def test_errors_are_an_object_with_a_sentence() -> None:
    found = answer(ROWS, None, ServeError(Code.QUEUE_FULL, "full", retry_after=0.2))
    assert found.status == 503 or found.status == 429
    assert json.loads(b"".join(found.buffers)) == {"error": "full"}
    assert b"Retry-After: 1\r\n" in found.fields
    assert json.loads(b"".join(WIRE.refuse(ServeError(Code.NOT_FOUND, "no")).buffers)) == {"error": "no"}


@pytest.mark.parametrize("shape", [(3, 20_000), (40_000,), (9_000, 5), (1, 2, 40_000), (0, 4)])
def test_large_outputs_are_written_in_parts_as_in_one(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape)
    assert told(ROWS, y=values) == {"predictions": values.tolist()}
    rows = [{"y": row, "z": number} for number, row in enumerate(values.tolist())]
    assert told(ROWS, y=values, z=np.arange(len(values))) == {"predictions": rows}
    assert told({"inputs": [1]}, y=values) == {"outputs": values.tolist()}
