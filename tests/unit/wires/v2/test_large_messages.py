"""Large requests over gRPC, read in pieces: they are what protobuf itself makes of them."""

import contextlib
import random

import pytest

from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import large_messages
from trivium.wires.v2.large_messages import parse_large, weight
from trivium.wires.v2.service_messages import (
    InferRequestMessage,
    new_infer_request,
    parse_infer_request,
)

FIELDS = {
    "BOOL": ("bool_contents", [True, False]),
    "INT32": ("int_contents", [0, -1, 2**31 - 1, 7]),
    "INT64": ("int64_contents", [0, -1, 2**62, 7]),
    "UINT32": ("uint_contents", [0, 2**32 - 1, 300]),
    "UINT64": ("uint64_contents", [0, 2**64 - 1, 300]),
    "FP32": ("fp32_contents", [0.5, -1e30]),
    "FP64": ("fp64_contents", [0.25, 1e300]),
    "BYTES": ("bytes_contents", [b"", b"x", b"y" * 300, b"z" * 5000]),
}


def request(times: int) -> InferRequestMessage:
    message = new_infer_request()
    message.model_name, message.id = "m", "i" * 400
    message.parameters["a"].string_param = "b" * 400
    for datatype, (field, values) in FIELDS.items():
        entry = message.inputs.add()
        entry.name, entry.datatype = datatype.lower(), datatype
        entry.shape.extend([times, len(values)])
        entry.parameters["binary_data_size"].int64_param = 4
        getattr(entry.contents, field).extend(values * times)
    message.raw_input_contents.extend([b"r" * 3000, b""])
    message.outputs.add().name = "y"
    return message


@pytest.mark.parametrize("size", [8, 16, 104, 1000, 10**6])
@pytest.mark.parametrize("times", [0, 1, 100])
def test_what_is_read_in_pieces_is_what_is_read_at_once(
    size: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_messages, "PIECE_BYTES", size)
    message = request(times)
    assert parse_large(message.SerializeToString()) == message


class InvalidMessage(Exception):
    """What came is no message."""


def _read(data: bytes) -> InferRequestMessage:
    try:
        return parse_large(data)
    except ServeError as error:
        raise InvalidMessage if error.code is Code.INVALID else error from error


def test_every_cut_and_every_change_is_read_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes: the same as at once, or INVALID; a group is refused here only."""
    monkeypatch.setattr(large_messages, "PIECE_BYTES", 48)
    whole, chance = request(3).SerializeToString(), random.Random(22)
    for _ in range(2000):
        data = bytearray(whole[: chance.randrange(len(whole))])
        for _ in range(chance.randrange(3)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        assert 0 <= weight(bytes(data)) <= len(data)
        with contextlib.suppress(InvalidMessage):
            assert _read(bytes(data)) == parse_infer_request(bytes(data))


def test_raw_contents_weigh_nothing_unless_they_are_strings() -> None:
    message = new_infer_request()
    entry = message.inputs.add()
    entry.name, entry.datatype = "x", "FP32"
    message.raw_input_contents.append(bytes(10**6))
    assert weight(message.SerializeToString()) < 100
    entry.datatype = "BYTES"
    assert weight(message.SerializeToString()) > 10**6
    entry.datatype = "FP32"
    message.raw_input_contents.extend([b""] * 1000)
    assert weight(message.SerializeToString()) > 10**6, "so many fields are not looked through"
    message.Clear()
    message.inputs.add().contents.fp32_contents.extend([0.0] * 1000)
    assert weight(message.SerializeToString()) > 4000
