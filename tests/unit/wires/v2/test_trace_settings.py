import gc
import weakref
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs import grpc_status
from trivium.servers.triton.words.texts import RPC_WORDS, error_text
from trivium.types.errors import Code, ServeError
from trivium.types.operations import TraceReport
from trivium.types.tracing import Detail, TraceChange, TraceSettings
from trivium.types.wire import Body, Head, Target
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.trace_settings import KEYS, read_json, read_rpc, trace_document

TIMES = frozenset({Detail.TIMES})


def refusal(fields, is_lenient=True, read=read_json):
    with pytest.raises(ServeError) as caught:
        read(fields, is_lenient)
    return caught.value


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({}, None),
        ({"trace_level": ["OFF"]}, TraceChange(details=frozenset())),
        ({"trace_level": ["TIMESTAMPS"]}, TraceChange(details=TIMES)),
        ({"trace_level": ["TENSORS", "TIMESTAMPS"]}, TraceChange(details=frozenset(Detail))),
        ({"trace_level": None, "trace_rate": None}, TraceChange(details=None, every=None)),
        ({"trace_rate": "5", "log_frequency": " 7x"}, TraceChange(every=5, per_file=7)),
        ({"trace_count": "-1"}, TraceChange(left=-1)),
        ({"trace_count": "0"}, TraceChange(left=0)),
        ({"trace_level": []}, None),
    ],
)
@pytest.mark.parametrize("is_lenient", [True, False])
def test_changes(fields, change, is_lenient):
    assert read_json(fields, is_lenient) == change
    if fields.get("trace_level") != []:
        listed = {
            key: [] if value is None else value if isinstance(value, list) else [value]
            for key, value in fields.items()
        }
        assert read_rpc(listed, is_lenient) == change


def test_over_grpc_no_value_clears():
    assert read_rpc({"trace_level": []}, True) == TraceChange(details=None)


@pytest.mark.parametrize(
    "fields", [{"loud": "1"}, {"trace_mode": 3}, {"trace_level": ["LOUD"]}, {"loud": {"a": [1]}}]
)
def test_who_is_lenient_ignores_what_is_not_known(fields):
    assert read_json(fields, True) is None
    if "trace_mode" not in fields:
        assert refusal(fields, False).code is Code.INVALID


NO_FILE = "trace file location can not be updated through network protocol"


@pytest.mark.parametrize(
    ("fields", "code", "text", "rpc_text"),
    [
        ({"trace_file": "x"}, "UNIMPLEMENTED", NO_FILE, None),
        ({"trace_file": None}, "UNIMPLEMENTED", NO_FILE, None),
        ({"trace_rate": 5}, "INTERNAL", "attempt to access JSON non-string as string", ...),
        ({"trace_level": "OFF"}, "INTERNAL", "attempt to access JSON non-array as array", ...),
        ({"trace_level": [1]}, "INTERNAL", "attempt to access JSON non-string as string", ...),
        ({"trace_rate": "x"}, "INVALID_ARGUMENT", "Unable to parse 'trace_rate', got: x", None),
        ({"trace_count": ""}, "INVALID_ARGUMENT", "Unable to parse 'trace_count', got: ", None),
        (
            {"log_frequency": "99999999999"},
            "INVALID_ARGUMENT",
            "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: 99999999999",
            None,
        ),
        (
            {"trace_count": "-99999999999"},
            "INVALID_ARGUMENT",
            "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: -99999999999",
            None,
        ),
        (
            {"trace_count": "-5"},
            "INVALID_ARGUMENT",
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-5",
            "Unable to parse 'trace_count'. Expecting value >= -1, got: -5",
        ),
        (
            {"trace_level": ["OFF", "TENSORS"]},
            "INVALID_ARGUMENT",
            "Expect only one trace level 'OFF' is specified",
            None,
        ),
    ],
)  # fmt: skip
def test_refusals_in_tritons_words(fields, code, text, rpc_text):
    told = error_text(refusal(fields), {})
    assert (told.status, told.text) == (getattr(grpc_status, code), text)
    if rpc_text is not ...:
        listed = {key: value if isinstance(value, list) else [str(value)] for key, value in fields.items()}
        told = error_text(refusal(listed, True, read_rpc), {}, RPC_WORDS)
        number = getattr(grpc_status, code)
        assert (told.status, told.text) == (number, rpc_text or text)


def test_several_values_over_grpc():
    told = error_text(refusal({"trace_rate": ["1", "2"]}, True, read_rpc), {}, RPC_WORDS)
    assert told.text == "expect only 1 value for 'trace_rate'"


def test_documents():
    settings = TraceSettings(frozenset(Detail), 5, 3, 2)
    assert trace_document(TraceReport(settings, "/t")) == {
        "trace_level": ["TIMESTAMPS", "TENSORS"],
        "trace_rate": "5",
        "trace_count": "3",
        "log_frequency": "2",
        "trace_file": "/t",
        "trace_mode": "triton",
    }
    assert trace_document(TraceReport(TraceSettings(), None, {"url": "u"})) == {
        "trace_level": ["OFF"],
        "trace_rate": "1000",
        "trace_count": "-1",
        "trace_mode": "opentelemetry",
        "url": "u",
    }
    assert tuple(trace_document(TraceReport(TraceSettings(), ""))) == KEYS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=4
)


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), JSON), st.booleans())
def test_anything_is_a_change_or_a_refusal(fields, is_lenient):
    with suppress(ServeError):
        change = read_json(fields, is_lenient)
        assert change is None or isinstance(change, TraceChange)


@pytest.mark.parametrize("sign", ["", "-", "+"])
@pytest.mark.parametrize("key", ["trace_rate", "trace_count"])
def test_a_number_longer_than_python_reads_is_refused(key, sign):
    assert refusal({key: sign + "9" * 5000}).code is Code.INVALID
    assert refusal({key: [sign + "9" * 5000]}, True, read_rpc).code is Code.INVALID


def test_a_fault_that_waits_for_its_answer_is_freed_with_it():
    """Also where whoever asked still has the encoder in hand: the error does not lead back to it."""
    target = Target(Verb.TRACE_SETTINGS, "m", "", True)

    def ask():
        _, encoder = KServeHttp("t", "1", KServeOptions(may_change=True)).decode(
            Head("POST", "/", "", {}), target, Body(b'{"a"')
        )
        return weakref.ref(encoder.refusal)

    gc.disable()
    try:
        assert ask()() is None
    finally:
        gc.enable()
