"""The messages of the gRPC service against those that NVIDIA's own client carries, in the same process."""

from typing import Any

import pytest
import tritonclient.grpc as triton
from google.protobuf.descriptor_pb2 import DescriptorProto
from tests.harness.proto_signatures import signatures

from trivium.types.errors import Code, ServeError
from trivium.wires.v2.service_messages import new, parse, parse_infer_request
from trivium.wires.v2.service_schema import HEALTH, SERVICE

THEIRS = triton.service_pb2.DESCRIPTOR.message_types_by_name


def family(descriptor: Any) -> dict[str, tuple[object, ...]]:
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    return dict(signatures(proto))


@pytest.mark.parametrize("name", [name for name in SERVICE if "." not in name])
def test_every_field_of_theirs_is_ours(name: str) -> None:
    assert family(new(name).DESCRIPTOR) == family(THEIRS[name])


def test_nothing_of_theirs_lacks() -> None:
    assert set(THEIRS) == {name for name in SERVICE if "." not in name}


def test_both_work_in_one_process() -> None:
    """They register the same names: ours in a pool of their own."""
    theirs = triton.service_pb2.ModelInferRequest(model_name="m", id="1", raw_input_contents=[b"\x00"])
    theirs.inputs.add(name="x", datatype="UINT8", shape=[1])
    theirs.parameters["priority"].uint64_param = 2
    ours = parse_infer_request(theirs.SerializeToString())
    assert type(ours) is not type(theirs)
    assert ours.DESCRIPTOR.file.pool is not theirs.DESCRIPTOR.file.pool
    assert str(ours) == str(theirs)
    assert triton.service_pb2.ModelInferRequest.FromString(ours.SerializeToString()) == theirs


def test_health() -> None:
    assert new("HealthCheckResponse", status=1).SerializeToString() == b"\x08\x01"
    assert str(parse("HealthCheckRequest", b"\x0a\x02ab")) == 'service: "ab"\n'
    assert set(HEALTH) == {"HealthCheckRequest", "HealthCheckResponse"}


def test_bytes_that_are_no_message() -> None:
    with pytest.raises(ServeError, match="no message ModelInferRequest") as caught:
        parse_infer_request(b"\xff\xff")
    assert caught.value.code is Code.INVALID
