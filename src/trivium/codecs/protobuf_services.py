"""Makes descriptors of gRPC services: what a program needs to call them without their `.proto` files.

A type is one of the file's own package, or begins with a dot and a package. Pure. Source: descriptor.proto of protobuf.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from google.protobuf import any_pb2, empty_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.descriptor_pb2 import FileDescriptorProto as FileProto

from trivium.codecs.protobuf_schema import file_of, messages_in

EMPTY = ".google.protobuf.Empty"
STATUS = ".google.rpc.Status"


class Rpc(NamedTuple):
    """One RPC: the messages that are asked and answered with, and which of them are streams."""

    request: str
    answer: str
    asks_many: bool = False
    answers_many: bool = False


def with_service(file: FileProto, name: str, rpcs: Mapping[str, Rpc]) -> FileProto:
    """Add a service to a file, and return that."""
    service = file.service.add(name=name)
    for method, rpc in rpcs.items():
        service.method.add(
            name=method,
            input_type=_named(rpc.request, file.package),
            output_type=_named(rpc.answer, file.package),
            client_streaming=rpc.asks_many,
            server_streaming=rpc.answers_many,
        )
    return file


def _named(type_: str, package: str) -> str:
    return type_ if type_.startswith(".") else f".{package}.{type_}"


def messages_file(
    name: str, package: str, tables: Mapping[str, str], elsewhere: Mapping[str, str] = {}
) -> FileProto:
    """Return the file of a family of messages, without those that are `elsewhere`: name -> absolute type."""
    file = file_of(name, package, messages_in(tables), {})
    kept = [message for message in file.message_type if message.name not in elsewhere]
    del file.message_type[:]
    file.message_type.extend(kept)
    types = {f".{package}.{local}": other for local, other in elsewhere.items() if other}
    for message in file.message_type:
        _retype(message, types)
    return file


def _retype(message: DescriptorProto, types: Mapping[str, str]) -> None:
    """Give the fields of a message, and of those in it, other types."""
    for field in message.field:
        if field.type_name in types:
            field.type_name = types[field.type_name]
    for inner in message.nested_type:
        _retype(inner, types)


def depending(file: FileProto, *names: str) -> FileProto:
    """Add the files that a file imports, and return it."""
    file.dependency.extend(names)
    return file


EMPTY_FILE: str = empty_pb2.DESCRIPTOR.name
STATUS_FILE = "google/rpc/status.proto"


def known_files() -> Sequence[bytes]:
    """Return the files of Google's that these services import: Any, Empty and Status."""
    status = messages_file(
        STATUS_FILE,
        "google.rpc",
        {"Status": "1 int32 code\n2 string message\n3 repeated Any details", "Any": ""},
        {"Any": ".google.protobuf.Any"},
    )
    depending(status, any_pb2.DESCRIPTOR.name)
    return (any_pb2.DESCRIPTOR.serialized_pb, empty_pb2.DESCRIPTOR.serialized_pb, status.SerializeToString())


def renamed(files: Iterable[bytes], package: str, other: str, folder: str) -> Sequence[bytes]:
    """Return files of one package as those of another, in a folder of their own; files of other packages are left
    out.
    """
    found = []
    read = [FileProto.FromString(data) for data in files]
    names = {file.name: f"{folder}/{file.name}" for file in read if file.package == package}
    for file in read:
        if file.name not in names:
            continue
        file.name, file.package = names[file.name], other
        imports = [names.get(each, each) for each in file.dependency]
        del file.dependency[:]
        file.dependency.extend(imports)
        before, after = f".{package}.", f".{other}."
        for message in file.message_type:
            _move(message, before, after)
        for service in file.service:
            for method in service.method:
                method.input_type = _moved(method.input_type, before, after)
                method.output_type = _moved(method.output_type, before, after)
        found.append(file.SerializeToString())
    return found


def _move(message: DescriptorProto, before: str, after: str) -> None:
    for field in message.field:
        if field.type_name:
            field.type_name = _moved(field.type_name, before, after)
    for inner in message.nested_type:
        _move(inner, before, after)


def _moved(name: str, before: str, after: str) -> str:
    return after + name.removeprefix(before) if name.startswith(before) else name
