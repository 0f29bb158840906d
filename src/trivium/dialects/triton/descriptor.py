"""ModelConfigMessage as a protobuf message class, built from the tables of `schema` in a private pool.

The pool is private because tritonclient registers messages of the same names in protobuf's default pool, and
one process may hold both. Knows the library; must not know what any key means.
"""

from collections.abc import Mapping
from typing import cast

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
from google.protobuf.descriptor_pb2 import FileDescriptorProto as FileProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from trivium.dialects.triton.model_config import ModelConfigMessage
from trivium.dialects.triton.schema import ENUMS, MESSAGES, SCALARS, Field, Fields

_PACKAGE = "inference"
CONFIG_FILE = "trivium/model_config.proto"

Enums = Mapping[str, Mapping[str, int]]


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


POOL = DescriptorPool()
POOL.AddSerializedFile(file_of(CONFIG_FILE, _PACKAGE, MESSAGES, ENUMS).SerializeToString())
_CLASS = GetMessageClass(POOL.FindMessageTypeByName(f"{_PACKAGE}.ModelConfig"))


def new_config() -> ModelConfigMessage:
    """An empty `inference.ModelConfigMessage`."""
    return cast(ModelConfigMessage, _CLASS())
