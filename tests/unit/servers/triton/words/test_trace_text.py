"""Trace files as Triton writes them: the records, their names and their order."""

import json

import numpy as np
import pytest

from trivium.servers.triton.words.trace_text import text
from trivium.types.datatype import DataType
from trivium.types.payload import Tensor
from trivium.types.tracing import Moment, RequestOrigin, Trace


def records(*requests):
    return json.loads(b"[" + text(requests) + b"]")


def trace(**fields):
    fields = {"id": 1, "parent": 0, "model": "m", "version": "1", "request_id": ""} | fields
    return Trace(**fields)


ALL = [(moment, float(i)) for i, moment in enumerate(Moment)]


@pytest.mark.parametrize(
    ("wire", "names"),
    [
        ("HTTP", ["HTTP_RECV_START", "HTTP_RECV_END"]),
        ("GRPC", ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"]),
    ],
)
def test_all_moments_in_order(wire, names):
    origin = RequestOrigin(wire, 0.0, 0.0)
    found = records([trace(request_id="r", origin=origin, moments=ALL[::-1])])
    assert found[2] == {"id": 1, "model_name": "m", "model_version": 1, "request_id": "r"}
    stamps = [one for one in found if "timestamps" in one]
    assert all(one["id"] == 1 and len(one["timestamps"]) == 1 for one in stamps)
    assert [(one["timestamps"][0]["name"], one["timestamps"][0]["ns"]) for one in stamps] == [
        (name, i * 10**9)
        for i, name in enumerate(
            [
                *names,
                "REQUEST_START",
                "QUEUE_START",
                "COMPUTE_START",
                "COMPUTE_INPUT_END",
                "FIRST_TOKEN",
                "LAST_TOKEN",
                "COMPUTE_OUTPUT_START",
                "COMPUTE_END",
                "INFER_RESPONSE_COMPLETE",
                "REQUEST_END",
                f"{wire}_SEND_START",
                f"{wire}_SEND_END",
            ]
        )
    ]


def test_one_within_another_has_no_wire_and_names_its_parent():
    inner = trace(
        id=2, parent=1, moments=[(Moment.STARTED, 0.0), (Moment.ANSWERED, 1.0), (Moment.ENDED, 2.0)]
    )
    found = records([trace(moments=[(Moment.STARTED, 0.0)]), inner], [trace(id=3, version="new")])
    assert [one for one in found if "model_name" in one] == [
        {"id": 1, "model_name": "m", "model_version": 1},
        {"id": 2, "model_name": "m", "model_version": 1, "parent_id": 1},
        {"id": 3, "model_name": "m", "model_version": "new"},
    ]
    names = [stamp["name"] for one in found if one["id"] == 2 for stamp in one.get("timestamps", ())]
    assert names == ["REQUEST_START", "REQUEST_END"]


def test_nanoseconds_are_exact_after_a_year_of_uptime():
    (_, stamp) = records([trace(moments=[(Moment.STARTED, 31_536_000.000001)])])
    assert abs(stamp["timestamps"][0]["ns"] - 31_536_000_000_001_000) < 10


@pytest.mark.parametrize(
    ("datatype", "values", "data"),
    [
        (DataType.FP32, [0.1, 2.0, 1e10], "0.1,2,1e+10"),
        (DataType.FP64, [0.25], "0.25"),
        (DataType.INT64, [-1, 2**62], f"-1,{2**62}"),
        (DataType.UINT8, [0, 255], "0,255"),
        (DataType.BOOL, [True, False], "1,0"),
        (DataType.BYTES, [b"a", b'"\xff'], '"a",""\ufffd"'),
        (DataType.FP16, [1.0], ""),
    ],
)
def test_elements(datatype, values, data):
    array = np.array(values, datatype.dtype)
    tensor = Tensor("t", datatype, array.shape, array)
    (_, given, answered) = records([trace(inputs=(tensor,), outputs=(tensor,))])
    assert given == {
        "id": 1,
        "activity": "TENSOR_QUEUE_INPUT",
        "tensor": {"name": "t", "data": data, "shape": str(len(values)), "dtype": datatype.wire},
    }
    assert answered == given | {"activity": "TENSOR_BACKEND_OUTPUT"}


def test_a_matrix():
    array = np.arange(4, dtype="<i4").reshape(2, 2)
    told = records([trace(inputs=(Tensor("t", DataType.INT32, (2, 2), array),))])[1]["tensor"]
    assert (told["data"], told["shape"]) == ("0,1,2,3", "2,2")
