"""What a parameter file says without MXNet, in all its forms; and damaged ones, which end in words."""

import random
import struct

import numpy as np
import pytest
from tests.harness.mxnet_files import V1, V2, V3, array, file, oldest, params, weights

from trivium.engines.mxnet.params_file import ParamsArray, ParamsFault, read_params, total_bytes

ONE = np.ones((2, 3), "<f4")


@pytest.mark.parametrize("version", [V1, V2, V3])
@pytest.mark.parametrize("datatype", ["<f4", "<f8", "<f2", "|u1", "<i4", "|i1", "<i8"])
def test_names_shapes_and_datatypes(version, datatype):
    values = np.ones((4, 1, 2), datatype)
    found = read_params(file([array(values, version), array(ONE, version)], ["arg:w", "aux:mean"]))
    assert {name: one.shape for name, one in found.items()} == {"w": (4, 1, 2), "mean": (2, 3)}
    assert total_bytes(list(found.values())) == values.nbytes + ONE.nbytes


def test_the_oldest_form_and_names_without_a_kind():
    assert read_params(file([oldest(ONE)], ["w"])) == {"w": ParamsArray((2, 3), 0)}


def test_an_array_of_nothing_and_one_number():
    nothing = struct.pack("<Iii", V2, 0, 0)
    scalar = array(np.array(5, "<f4"), V3)
    found = read_params(file([nothing, scalar, array(np.ones((0, 3), "<f4"))], ["arg:a", "arg:b", "arg:c"]))
    assert [one.shape for one in found.values()] == [(), (), (0, 3)]


GOOD = weights()
HUGE = struct.pack("<Iiiqq2ii", V2, 0, 2, 2**40, 2**40, 1, 0, 0)
DAMAGED = {
    "empty": b"",
    "cut in its head": GOOD[:20],
    "cut in an array": GOOD[:60],
    "cut in the names": GOOD[:-1],
    "zeros": bytes(len(GOOD)),
    "another mark": b"\x13" + GOOD[1:],
    "more behind its end": GOOD + b"\0",
    "many arrays": GOOD[:16] + struct.pack("<Q", 2**63) + GOOD[24:],
    "many names": file([array(ONE)], []).replace(struct.pack("<Q", 0), struct.pack("<Q", 2**62)),
    "a name too few": file([array(ONE), array(ONE)], ["arg:a"]),
    "one name twice": file([array(ONE), array(ONE)], ["arg:a", "aux:a"]),
    "an array larger than the file": file([HUGE], ["arg:a"]),
    "a negative size": file([struct.pack("<Iiiq2ii", V2, 0, 1, -4, 1, 0, 0)], ["arg:a"]),
    "negative dims": file([struct.pack("<Iii", V2, 0, -3)], ["arg:a"]),
    "many dims": file([struct.pack("<Iii", V2, 0, 2**30)], ["arg:a"]),
    "a datatype that is none": file([array(ONE)[:-28] + struct.pack("<i", 99) + ONE.tobytes()], ["arg:a"]),
    "sparse": file([struct.pack("<Ii", V2, 1) + array(ONE)[8:]], ["arg:a"]),
    "a name that is no text": GOOD[:-1] + b"\xff",
    "DJL's own": b"DJL@" + bytes(100),
    "JSON": b'{"nodes": [], "heads": []} ' * 3,
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_refused_in_words(kind):
    with pytest.raises(ParamsFault) as caught:
        read_params(DAMAGED[kind])
    assert str(caught.value)


def test_flipped_bytes_end_in_words_or_change_values_alone():
    draws = random.Random(7)
    for _ in range(2000):
        data = bytearray(GOOD)
        for _ in range(draws.randint(1, 4)):
            data[draws.randrange(len(data))] = draws.randrange(256)
        try:
            found = read_params(bytes(data))
        except ParamsFault:
            continue
        assert total_bytes(list(found.values())) < len(data)


def test_a_file_of_many_small_arrays_is_read():
    found = read_params(params(**{f"p{at}": np.ones(1, "<f4") for at in range(2000)}))
    assert len(found) == 2000
