"""Functions of workflows: what they are called with, and what each kind of result becomes."""

import json
import sys

import pytest
from tests.harness.djl_child import SHIMS, DjlChildHarness, forget, raw, text

from trivium_worker.dialects.djl.function import FUNCTION
from trivium_worker.wire.values import Failure, Listed, Part, Raw, Tensor


@pytest.fixture
def child(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(SHIMS), *sys.path])
    forget()
    yield DjlChildHarness(tmp_path)
    forget()


def made(child, code, name="f", config=None):
    return child.adapter(
        f"from djl_python import Output\n{code}", function=name, settings={FUNCTION: config or {}}
    )


def called(child, code, *payloads, **fields):
    """What a function makes of these arguments."""
    adapter = made(child, code, **fields)
    (outcome,) = adapter.run([child.item(Listed(list(payloads)))])
    return outcome


SHOWN = """
def f(*arguments):
    return [seen(one) for one in arguments]
def seen(one):
    if isinstance(one, list):
        return [seen(each) for each in one]
    pairs = dict(zip(one.content.get_keys(), [bytes(v).decode() for v in one.content.get_values()]))
    return [dict(one.properties), pairs, one.get_function_name()]
"""


def test_arguments_are_inputs_and_lists_of_them(child):
    body = Raw([Part(b"1"), Part(b"2", name="more")], {"x-from": "m"}, [("query", "q")])
    outcome = called(child, SHOWN, body, Listed([raw(b"3"), Listed([raw(b"4")])]))
    one, (three, (four,)) = json.loads(text(outcome))
    properties, pairs, name = one
    assert (properties["x-from"], properties["requestId"], properties["handler"]) == ("m", "r", "f")
    assert properties["model_dir"] == str(child.root)
    assert (pairs, name) == ({"query": "q", "data": "1", "more": "2"}, "f")
    assert (three[1], four[1]) == ({"data": "3"}, {"data": "4"})


def test_tensors_are_an_ndlist(child):
    tensor = Tensor("x", "FP32", (1,), b"\0\0\0\0")
    outcome = called(child, "def f(one):\n    return one.get_as_numpy()[0].tolist()\n", [tensor])
    assert json.loads(text(outcome)) == [0.0]


def test_a_payload_of_its_own_is_the_only_argument(child):
    adapter = made(child, "def f(one):\n    return one.get_as_string()\n")
    (outcome,) = adapter.run([child.item(raw(b"direct"))])
    assert text(outcome) == "direct"


RESULTS = {
    "text": ("'é'", [("text/plain", "é".encode())]),
    "bytes": ("b'12'", [("", b"12")]),
    "a bytearray": ("bytearray(b'12')", [("", b"12")]),
    "a dict": ('{"a": 1}', [("application/json", b'{\n  "a":1\n}')]),
    "a list": ("[1]", [("application/json", b"[\n  1\n]")]),
    "an empty list": ("[]", [("application/json", b"[]")]),
    "a number": ("5", [("application/json", b"5")]),
    "an Output": ("Output().add('x').add_property('content-type', 'a/b')", [("a/b", b"x")]),
    "an Output of several": ("Output().add('x', 'k').add('y', 'data')", [("", b"y"), ("", b"x")]),
    "an Input": ("one", [("", b"asked")]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_returned(child, name):
    value, parts = RESULTS[name]
    outcome = called(child, f"def f(one):\n    return {value}\n", raw(b"asked"))
    assert [(part.content_type, bytes(part.data)) for part in outcome.parts] == parts


def test_content_and_properties_of_an_output_carry_over(child):
    code = "def f(one):\n    return Output(201, 'made').add('x', 'k').add('y').add('z', 'data').add_property('p', 1)\n"
    outcome = called(child, code, raw())
    assert [(part.name, bytes(part.data)) for part in outcome.parts] == [
        ("", b"z"),
        ("k", b"x"),
        ("data", b"y"),
    ]
    assert (outcome.status, outcome.reason, outcome.properties) == (201, "made", {"p": "1"})


def test_an_input_is_handed_on_without_what_is_ours(child):
    outcome = called(child, "def f(one):\n    return one\n", raw(b"x", {"p": "1"}))
    assert outcome.properties == {"p": "1"}


def test_a_list_of_outputs_is_a_list(child):
    outcome = called(child, "def f(one):\n    return [Output().add('a'), one]\n", raw(b"b"))
    assert isinstance(outcome, Listed)
    assert [text(one) for one in outcome.payloads] == ["a", "b"]


def test_nothing_is_204(child):
    outcome = called(child, "def f(one):\n    pass\n", raw())
    assert (outcome.status, outcome.parts) == (204, [])


def test_a_class_is_made_once_with_its_configuration(child):
    code = """
class F:
    def __init__(self, config):
        self.config, self.calls = config, 0
    def __call__(self, one):
        self.calls += 1
        return [self.config["scale"], self.calls]
"""
    adapter = made(child, code, "F", {"scale": 2.5})
    outcomes = adapter.run([child.item(Listed([raw()])), child.item(Listed([raw()]))])
    assert [json.loads(text(one)) for one in outcomes] == [[2.5, 1], [2.5, 2]]


FAILS = {
    "it raises": ("raise ValueError('not this')", "not this"),
    "another number of arguments": ("return two", "two"),
    "another type": ("return object()", "Invalid output type: object"),
    "a stream": ("return Output().add_stream_content(iter([1]))", "streams"),
    "no JSON": ("return float('nan')", "JSON"),
}


@pytest.mark.parametrize("name", FAILS)
def test_what_cannot_be_answered_is_that_requests_failure(child, name):
    body, words = FAILS[name]
    outcome = called(child, f"def f(one):\n    {body}\n", raw())
    assert isinstance(outcome, Failure)
    assert words in outcome.message


def test_memory_that_runs_out_is_told_so(child):
    outcome = called(child, "def f(one):\n    raise MemoryError('none')\n", raw())
    assert (outcome.code, outcome.status) == ("out of memory", 507)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("async def f(one): pass", "async"),
        ("class f:\n    def __init__(self, config): pass\n    async def __call__(self, one): pass", "async"),
        ("class f:\n    def __init__(self, config): pass", "cannot be called"),
        ("def g(one): pass", "no function f"),
    ],
)
def test_what_cannot_be_called_does_not_load(child, code, words):
    with pytest.raises(Failure, match=words):
        made(child, code)


def test_a_handler_takes_no_list(child):
    adapter = child.adapter("def handle(inputs):\n    return None\n")
    (outcome,) = adapter.run([child.item(Listed([raw(), raw()]))])
    assert isinstance(outcome, Failure)
    assert "a list of 2" in outcome.message


def test_a_handler_keeps_all_of_its_content(child):
    code = "from djl_python import Output\ndef handle(inputs):\n    return Output().add('x', 'a').add('y', 'b')\n"
    (outcome,) = child.adapter(code).run([child.item(raw())])
    assert [(part.name, bytes(part.data)) for part in outcome.parts] == [("a", b"x"), ("b", b"y")]
