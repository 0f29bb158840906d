"""Parts of answers as a file's bytes and back."""

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.tensor_strategies import tensors

from trivium.codecs import binary
from trivium.core.streams.records import read_parts, write_parts
from trivium.types.datatype import DataType
from trivium.types.generation import Finish, Generated, GeneratedChoice, GenerationUsage, TokenText
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import Part

scalars = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text())
raws = st.builds(
    Raw,
    st.lists(st.builds(RawPart, st.binary(), st.text(), st.text(), st.text()), max_size=3).map(tuple),
    st.dictionaries(st.text(), st.text(), max_size=2),
    status=st.integers(0, 599),
    reason=st.text(),
)
generated = st.builds(
    Generated,
    st.lists(
        st.builds(
            GeneratedChoice,
            st.integers(0, 4),
            st.text(),
            st.lists(st.integers(0, 9), max_size=3).map(tuple),
            st.lists(st.builds(TokenText, st.integers(0, 9), st.text()), max_size=2).map(tuple),
            st.none() | st.sampled_from(Finish),
        ),
        max_size=2,
    ).map(tuple),
    st.none() | st.builds(GenerationUsage, st.integers(0, 9), st.integers(0, 9)),
)
payloads = (
    st.none()
    | raws
    | generated
    | st.lists(tensors(st.sampled_from(DataType)), min_size=1, max_size=2).map(
        lambda found: Tensors(tuple(found))
    )
)
parts = st.lists(
    st.builds(
        lambda payload, parameters: Part(7, payload, None, False, parameters),
        payloads,
        st.dictionaries(st.text(), scalars, max_size=2),
    ),
    max_size=4,
)


def plain(payload):
    """What a payload says, in a form that can be compared."""
    if not isinstance(payload, Tensors):
        return payload
    return [(one.name, one.datatype, tuple(one.shape), bytes(binary.encode(one))) for one in payload.items]


@given(parts)
def test_what_was_written_is_read_again(written):
    found = read_parts(b"".join(write_parts(written, "f")), "f", 7)
    assert [(plain(part.payload), part.final, part.parameters, part.item) for part in found] == [
        (plain(part.payload), part.final, part.parameters, 7) for part in written
    ]


@pytest.mark.parametrize("left", [0, 4, 8, 20, -1])
def test_a_file_that_is_cut_short_is_refused(left):
    whole = b"".join(write_parts([Part(7, Tensors.of({"x": np.arange(9)}), None, False)], "f"))
    with pytest.raises(ValueError, match="kept parts"):
        read_parts(whole[:left], "f", 7)


def test_the_file_of_another_name_and_one_that_is_damaged_are_refused():
    whole = b"".join(write_parts([Part(7, Tensors.of({"x": np.arange(9)}), None, False)], "f"))
    for data, name in (
        (whole, "g"),
        *((whole[:at] + b"\xff" + whole[at + 1 :], "f") for at in range(len(whole))),
    ):
        with pytest.raises(ValueError, match="not what was written"):
            read_parts(data, name, 7)


@pytest.mark.parametrize(
    "rows",
    [
        [[{}, "4", False, {}]],
        [[{}, -1, False, {}]],
        [[{"raw": {}}, 0, False, {}]],
        [[{"generated": True}, 0, False, {}]],
        [[{"generated": True}, 2, False, {}]],
        [[{"tensors": [["x", "NONE", [1], 4]]}, 4, False, {}]],
        [[["x"], 0, False, {}]],
        [7],
        7,
        None,
    ],
)
def test_rows_that_nobody_writes_are_one_kind_of_error(rows):
    text = json.dumps({"parts": rows} if rows is not None else {}).encode()
    told = text + b"{}12"
    with pytest.raises(ValueError, match="kept parts"):
        read_parts(
            struct.pack("<LQ", zlib.crc32(told, zlib.crc32(b"%d f" % len(text))), len(text)) + told, "f", 7
        )
