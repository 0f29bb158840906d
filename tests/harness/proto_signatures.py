"""Reads the fields and enums of a protobuf message in a form in which two descriptions can be compared."""

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto


def signatures(proto: DescriptorProto, path: str = "") -> Iterator[tuple[str, tuple[object, ...]]]:
    name = f"{path}{proto.name}"
    for field in proto.field:
        oneof = proto.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
        yield f"{name}.{field.name}", (field.number, field.type, field.label, field.type_name, oneof)
    for enum in proto.enum_type:
        yield f"{name}.{enum.name}", tuple((value.name, value.number) for value in enum.value)
    for nested in proto.nested_type:
        yield from signatures(nested, f"{name}.")
