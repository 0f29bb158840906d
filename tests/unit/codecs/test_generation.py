import json

import numpy as np
import pytest

from trivium.codecs.generation import INPUTS, as_tensors, to_generate
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, Generated, GeneratedChoice, Sampling
from trivium.types.payload import Raw, RawForm, RawPart, Tensors


def tensors(**arrays):
    return Tensors.of({name: np.array(value) for name, value in arrays.items()})


def fields(document):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Raw((RawPart(body, "application/json"),), form=RawForm.FIELDS)


def read(payload, parameters=None):
    return to_generate(payload, parameters or {}, "m")[0]


DEFAULTS = Sampling(samples=True, max_tokens=16)


@pytest.mark.parametrize(
    ("payload", "parameters", "expected"),
    [
        (tensors(text_input=[b"hi"]), {}, Generate(("hi",), sampling=DEFAULTS, echoes=True)),
        (tensors(text_input=[b"a", b"b"]), {}, Generate(("a", "b"), sampling=DEFAULTS, echoes=True)),
        (tensors(text_input=[b"hi"], stream=[True]), {}, Generate(("hi",), sampling=DEFAULTS, streams=True)),
        (
            tensors(text_input=[b"hi"], exclude_input_in_output=[True]),
            {"temperature": 0, "max_tokens": 5},
            Generate(("hi",), sampling=Sampling(temperature=0.0, max_tokens=5)),
        ),
        (
            tensors(
                text_input=[b"hi"], sampling_parameters=[b'{"temperature": "0.5", "stop": ["x"], "n": "2"}']
            ),
            {"top_k": 3},
            Generate(
                ("hi",),
                sampling=Sampling(temperature=0.5, max_tokens=16, stop=("x",), choices=2, top_k=3),
                echoes=True,
            ),
        ),
        (tensors(input_ids=np.array([1, 2], np.int32)), {}, Generate(ids=((1, 2),), sampling=DEFAULTS)),
        (
            tensors(input_ids=np.array([[1, 2], [3, 4]])),
            {},
            Generate(ids=((1, 2), (3, 4)), sampling=DEFAULTS),
        ),
        (
            fields({"text_input": "hi", "id": "7"}),
            {"id": "7"},
            Generate(("hi",), sampling=DEFAULTS, echoes=True),
        ),
        (
            fields({"text_input": "hi", "stream": True, "parameters": {"min_tokens": 20, "priority": 1}}),
            {"min_tokens": 20, "x-forwarded": "1"},
            Generate(("hi",), sampling=Sampling(samples=True, max_tokens=20, min_tokens=20), streams=True),
        ),
        (
            fields({"input_ids": [1, 2], "sampling_parameters": {"skip_special_tokens": False}}),
            {},
            Generate(ids=((1, 2),), sampling=Sampling(samples=True, max_tokens=16, shows_special=True)),
        ),
        (
            fields({"text_input": "hi", "parameters": {"lora_name": "eng"}}),
            {},
            Generate(("hi",), sampling=DEFAULTS, echoes=True, adapter="eng"),
        ),
        (
            tensors(text_input=[b"hi"], sampling_parameters=[b'{"lora_name": "eng"}']),
            {"lora_name": "eng"},
            Generate(("hi",), sampling=DEFAULTS, echoes=True, adapter="eng"),
        ),
    ],
)
def test_requests(payload, parameters, expected):
    assert read(payload, parameters) == expected


@pytest.mark.parametrize(
    "payload",
    [
        tensors(inputs_embeds=np.array([[1, 2], [3, 4]], np.float32)),
        tensors(inputs_embeds=np.array([[[1, 2], [3, 4]]], np.float32)),
        fields({"inputs_embeds": [[1, 2], [3, 4]]}),
    ],
)
def test_embeddings(payload):
    embeds = read(payload).embeds
    assert (embeds.tokens, embeds.width) == (2, 2)
    assert np.frombuffer(embeds.data, np.float32).tolist() == [1, 2, 3, 4]


def test_parameters_that_are_not_of_sampling_are_left():
    assert to_generate(tensors(text_input=[b"hi"]), {"x-trace": "1", "seed": 5}, "m")[1] == {"x-trace": "1"}


@pytest.mark.parametrize(
    ("payload", "parameters", "field"),
    [
        (tensors(stream=[True]), {}, "text_input"),
        (tensors(text_input=[b"hi"], input_ids=[1]), {}, "text_input"),
        (tensors(text_input=[b"\xff"]), {}, "text_input"),
        (tensors(text_input=[1]), {}, "text_input"),
        (tensors(text_input=[b"hi"], stream=[True, False]), {}, "stream"),
        (tensors(text_input=[b"hi"], stream=[1]), {}, "stream"),
        (
            tensors(text_input=[b"hi"], stream=[True], exclude_input_in_output=[False]),
            {},
            "exclude_input_in_output",
        ),
        (tensors(text_input=[b"hi"], prompt=[b"x"]), {}, "prompt"),
        (tensors(text_input=[b"hi"]), {"temperature": "hot"}, "temperature"),
        (tensors(text_input=[b"hi"]), {"temperture": 1.0}, "temperture"),
        (tensors(text_input=[b"hi"]), {"use_beam_search": True}, "use_beam_search"),
        (tensors(text_input=[b"hi"], sampling_parameters=[b"{"]), {}, "sampling_parameters"),
        (tensors(text_input=[b"hi"], sampling_parameters=[b"[]"]), {}, "sampling_parameters"),
        (tensors(text_input=[b"hi"], sampling_parameters=[b'{"top": 1}']), {}, "sampling_parameters.top"),
        (
            tensors(text_input=[b"hi"], sampling_parameters=[b'{"top_p": 7}']),
            {},
            "sampling_parameters.top_p",
        ),
        (
            tensors(text_input=[b"hi"], sampling_parameters=[b'{"top_p": 0.5}']),
            {"top_p": 0.6},
            "sampling_parameters.top_p",
        ),
        (
            tensors(text_input=[b"hi"], sampling_parameters=[b'{"lora_name": "a"}']),
            {"lora_name": "b"},
            "sampling_parameters.lora_name",
        ),
        (fields({"text_input": "hi", "parameters": {"lora_name": 5}}), {}, "lora_name"),
        (tensors(text_input=[b"hi"]), {"n": 3, "best_of": 2}, "best_of"),
        (tensors(text_input=[b"hi"]), {"max_tokens": 3, "min_tokens": 4}, "min_tokens"),
        (tensors(input_ids=[-1]), {}, "input_ids"),
        (tensors(input_ids=[0.5]), {}, "input_ids"),
        (tensors(inputs_embeds=np.zeros((2, 2), np.float64)), {}, "inputs_embeds"),
        (tensors(inputs_embeds=np.zeros((0, 2), np.float32)), {}, "inputs_embeds"),
        (fields({"text_input": 5}), {}, "text_input"),
        (fields({"text_input": "a", "x": 1}), {"x": 1}, "x"),
        (fields({"text_input": "a", "parameters": {"text_input": "b"}}), {}, "text_input"),
        (fields(b'{"text_input": "a", "text_input": "b"}'), {}, "text_input"),
        (fields({"inputs_embeds": [[1], [2, 3]]}), {}, "inputs_embeds"),
        (fields({"inputs_embeds": "x"}), {}, "inputs_embeds"),
        (fields({"input_ids": [[1], []]}), {}, "input_ids"),
    ],
)
def test_refusals_name_the_field(payload, parameters, field):
    with pytest.raises(ServeError) as caught:
        read(payload, parameters)
    assert (caught.value.code, caught.value.metadata["field"]) == (Code.INVALID, field)
    assert f"'{field}'" in caught.value.message


def test_a_body_that_is_no_request():
    with pytest.raises(ServeError, match="text_input") as caught:
        read(Raw((RawPart(b"hello", "text/plain"),)))
    assert caught.value.code is Code.UNSUPPORTED_MEDIA


def test_answers():
    part = Generated((GeneratedChoice(1, "b"), GeneratedChoice(0, "ä", finish=Finish.EOS)))
    (tensor,) = as_tensors(part).items
    assert (tensor.name, tensor.datatype, tensor.array.tolist()) == (
        "text_output",
        DataType.BYTES,
        ["ä".encode(), b"b"],
    )
    assert as_tensors(Generated()).items[0].array.tolist() == [b""]
    with pytest.raises(ServeError, match="no number") as caught:
        as_tensors(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="There is no number."),)))
    assert caught.value.code is Code.MODEL_FAILED


def test_every_input_is_optional():
    assert all(spec.optional for spec in INPUTS)
