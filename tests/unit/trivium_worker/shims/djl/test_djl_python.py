import datetime
import importlib
import io
import json
import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.djl_child import SHIMS, forget
from tests.harness.properties import examples

from trivium_worker.dialects.djl import ndlist
from trivium_worker.wire.values import Tensor


@pytest.fixture(autouse=True)
def shim(monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    yield
    forget()


def inputs(content=(), **properties):
    from djl_python import Input

    made = Input()
    made.properties.update({key.replace("_", "-"): value for key, value in properties.items()})
    for key, value in content:
        made.content.add(key, bytearray(value))
    return made


def body(data, content_type):
    return inputs([("data", data)], content_type=content_type)


def one(output):
    """The only value of an Output."""
    assert output.content.size() == 1
    return bytes(output.content.value_at(0))


def npz(*arrays):
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def test_names_users_import():
    from djl_python import Input, Output, PairList
    from djl_python.inputs import Input as AlsoInput
    from djl_python.outputs import Output as AlsoOutput
    from djl_python.pair_list import PairList as AlsoPairList

    assert (Input, Output, PairList) == (AlsoInput, AlsoOutput, AlsoPairList)


LEFT = [
    ("djl_python.streaming_utils", "StreamingUtils"),
    ("djl_python.test_model", "create_3p_request"),
    ("djl_python.lmi_vllm.vllm_async_service", "VLLMHandler"),
    ("djl_python.output_formatter", "get_output_formatter"),
    ("djl_python.input_parser", "parse_input_with_formatter"),
    ("djl_python.huggingface", "HuggingFaceService"),
]


@pytest.mark.parametrize(("module", "name"), LEFT)
def test_what_is_left_says_so_when_it_is_used(module, name):
    found = getattr(importlib.import_module(module), name)
    for use in (lambda: found(), lambda: found(print), lambda: found.anything):
        with pytest.raises(NotImplementedError, match=f"{name} is not supported in this version"):
            use()
    assert not hasattr(importlib.import_module(module), "__wrapped__")
    assert not hasattr(found, "__wrapped__")


# -- requests ---------------------------------------------------------------------------------------------


def test_pairs():
    from djl_python import PairList

    pairs = PairList()
    pairs.add("a", 1)
    pairs.add(value=2)
    pairs.add("a", 3, index=0)
    other = PairList()
    other.add("b", 4)
    pairs.add_all(other)
    assert (pairs.get_keys(), pairs.get_values()) == (["a", "a", None, "b"], [3, 1, 2, 4])
    assert (pairs.get("a"), pairs.get("z"), pairs.size(), pairs.is_empty()) == (3, None, 4, False)
    assert (pairs.key_at(2), pairs.value_at(2), pairs.contains("b")) == (None, 2, True)
    pairs.add("c", None)  # which is no value
    assert pairs.size() == 4
    made = PairList(["a"], [1])
    assert (made.get("a"), PairList(["a"]).size()) == (1, 0)
    with pytest.raises(ValueError, match="mismatch"):
        PairList(["a"], [1, 2])


def test_properties_are_found_in_any_case():
    made = inputs(content_type="a/b")
    assert made.get_property("Content-Type") == "a/b"
    assert made.get_properties()["CONTENT-TYPE"] == "a/b"
    assert "Content-type" in made.properties
    assert made.get_property("other") is None
    assert made.properties.get("other", 3) == 3
    assert 3 not in made.properties
    with pytest.raises(KeyError, match="other"):
        made.properties["other"]


def test_an_empty_request():
    made = inputs()
    assert made.is_empty()
    assert made.get_as_bytes() is None
    assert made.get_data() is None
    assert (made.is_batch(), made.get_batch_size(), made.get_batches()) == (False, 1, [made])
    assert made.get_function_name() is None


def test_content():
    made = inputs([("k", b"first"), ("data", b'{"a": 1}')], content_type="text/plain")
    assert made.get_as_bytes() == bytearray(b'{"a": 1}')
    assert isinstance(made.get_as_bytes("k"), bytearray)
    assert made.get_as_string("k") == "first"
    assert made.get_as_json() == {"a": 1}
    assert made.contains_key("k")
    with pytest.raises(KeyError, match="key:z is not found"):
        made.get_as_bytes("z")
    assert inputs([("k", b"1"), ("l", b"2")]).get_as_bytes() == b"1"
    assert str(made).startswith("properties: {'content-type': 'text/plain'}\nk: ")


def test_arrays_in_both_forms():
    from djl_python.np_util import to_nd_list

    arrays = [np.float32([[1, 2]]), np.array([True]), np.array(["ä"]), np.zeros((0, 2), "i8")]
    for data in (bytes(to_nd_list(arrays)), npz(*arrays)):
        got = inputs([("data", data)]).get_as_numpy()
        assert [array.tolist() for array in got] == [array.tolist() for array in arrays]
        assert got[0].dtype == np.float32
    assert inputs([("data", npz(*arrays))]).get_as_npz()[0].tolist() == [[1, 2]]
    with pytest.raises(ValueError):
        inputs([("data", npz(np.array([{}], object)))]).get_as_npz()


def test_pictures_and_tables():
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (3, 2)).save(file, "PNG")
    assert body(file.getvalue(), "image/png").get_data().size == (3, 2)
    assert inputs([("data", b"a,b\n1,2\n")]).get_as_csv() == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        ("", b"x", bytearray(b"x")),
        ("text/html; charset=utf-8", "ä".encode(), "ä"),
        ("application/json; charset=utf-8", b"[1]", [1]),
        ("audio/wav", b"x", bytearray(b"x")),
    ],
)
def test_data_by_content_type(content_type, data, expected):
    assert body(data, content_type).get_data() == expected


def test_arrays_by_content_type():
    from djl_python.np_util import to_nd_list

    for arrays in ([np.ones(2)], np.ones(2)):
        (array,) = body(to_nd_list(arrays), "tensor/ndlist").get_data()
        assert array.tolist() == [1, 1]
    assert body(npz(np.ones(2)), "tensor/npz").get_data()[0].tolist() == [1, 1]


def test_batches():
    made = inputs([("batch_000.data", b"a"), ("batch_001.k", b"b"), ("batch_001.l", b"c")])
    made.properties.update({"batch_size": "2", "model_dir": "/m", "batch_001.who": "me"})
    first, second = made.get_batches()
    assert (first.content.get_keys(), second.content.get_keys()) == (["data"], ["k", "l"])
    assert (first.properties, second.properties) == ({}, {"who": "me"})
    assert not first.is_batch()


# -- answers ----------------------------------------------------------------------------------------------


def test_output_chains():
    from djl_python import Output

    output = Output().set_code(201).set_message("made").add_property("X", 1).add("a", "k")
    assert (output.code, output.message, output.get_properties()) == (201, "made", {"X": 1})
    assert (output.get_property("X"), output.get_property("x")) == (1, None)
    assert json.loads(str(output))["content"] == {"k": "type: <class 'bytes'>"}
    assert output.get_content().get_keys() == ["k"]


def test_content_of_an_answer(capsys):
    from djl_python import Output

    output = Output().add("ä").add(bytearray(b"b")).add([1], batch_index=3).add(b"c", 5).add("d", "k", 0)
    assert output.content.get_keys() == [None, None, "batch_3.", "5", "batch_0.k"]
    assert output.content.get_values() == ["ä".encode(), b"b", b"[\n  1\n]", b"c", b"d"]
    assert output.properties == {}
    assert "is no text" in capsys.readouterr().err


def test_json():
    from djl_python import Output

    value = {"ä": np.float32(1.5), "n": np.int64(3), "a": np.ones(2), "t": datetime.datetime(2024, 1, 2)}
    sent = one(Output().add_as_json(value))
    assert json.loads(sent) == {"ä": 1.5, "n": 3, "a": [1.0, 1.0], "t": "2024-01-02 00:00:00"}
    assert sent.startswith('{\n  "ä":1.5,\n'.encode())
    for bad in (math.nan, np.array([math.inf])):
        with pytest.raises(ValueError):
            Output().add_as_json([bad])
    with pytest.raises(TypeError):
        Output().add_as_json([object()])


def test_arrays_of_an_answer():
    from djl_python import Output

    for add, read in (("add_as_numpy", "get_as_numpy"), ("add_as_npz", "get_as_npz")):
        for value in (np.ones(2), [np.ones(2)]):
            sent = one(getattr(Output(), add)(value))
            assert getattr(inputs([("data", sent)]), read)()[0].tolist() == [1, 1]


def test_errors_replace_what_was_there():
    from djl_python import Output

    output = Output().add("half").add_stream_content([1]).error("bad")
    assert (output.code, output.message) == (424, "invoke handler failure")
    assert output.stream_content is None
    assert output.properties == {"content-type": "application/json"}
    assert json.loads(one(output)) == {"code": 424, "message": "invoke handler failure", "error": "bad"}


def test_binary_encode():
    from djl_python import Output

    sent = Output.binary_encode({"data": "ä", "last": True})
    assert sent == b"\0\2\0\0\0\4data\0\0\0\2\xc3\xa4\0\0\0\4last\0\0\0\4True"


# -- codecs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        (None, b"", {"inputs": ""}),
        (None, b'{"a": 1}', {"a": 1}),
        ("application/json", b"[1]", [1]),
        ("text/plain", b"hi", {"inputs": ["hi"]}),
        ("text/csv", b"inputs\na\nb\n", {"inputs": ["a", "b"]}),
        ("text/csv", b"question,context\na,b\n", {"inputs": [{"question": "a", "context": "b"}]}),
        ("application/x-www-form-urlencoded", b"a=1", {"inputs": "a=1"}),
        ("application/octet-stream", b"\0", {"inputs": bytearray(b"\0")}),
    ],
)
def test_decode(content_type, data, expected):
    from djl_python.encode_decode import decode

    assert decode(inputs([("data", data)]), content_type) == expected


def test_decode_of_arrays_pictures_and_tables():
    from djl_python.encode_decode import decode
    from djl_python.np_util import to_nd_list
    from PIL import Image

    for kind, data in (("tensor/npz", npz(np.ones(1))), ("tensor/ndlist", to_nd_list([np.ones(1)]))):
        assert decode(inputs([("data", data)]), kind)["inputs"][0].tolist() == [1]
    file = io.BytesIO()
    Image.new("L", (3, 2)).save(file, "PNG")
    assert decode(inputs([("data", file.getvalue())]), "image/png")["inputs"].size == (3, 2)
    rows = inputs([("data", b"1,2\n3,4\n")])
    assert decode(rows, "text/csv", require_csv_headers=False).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="Header columns"):
        decode(rows, "text/csv")


@pytest.mark.parametrize(
    ("content_type", "prediction", "sent_type", "sent"),
    [
        (None, [1], "application/json", b"[\n  1\n]"),
        ("application/json", "a", "application/json", b'"a"'),
        ("text/csv", [{"a": 1, "b": "x,y"}], "text/csv", b'a,b\r\n1,"x,y"\r\n'),
        ("text/csv", [[1, 2], 3], "text/csv", b"1,2\r\n3\r\n"),
    ],
)
def test_encode(content_type, prediction, sent_type, sent):
    from djl_python import Output
    from djl_python.encode_decode import encode

    output = Output()
    encode(output, prediction, content_type)
    assert (output.get_property("Content-Type"), one(output)) == (sent_type, sent)


def test_encode_of_arrays():
    from djl_python import Output
    from djl_python.encode_decode import encode

    for accept, kind in (("tensor/npz", "tensor/npz"), ("x/y", "tensor/ndlist")):
        output = Output()
        encode(output, [np.ones(1)], accept)
        assert output.get_property("Content-Type") == kind
        assert inputs([("data", one(output))]).get_as_numpy()[0].tolist() == [1]


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=("Cs",)), max_size=3), st.binary()), max_size=3
    )
)
def test_ndlist_round_trip(named):
    sent = [Tensor(name, "UINT8", (len(data),), data) for name, data in named]
    got = ndlist.read(ndlist.write(sent))
    assert [(framed.name, framed.word, framed.shape, bytes(framed.data)) for framed in got] == [
        (tensor.name, "UINT8", tensor.shape, tensor.data) for tensor in sent
    ]


@settings(max_examples=examples(200))
@given(st.binary(max_size=40), st.integers(0, 90))
def test_hostile_ndlists_are_read_or_refused(noise, place):
    whole = bytes(ndlist.write([Tensor.of_elements("x", [b"a", b"b"]), Tensor("y", "FP32", (1,), b"1234")]))
    with suppress(ValueError):
        ndlist.read(whole[:place] + noise + whole[place + len(noise) :])


def test_what_numpy_or_the_form_lacks():
    from djl_python.np_util import from_nd_list, to_nd_list

    with pytest.raises(ValueError, match="BFLOAT16"):
        from_nd_list(ndlist.write([Tensor("x", "BF16", (1,), b"12")]))
    with pytest.raises(TypeError, match="complex"):
        to_nd_list([np.ones(1, "c16")])
    assert from_nd_list(to_nd_list([np.array([1 + 2j], "c8")]))[0].tolist() == [1 + 2j]
    with pytest.raises(ValueError, match="too long"):
        ndlist.write([Tensor("n" * 70000, "BOOL", (0,), b"")])
    assert from_nd_list(ndlist.write([]) + b"") == []
