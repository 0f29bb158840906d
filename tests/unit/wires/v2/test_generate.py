import json
from contextlib import suppress

import numpy as np
import pytest

from trivium.servers.triton.words.texts import error_text
from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart, SequenceRef
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart, Tensors
from trivium.types.wire import NOTHING_YET, Body, Target
from trivium.wires.v2.generate import GenerateEncoder, GenerateStreamEncoder, decode_generate

TARGET = Target("generate", "m", "3", True)


def decode(fields):
    return decode_generate(TARGET, Body(fields if isinstance(fields, bytes) else json.dumps(fields).encode()))


def part(final=True, parameters=None, **arrays):
    payload = Tensors.of({name: np.array(value) for name, value in arrays.items()}) if arrays else None
    return ResponsePart(payload, None, None, final, parameters or {}, "m", "1")


def failed(code=Code.MODEL_FAILED):
    return ResponsePart(error=ServeError(code, "why"))


def read(answer):
    content = b"".join(answer.buffers)
    assert len(content) == answer.size
    return answer.status, content, answer.final


def test_all_that_can_be_a_parameter_is_one_and_the_body_goes_to_the_door():
    lease = Lease(memoryview(bytearray(1)), lambda lease: None)
    fields = {
        "a": 1,
        "b": [1],
        "c": None,
        "id": "7",
        "timeout": 9,
        "parameters": {"a": 2, "timeout": 5, "w": True},
    }
    body = json.dumps(fields).encode()
    infer = decode_generate(TARGET, Body(body, lease))
    assert infer.payload == Raw((RawPart(body, "application/json"),), lease=lease, form=RawForm.FIELDS)
    assert (infer.model, infer.version, infer.id, infer.wants) == ("m", "3", "7", PayloadKind.TENSORS)
    assert dict(infer.parameters) == {"a": 2, "id": "7", "timeout": 9, "w": True}
    assert infer.queue_timeout == 5e-6


def test_the_words_of_the_protocol_count_among_the_parameters():
    infer = decode({"parameters": {"priority": 2, "sequence_id": 3, "sequence_start": True}})
    assert (infer.priority, infer.sequence) == (2, SequenceRef(3, True))
    assert decode({"priority": "x", "sequence_id": -1}).parameters == {"priority": "x", "sequence_id": -1}
    assert decode(b"").parameters == {}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([1], "no object"),
        (b"{", "no valid JSON"),
        ({"parameters": []}, "'parameters'"),
        ({"id": 5}, "'id'"),
        ({"id": None}, "'id'"),
        ({"a": 2**64}, "'a'"),
        (b'{"a": ' + b"9" * 5000 + b"}", "out of range"),
        ({"parameters": {"priority": -1}}, "'priority'"),
        ({"parameters": {"triton_a": 1}}, "reserved"),
        ({"parameters": {"a": [1]}}, "'a'"),
    ],
)
def test_wrong_requests(fields, words):
    with pytest.raises(ServeError, match=words) as caught:
        decode(fields)
    assert caught.value.code is Code.INVALID


def test_objects_of_any_depth_are_read_or_refused():
    deepest = 0
    for depth in range(1, 1500, 7):
        with suppress(ServeError):
            decode(b'{"parameters": {"a": 1}, "b": ' + b'{"c": ' * depth + b"1" + b"}" * depth + b"}")
            deepest = depth
    assert 100 < deepest < 1400


def test_of_a_key_that_comes_twice_the_first_value_counts():
    infer = decode(b'{"a": 1, "id": "x", "a": [2], "id": 7, "parameters": {"b": 3, "b": 4}, "parameters": 5}')
    assert infer.id == "x"
    assert infer.parameters == {"a": 1, "id": "x", "b": 3}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"id": 5}, "Unable to parse 'id': attempt to access JSON non-string as string"),
        (
            {"parameters": None},
            "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object",
        ),
        (
            {"parameters": {"t": [1]}},
            "Converting keyword: 'parameters': parameter 't' has invalid type. It should be either 'int', 'bool', or "
            "'string'.",
        ),
        ([1], "attempt to get members for non-object"),
    ],
)
def test_wrong_types_in_triton_s_words(body, text):
    with pytest.raises(ServeError) as caught:
        decode(body)
    told = error_text(caught.value, {"model": "m", "id": ""})
    assert told is not None
    assert told.text == text


def test_one_answer_in_one_part():
    answer = GenerateEncoder("7").encode(part(text="hi", scores=[1.5, 2.0], parameters={"p": True}))
    assert read(answer) == (
        200,
        b'{"p":true,"text":"hi","scores":[1.5,2.0],"id":"7","model_name":"m","model_version":"1"}',
        True,
    )
    assert answer.fields == b"Content-Type: application/json\r\n"


def test_one_answer_that_ends_later():
    encoder = GenerateEncoder("")
    assert encoder.encode(part(False, text="hi")) is NOTHING_YET
    assert encoder.encode(part(False)) is NOTHING_YET
    assert read(encoder.encode(part()))[:2] == (200, b'{"text":"hi","model_name":"m","model_version":"1"}')


def test_several_answers_none_and_an_error():
    encoder = GenerateEncoder("")
    encoder.encode(part(False, text="hi"))
    answer = encoder.encode(part(False, text="again"))
    assert (answer.status, answer.final) == (500, True)
    assert b"sent several. Use generate_stream" in read(answer)[1]
    assert b"sent no." in read(GenerateEncoder("").encode(part()))[1]
    encoder = GenerateEncoder("")
    encoder.encode(part(False, text="hi"))
    assert read(encoder.encode(failed()))[:2] == (500, b'{"error":"why"}')


def test_a_stream_of_events():
    encoder = GenerateStreamEncoder("7")
    first = encoder.encode(part(False, text="a"))
    assert b"text/event-stream; charset=utf-8" in first.fields
    assert read(first) == (
        200,
        b'data: {"text":"a","id":"7","model_name":"m","model_version":"1"}\n\n',
        False,
    )
    assert read(encoder.encode(part(False))) == (200, b"", False)
    assert read(encoder.encode(failed())) == (200, b'data: {"error":"why"}\n\n', True)
    assert read(GenerateStreamEncoder("").encode(part())) == (200, b"", True)


def test_a_stream_that_fails_at_once_has_a_status():
    assert read(GenerateStreamEncoder("").encode(failed(Code.QUEUE_FULL))) == (503, b'{"error":"why"}', True)


@pytest.mark.parametrize("encoder", [GenerateEncoder, GenerateStreamEncoder])
@pytest.mark.parametrize(
    ("payload", "status", "words"),
    [
        (Raw((RawPart(b"x"),)), 501, b"cannot be made tensors"),
        (Tensors.of({"t": np.array([b"\xff"], object)}), 400, b"UTF-8"),
        (Tensors((1,)), 500, b"could not be written"),
    ],
)
def test_what_cannot_be_written(encoder, payload, status, words):
    answer = encoder("").encode(ResponsePart(payload, model="m"))
    assert answer.status == status
    assert words in read(answer)[1]
