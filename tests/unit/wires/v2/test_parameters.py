import pytest

from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef
from trivium.wires.v2.parameters import RequestParameters, read_parameters


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, RequestParameters()),
        ({"binary_data_output": True}, RequestParameters(binary_output=True)),
        ({"binary_data_output": False}, RequestParameters()),
        ({"priority": 2}, RequestParameters(priority=2)),
        ({"timeout": 1500}, RequestParameters(queue_timeout=0.0015)),
        ({"timeout": 0}, RequestParameters()),
        ({"sequence_id": 7, "sequence_start": True}, RequestParameters(sequence=SequenceRef(7, starts=True))),
        ({"sequence_id": "s", "sequence_end": True}, RequestParameters(sequence=SequenceRef("s", ends=True))),
        ({"sequence_id": 0, "sequence_start": False}, RequestParameters()),
        ({"sequence_id": ""}, RequestParameters()),
        (
            {"a": 1, "b": 2.5, "c": "x", "d": False, "priority": 1, "binary_data_output": True},
            RequestParameters(own={"a": 1, "b": 2.5, "c": "x", "d": False}, priority=1, binary_output=True),
        ),
    ],
)
def test_reads(given, expected):
    before = dict(given)
    assert read_parameters(given) == expected
    assert given == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"priority": -1}, "'priority' is -1"),
        ({"priority": True}, "'priority' is true"),
        ({"priority": 1.0}, "'priority' is 1.0"),
        ({"priority": "1"}, "'priority'"),
        ({"priority": None}, "'priority' is null"),
        ({"timeout": -5}, "'timeout'"),
        ({"timeout": 2**64}, "'timeout'"),
        ({"binary_data_output": 1}, "'binary_data_output' is 1, but true or false"),
        ({"sequence_start": 1, "sequence_id": 1}, "'sequence_start'"),
        ({"sequence_end": "yes", "sequence_id": 1}, "'sequence_end'"),
        ({"sequence_id": -1}, "'sequence_id'"),
        ({"sequence_id": 1.5}, "'sequence_id'"),
        ({"triton_x": 1}, "'triton_x'.* reserved"),
        ({"foo": [1]}, r"'foo' is \[1\]"),
        ({"foo": {"a": "b" * 99}}, r"'foo' is \{\"a\":\"b+\.\.\."),
        ({"foo": None}, "'foo' is null"),
        ({"foo": 10**30}, "'foo' .* 64 bits"),
    ],
)
def test_refuses_naming_the_key(given, words):
    with pytest.raises(ServeError, match=words) as refused:
        read_parameters(given)
    assert refused.value.code is Code.INVALID


@pytest.mark.parametrize(
    "given", [{"sequence_start": True}, {"sequence_end": True, "sequence_id": 0}, {"sequence_id": ""}]
)
def test_marks_without_a_sequence_say_nothing(given):
    assert read_parameters(given).sequence is None
