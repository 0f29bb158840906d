import json

import pytest

from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import MOST_BESIDE_DATA
from trivium.wires.v2.infer_header import InputParameters, decode_header


def an_input(**changed):
    return {"name": "a", "shape": [2], "datatype": "FP32"} | changed


def test_a_header():
    text = (
        b'{"id": "r", "inputs": [{"name": "a", "shape": [2], "datatype": "BF16",'
        b'"parameters": {"binary_data_size": 4, "content_type": "x"}}], "unknown": {}}'
    )
    got = decode_header(memoryview(text))
    assert (got.id, got.outputs, got.parameters) == ("r", (), {})
    (item,) = got.inputs
    assert (item.name, item.shape, item.datatype) == ("a", (2,), DataType.BF16)
    assert item.parameters == InputParameters(4)
    assert not item.data


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_bare_words_in_data_are_kept_as_text(word):
    text = f'{{"inputs": [{{"name": "a", "shape": [2], "datatype": "FP32", "data": [{word}, 1]}}]}}'
    got = decode_header(text.encode())
    assert bytes(got.inputs[0].data) == f"[{word}, 1]".encode()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "no valid JSON"),
        (b"{", "no valid JSON"),
        (b"{}x", "at the top: object missing required field `inputs`"),
        (b'{"inputs": []} \x00\x01', "Inference-Header-Content-Length"),
        (b'{"inputs": [], "id": "\xff"}', "no valid JSON"),
        (b'{"inputs": [], "id": "\\ud800"}', "no valid JSON"),
        (b'{"inputs": [], "x": NaN', "no valid JSON"),
        (b'{"inputs": [NaN]}', "no valid JSON"),
        (b'{"inputs": NaN}', "no valid JSON"),
        (
            b'{"inputs": [{"name": "a", "shape": [Infinity], "datatype": "FP32"}]}',
            "no valid JSON",
        ),
        (b"NaN", "no valid JSON"),
        (b"[]", "at the top: expected an object, got an array"),
        (b"{}", "at the top: object missing required field `inputs`"),
        (b'{"inputs": {}}', "at inputs: expected an array, got an object"),
        (b'{"inputs": [1]}', r"at inputs\[0\]: expected an object, got an integer"),
        (b'{"inputs": [], "id": 1}', "at id: expected a string, got an integer"),
        (b'{"inputs": [], "id": null}', "at id: expected a string, got null"),
        (b'{"inputs": [], "outputs": [{}]}', r"at outputs\[0\]: .* `name`"),
        (b'{"inputs": [], "parameters": []}', "at parameters: expected an object"),
        (b'{"inputs": [], "x": ' + b"[" * 100000 + b"]" * 100000 + b"}", "nested too deeply"),
        (b'{"inputs": [{"shape": [1], "datatype": "FP32"}]}', "missing required field `name`"),
        (b'{"inputs": [{"name": "a", "datatype": "FP32"}]}', "missing required field `shape`"),
        (b'{"inputs": [{"name": "a", "shape": [1]}]}', "missing required field `datatype`"),
        (an_input(shape=("1",)), r"at inputs\[0\].shape\[0\]: expected an integer, got a string"),
        (an_input(shape=(1.5,)), "expected an integer, got a number"),
        (an_input(shape=(-1,)), r"at inputs\[0\].shape\[0\]: expected an integer >= 0"),
        (an_input(shape=(True,)), "expected an integer, got true or false"),
        (an_input(datatype="FP31"), r"invalid datatype 'FP31'; v2 has BOOL, .*BYTES"),
        (an_input(datatype=7), "datatype: expected a string, got an integer"),
        (an_input(parameters=[]), r"at inputs\[0\].parameters: expected an object"),
    ],
)
def test_headers_that_are_refused(document, words):
    text = document if isinstance(document, bytes) else json.dumps({"inputs": [document]}).encode()
    with pytest.raises(ServeError, match=words) as refused:
        decode_header(text)
    assert refused.value.code is Code.INVALID


NUMBERS = b"[" + b"0," * (MOST_BESIDE_DATA // 2) + b"0]"
TEXTS = b"[" + b",".join([b'"{a}"'] * (MOST_BESIDE_DATA // 6)) + b"]"


@pytest.mark.parametrize(
    "text",
    [
        b'{"inputs": [], "parameters": {"a": %b}}' % NUMBERS,
        b'{"inputs": [], "outputs": [%b{}]}' % (b'{"name": "a"},' * (MOST_BESIDE_DATA // 13)),
        b'{"inputs": [%b{}]}' % (b'{"name": "x", "datatype": "FP32"},' * (MOST_BESIDE_DATA // 30)),
        b'{"inputs": [%b{}]}' % (b"{}," * (MOST_BESIDE_DATA // 3)),
        b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": %b}]}' % NUMBERS,
        b'{"inputs": [{"data": %b, "data": [1]}]}' % NUMBERS,
        b'{"outputs": %b, "outputs": [], "inputs": []}' % NUMBERS,
    ],
)
def test_what_is_beside_the_data_is_bounded(text):
    """One call reads it, while nobody else has the interpreter."""
    with pytest.raises(ServeError) as caught:
        decode_header(text)
    assert caught.value.code is Code.TOO_LARGE
    assert f"at most {MOST_BESIDE_DATA} are read" in caught.value.message


@pytest.mark.parametrize("data", [NUMBERS, TEXTS, TEXTS * 3])
def test_data_may_be_long(data):
    data = data.replace(b"][", b",")
    text = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": %b}], "id": "1"}' % data
    assert bytes(decode_header(text).inputs[0].data) == data


@pytest.mark.parametrize(
    "text",
    [
        b"[" + NUMBERS + b"]",
        b'{"inputs": 5, "a": %b}' % NUMBERS,
        b'{"inputs": [5, %b]}' % NUMBERS,
        b'{"inputs": [{"data": %b}]}' % NUMBERS,
        b'{"inputs": [{"data": %b}' % NUMBERS,
        b'{"inputs": [{"data": %b' % TEXTS,
    ],
)
def test_a_long_text_that_does_not_fit_is_refused(text):
    with pytest.raises(ServeError) as caught:
        decode_header(text)
    assert caught.value.code in (Code.INVALID, Code.TOO_LARGE)
