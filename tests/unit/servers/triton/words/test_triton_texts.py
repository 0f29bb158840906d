"""Triton's texts: every row can be filled with the facts of its kind, and some read as the sheet has them."""

import inspect
import re

import pytest

from trivium.codecs import data_reasons
from trivium.codecs.error_table import Wording
from trivium.codecs.grpc_status import INTERNAL, INVALID_ARGUMENT, UNAVAILABLE
from trivium.servers.triton.words.error_codes import CODES, HTTP_STATUS, NOT_THE_ORIGINALS
from trivium.servers.triton.words.texts import ROWS, RPC_ROWS, RPC_WORDS, WORDS, error_text
from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import request_reasons

SAMPLES = {
    "datatype": DataType.INT32,
    "expected": [1],
    "found": [2],
    "got": ["a"],
    "missing": ["b"],
    "has_rows": True,
    "idle": 1.5,
}
OF_REASON = {data_reasons.MANY_STRINGS: {"expected": 2}}
ABOUT = {"model": "m", "id": "i"}
_REASON = re.compile(r'^[A-Z_]+: Final = "([a-z_]+)"  # (.*)$', re.MULTILINE)
_MODULES = (reasons, data_reasons, request_reasons)
METADATA = dict(row for module in _MODULES for row in _REASON.findall(inspect.getsource(module)))


def _metadata(reason):
    """Values for the names that stand behind a reason where it is defined."""
    told = METADATA[reason]
    if told == "no metadata":
        return {}
    names = re.findall(r"[a-z_]+", re.sub(r"\(.*?\)|, as .*", "", told))
    return {name: SAMPLES.get(name, "x") for name in names} | OF_REASON.get(reason, {})


REASONS = [key for key in RPC_ROWS if isinstance(key, str)]


def test_every_reason_is_defined_once_and_has_its_metadata_behind_it():
    values = [value for module in _MODULES for name, value in vars(module).items() if name.isupper()]
    assert sorted(values) == sorted(METADATA)
    assert set(REASONS) <= METADATA.keys()


@pytest.mark.parametrize("over_rpc", [False, True])
@pytest.mark.parametrize("kind", REASONS)
def test_every_row_needs_no_other_facts(kind, over_rpc):
    error = ServeError(Code.INVALID, "own words", info=ErrorInfo.of(kind, **_metadata(kind)))
    found = error_text(error, ABOUT | {"size": 3}, RPC_WORDS if over_rpc else WORDS)
    if not over_rpc and kind not in ROWS:
        assert found == Wording()
    else:
        assert found.text
        assert "{" not in found.text


def _said(kind, table=WORDS, about=ABOUT, **facts):
    found = error_text(ServeError(Code.INVALID, "own", info=ErrorInfo.of(kind, **facts)), about, table)
    assert found.status
    return found


def test_the_id_stands_in_front():
    assert _said(reasons.TOO_MANY_ROWS, most=4).text == (
        "[request id: i] inference request batch-size must be <= 4 for 'm'"
    )
    assert _said(reasons.TOO_MANY_ROWS, about={"model": "m"}, most=4).text.startswith(
        "[request id: <id_unknown>] "
    )


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (
            {"least": 2, "most": 2, "got": ["A"], "missing": ["B"]},
            "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) "
            "['B']. Please provide all required input(s).",
        ),
        (
            {"least": 2, "most": 2, "got": ["A", "B", "C"], "missing": []},
            "expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['C','B','A'], but missing required "
            "input(s) ]. Please provide all required input(s).",
        ),
        (
            {"least": 1, "most": 3, "got": [], "missing": ["P"]},
            "expected number of inputs between 1 and 3 but got 0 inputs for model 'm'. Got input(s) [], but missing "
            "required input(s) ['P']. Please provide all required input(s).",
        ),
    ],
)
def test_the_number_of_inputs(facts, text):
    assert _said(reasons.INPUT_COUNT, model="m", **facts).text == f"[request id: i] {text}"


def test_a_shape_with_and_without_rows():
    plain = _said(reasons.SHAPE, model="m", input="a", found=(2,), expected=(-1, 2), has_rows=False)
    assert (
        plain.text
        == "[request id: i] unexpected shape for input 'a' for model 'm'. Expected [-1,2], got [2]. "
    )
    rows = _said(reasons.SHAPE, model="m", input="a", found=(2,), expected=(-1, 2), has_rows=True)
    assert rows.text.startswith(plain.text + "NOTE: Setting a non-zero max_batch_size")


@pytest.mark.parametrize(
    ("datatype", "text"),
    [
        (DataType.BOOL, "Unable to parse 'data': attempt to access JSON non-boolean as boolean"),
        (
            DataType.UINT8,
            "Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
        (
            DataType.INT8,
            "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
        ),
        (DataType.FP32, "Unable to parse 'data': attempt to access JSON non-number as double"),
        (DataType.BYTES, "Unable to parse JSON bytes array: attempt to access JSON non-string as string"),
    ],
)
def test_elements(datatype, text):
    assert _said(data_reasons.ELEMENT, datatype=datatype).text == text


def test_strings_are_counted_to_the_first_that_is_too_many():
    text = _said(data_reasons.MANY_STRINGS, input="x", expected=2, found=9).text
    assert text == (
        "[request id: i] unexpected number of string elements 3 for inference input 'x' for model 'm', expecting 2"
    )


def test_what_both_wires_say_otherwise():
    wrong = {"key": "priority", "expected": "unsigned-integer"}
    assert _said(request_reasons.PARAMETER, **wrong).status == INTERNAL
    rpc = _said(request_reasons.PARAMETER, RPC_WORDS, **wrong)
    assert rpc.status == INVALID_ARGUMENT
    assert rpc.text == "invalid value type for 'priority' parameter, expected int64_param or uint64_param."


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (Code.QUEUE_FULL, "[request id: i] Exceeds maximum queue size"),
        (Code.EXPIRED, "Request timeout expired"),
    ],
)
def test_what_the_queue_says(code, text):
    found = error_text(ServeError(code, "own"), ABOUT)
    assert (found.status, found.text) == (UNAVAILABLE, text)


def test_what_has_no_row_keeps_its_words():
    assert error_text(ServeError(Code.MODEL_FAILED, "own"), ABOUT) == Wording()
    endless = ServeError(Code.INVALID, "own", info=ErrorInfo.of(reasons.ENDLESS))
    assert error_text(endless, ABOUT, RPC_WORDS) == Wording()


def test_every_code_has_a_status():
    assert CODES.keys() == set(Code) - NOT_THE_ORIGINALS
    assert set(CODES.values()) | {row.status for row in RPC_ROWS.values()} <= HTTP_STATUS.keys()
