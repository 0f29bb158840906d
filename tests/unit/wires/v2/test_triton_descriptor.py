"""The message family against the one that NVIDIA's own client carries, in the same process."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.harness.proto_signatures import signatures

from trivium.servers.triton.words.keys import ROWS
from trivium.settings.setting import Support
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.schema import MESSAGES, Field

NEWER = {"ModelConfig.model_metrics", "ModelEnsembling.max_inflight_requests"}
"""Fields of releases after 2.51, the client's."""


def family(file: FileDescriptorProto) -> dict[str, tuple[object, ...]]:
    return {name: each for message in file.message_type for name, each in signatures(message)}


@pytest.fixture(scope="module")
def theirs() -> FileDescriptorProto:
    package = importlib.util.find_spec("tritonclient")
    assert package is not None
    assert package.submodule_search_locations is not None
    path = Path(next(iter(package.submodule_search_locations)), "grpc", "model_config_pb2.py")
    spec = importlib.util.spec_from_file_location("their_model_config_pb2", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    file = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


def our_file() -> FileDescriptorProto:
    file = FileDescriptorProto()
    new_config().DESCRIPTOR.file.CopyToProto(file)
    return file


def test_every_field_and_enum_of_theirs_is_ours(theirs: FileDescriptorProto) -> None:
    ours = family(our_file())
    missing = {name: each for name, each in family(theirs).items() if ours.get(name) != each}
    assert missing == {}
    assert our_file().enum_type[0] == theirs.enum_type[0]


def test_what_only_we_have_is_newer(theirs: FileDescriptorProto) -> None:
    only = {name for name in family(our_file()).keys() - family(theirs).keys() if "Metrics" not in name}
    assert only == NEWER


def test_fields_are_declared_in_the_order_of_theirs(theirs: FileDescriptorProto) -> None:
    known = family(theirs)
    for message in {name.rpartition(".")[0] for name in known}:
        ours = [name for name in family(our_file()) if name in known and name.rpartition(".")[0] == message]
        assert ours == [name for name in known if name.rpartition(".")[0] == message]


def needs_row(field: Field) -> Iterator[str]:
    if field.type in MESSAGES:
        yield field.type


def test_every_field_that_can_be_reached_has_a_row() -> None:
    """Below a reported or refused block nothing needs one."""
    missing, seen, waiting = [], set(), ["ModelConfig"]
    while waiting:
        message = waiting.pop()
        if message in seen:
            continue
        seen.add(message)
        for field in MESSAGES[message].values():
            row = ROWS.get(f"{message}.{field.name}")
            if row is None:
                missing.append(f"{message}.{field.name}")
            elif row.support in (Support.YES, Support.PARTLY, Support.PASSED_ON):
                waiting += needs_row(field)
    assert missing == []


def test_every_row_is_of_a_field() -> None:
    assert [row for row in ROWS if row.rpartition(".")[2] not in MESSAGES[row.rpartition(".")[0]]] == []
