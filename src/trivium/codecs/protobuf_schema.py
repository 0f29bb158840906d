"""Messages of protobuf as compact tables, and the classes that they become.

A line of a table reads `number type name`, with `repeated` or `oneof=NAME` in front where it holds (`oneof=_NAME` is an
optional field); `map<K,V>` is a map. Classes live in pools of their own, since client libraries register messages of
the same names in protobuf's default pool, and one process may hold both. Knows no message. Source: the proto3
language guide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
from google.protobuf.descriptor_pb2 import FileDescriptorProto as FileProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "float", "double"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `type` is a scalar's name, or the name of a message or an enum; for a map it is the
    value's type, and `map_key` the key's.
    """

    name: str
    number: int
    type: str
    repeated: bool = False
    oneof: str = ""
    map_key: str = ""

    @property
    def is_list(self) -> bool:
        """May it be given several times?"""
        return self.repeated or bool(self.map_key)

    @property
    def default(self) -> object:
        """Return what a scalar that is not given holds."""
        return {"string": "", "bool": False, "float": 0.0, "double": 0.0}.get(self.type, 0)


Fields = Mapping[str, Field]
Enums = Mapping[str, Mapping[str, int]]


def fields_in(table: str) -> Iterator[Field]:
    """The fields of one message's table."""
    for number, *marks, type_, name in (line.split() for line in table.splitlines() if line.strip()):
        map_key, _, value = type_.removeprefix("map<").removesuffix(">").rpartition(",")
        oneof = next((mark.removeprefix("oneof=") for mark in marks if mark.startswith("oneof=")), "")
        yield Field(name, int(number), value, "repeated" in marks, oneof, map_key)


def messages_in(tables: Mapping[str, str]) -> dict[str, Fields]:
    """The fields of every message, by the names of both."""
    return {message: {field.name: field for field in fields_in(table)} for message, table in tables.items()}


def _set_type(proto: FieldDescriptorProto, type_: str, package: str) -> None:
    """Scalars by their number, messages and enums by name: the pool finds out which of the two it is."""
    if type_ in SCALARS:
        proto.type = FieldDescriptorProto.Type.Value(f"TYPE_{type_.upper()}")
    else:
        proto.type_name = f".{package}.{type_}"


def _add_entry(message: DescriptorProto, path: str, field: Field, package: str) -> str:
    """A map is a repeated nested message of key and value; returns that message's name."""
    name = field.name.title().replace("_", "") + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, type_) in enumerate((("key", field.map_key), ("value", field.type)), start=1):
        _set_type(entry.field.add(name=part, number=number, label="LABEL_OPTIONAL"), type_, package)
    return f"{path}.{name}"


def _add_field(message: DescriptorProto, path: str, field: Field, package: str) -> None:
    label = FieldDescriptorProto.LABEL_REPEATED if field.is_list else FieldDescriptorProto.LABEL_OPTIONAL
    proto = message.field.add(name=field.name, number=field.number, label=label)
    type_ = _add_entry(message, path, field, package) if field.map_key else field.type
    _set_type(proto, type_, package)
    if field.oneof:
        names = [oneof.name for oneof in message.oneof_decl]
        if field.oneof not in names:
            message.oneof_decl.add(name=field.oneof)
            names.append(field.oneof)
        proto.oneof_index = names.index(field.oneof)
        proto.proto3_optional = field.oneof.startswith("_")  # what `optional` is made of


def _add_enum(enum: EnumDescriptorProto, path: str, values: Mapping[str, int]) -> None:
    enum.name = path.rpartition(".")[2]
    for name, number in values.items():
        enum.value.add(name=name, number=number)


def file_of(name: str, package: str, messages: Mapping[str, Fields], enums: Enums) -> FileProto:
    """A family of messages as one proto3 file; a dotted name nests a message in an earlier one."""
    file = FileProto(name=name, package=package, syntax="proto3")
    made: dict[str, DescriptorProto] = {}
    for path, fields in messages.items():
        outer, _, own = path.rpartition(".")
        message = made[outer].nested_type.add() if outer else file.message_type.add()
        message.name = own
        made[path] = message
        for field in fields.values():
            _add_field(message, path, field, package)
    for path, values in enums.items():
        outer = path.rpartition(".")[0]
        _add_enum(made[outer].enum_type.add() if outer else file.enum_type.add(), path, values)
    return file


def classes_of(package: str, tables: Mapping[str, str]) -> dict[str, type[Message]]:
    """The classes of a family of messages, by name, in a pool of their own."""
    pool, messages = DescriptorPool(), messages_in(tables)
    pool.AddSerializedFile(file_of(f"{package}.proto", package, messages, {}).SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}
