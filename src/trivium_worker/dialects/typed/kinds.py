"""Kinds of values that the hints of a typed handler stand for: read from JSON, written as JSON, and described.

Each kind is one node of a tree, `list[Label]` a list of records. It knows no hint and no tensor: `hints` makes kinds,
and `tensors` lays them out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

LEAST, MOST = -(2**63), 2**63 - 1
"""What an INT64 holds."""

MISSING, UNKNOWN = "missing", "a field that is not known"
_SHOWN = 80
_TEXT, _OBJECT, _LIST = "a text", "an object", "a list"
_CALLED = {str: _TEXT, int: "a whole number", float: "a number", bool: "true or false"}
_DATATYPES = {str: "BYTES", int: "INT64", float: "FP64", bool: "BOOL"}
_SCHEMAS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_EXAMPLES: Mapping[type, Any] = {str: "text", int: 0, float: 0.0, bool: True}


class Unfit(Exception):
    """A value is not what its hint says: where it stands, what was found, and what is expected."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{where}: {found}; expected {expected}")
        self.where = where
        self.found = found
        self.expected = expected


class Kind:
    """One node. `said` is how people call it; `datatype` that of its element, where it is one of a tensor's."""

    said = ""
    datatype = "BYTES"

    def read(self, value: Any, where: str) -> Any:
        """Return what user code gets for a value that came as JSON. Raises Unfit."""
        raise NotImplementedError

    def write(self, value: Any, where: str) -> Any:
        """Return a value of user code's as JSON has it. Raises Unfit."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema."""
        raise NotImplementedError

    def example(self) -> Any:
        """Return a value in JSON that it takes."""
        raise NotImplementedError

    def decode(self, element: Any, where: str) -> Any:
        """Return what user code gets for an element of a tensor, which came as bytes. Raises Unfit."""
        try:
            value = json.loads(element)
        except (ValueError, RecursionError) as error:
            raise Unfit(where, f"bytes that are no JSON ({error})", f"{self.said}, as JSON") from None
        return self.read(value, where)

    def encode(self, value: Any, where: str) -> Any:
        """Return a value of user code's as an element of a tensor. Raises Unfit."""
        return as_json(self.write(value, where), where)


class Plain(Kind):
    """A text, a whole number, a number, or a truth."""

    def __init__(self, type_: type) -> None:
        self.type = type_
        self.said = _CALLED[type_]
        self.datatype = _DATATYPES[type_]

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`. A whole number is a number, a truth is none."""
        if self.type is float and type(value) is int:
            try:
                return float(value)
            except OverflowError:
                raise Unfit(where, shown(value), "a number that a double holds") from None
        if type(value) is not self.type:
            raise Unfit(where, shown(value), self.said)
        if isinstance(value, int) and not LEAST <= value <= MOST:
            raise Unfit(where, shown(value), "a whole number of 64 bits")
        return value

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`. A number of numpy or PyTorch is as good as Python's."""
        if not isinstance(value, (str, int, float)) and callable(getattr(value, "item", None)):
            value = _item_of(value, where)
        if self.type is str and isinstance(value, str):
            return str(value)
        if self.type is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.read(float(value) if isinstance(value, float) else int(value), where)
        return self.read(value, where)

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {"type": _SCHEMAS[self.type]}

    def example(self) -> Any:
        """See `Kind`."""
        return _EXAMPLES[self.type]

    def decode(self, element: Any, where: str) -> Any:
        """See `Kind`: texts are UTF-8."""
        if self.type is not str:
            return element
        try:
            return bytes(element).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unfit(where, f"bytes that are no UTF-8 ({error.reason})", self.said) from None

    def encode(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        written = self.write(value, where)
        return written.encode("utf-8", "surrogatepass") if self.type is str else written


class Chosen(Plain):
    """One of some texts, or of some whole numbers."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__(type(values[0]))
        self.values = list(values)
        self.said = f"one of {', '.join(map(repr, values))}"

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        if type(value) is not self.type or value not in self.values:
            raise Unfit(where, shown(value), self.said)
        return value

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        return self.read(super().write(value, where), where)

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {**super().schema(), "enum": self.values}

    def example(self) -> Any:
        """See `Kind`."""
        return self.values[0]

    def decode(self, element: Any, where: str) -> Any:
        """See `Kind`."""
        return self.read(super().decode(element, where), where)


class Body(Kind):
    """Bytes as they are: a picture, a sound, a file."""

    said = "bytes"

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`: JSON holds no bytes."""
        hint = (
            "bytes, which JSON cannot hold: send them as the body, as a file of a form, or as a BYTES tensor"
        )
        raise Unfit(where, shown(value), hint)

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`: JSON holds no bytes."""
        raise Unfit(where, shown(value), "a value that JSON can hold")

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {"type": "string", "format": "binary"}

    def example(self) -> Any:
        """See `Kind`."""
        return "text"

    def decode(self, element: Any, where: str) -> Any:
        """See `Kind`."""
        return bytes(element)

    def encode(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise Unfit(where, shown(value), self.said)
        return bytes(value)


class Many(Kind):
    """A list."""

    def __init__(self, of: Kind) -> None:
        self.of = of
        self.said = f"a list of {of.said.removeprefix('a ').removeprefix('an ')}" if of.said else _LIST

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        if not isinstance(value, list):
            raise Unfit(where, shown(value), self.said)
        return [self.of.read(one, f"{where}[{at}]") for at, one in enumerate(value)]

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`. An array is as good as a list."""
        return [
            self.of.write(one, f"{where}[{at}]") for at, one in enumerate(listed(value, where, self.said))
        ]

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {"type": "array", "items": self.of.schema()}

    def example(self) -> Any:
        """See `Kind`."""
        return [self.of.example()]


class RecordField:
    """A field of a record."""

    def __init__(self, kind: Kind, is_required: bool) -> None:
        self.kind = kind
        self.is_required = is_required


class Record(Kind):
    """A dataclass, or a TypedDict: `make` makes one of its fields by name, which `fields` has."""

    said = _OBJECT

    def __init__(self, name: str, make: Any, fields: Mapping[str, RecordField]) -> None:
        self.name = name
        self.make = make
        self.fields = fields
        self.said = f"an object with {', '.join(fields) or 'no fields'}"

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`. What the class itself raises is its refusal of the values."""
        if not isinstance(value, dict):
            raise Unfit(where, shown(value), self.said)
        for name in value:
            if name not in self.fields:
                raise Unfit(f"{where}.{name}"[:_SHOWN], UNKNOWN, self.said)
        found = {}
        for name, field in self.fields.items():
            if name in value:
                found[name] = field.kind.read(value[name], f"{where}.{name}")
            elif field.is_required:
                raise Unfit(f"{where}.{name}", MISSING, field.kind.said)
        try:
            return self.make(**found)
        except (TypeError, ValueError) as error:
            raise Unfit(where, f"fields that {self.name} refuses ({error})", self.said) from None

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`. A dictionary is as good as the class."""
        return {
            name: field.kind.write(one, f"{where}.{name}") for name, field, one in self.parts(value, where)
        }

    def parts(self, value: Any, where: str) -> list[tuple[str, RecordField, Any]]:
        """Return the fields that a value of user code's has, in order. Raises Unfit for a missing one, or another."""
        is_mapping = isinstance(value, Mapping)
        if not is_mapping and not (isinstance(self.make, type) and isinstance(value, self.make)):
            raise Unfit(where, shown(value), f"{self.name}, {self.said}")
        there = (
            value
            if is_mapping
            else vars(value)
            if hasattr(value, "__dict__")
            else _slots_of(value, self.fields)
        )
        if (
            is_mapping
            and (odd := next((str(name) for name in there if name not in self.fields), None)) is not None
        ):
            raise Unfit(f"{where}.{odd}"[:_SHOWN], UNKNOWN, f"{self.name}, {self.said}")
        found = []
        for name, field in self.fields.items():
            if name in there:
                found.append((name, field, there[name]))
            elif field.is_required or not is_mapping:
                raise Unfit(f"{where}.{name}", MISSING, field.kind.said)
        return found

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return object_schema(
            {name: (field.kind, field.is_required) for name, field in self.fields.items()}, self.name
        )

    def example(self) -> Any:
        """See `Kind`."""
        return {name: field.kind.example() for name, field in self.fields.items() if field.is_required}


class Named(Kind):
    """An object whose names are free, and whose values are alike."""

    def __init__(self, of: Kind) -> None:
        self.of = of
        self.said = _OBJECT

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        if not isinstance(value, dict):
            raise Unfit(where, shown(value), self.said)
        return {name: self.of.read(one, f"{where}.{name}") for name, one in value.items()}

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        if not isinstance(value, Mapping) or any(not isinstance(name, str) for name in value):
            raise Unfit(where, shown(value), "a dictionary with texts as its names")
        return {name: self.of.write(one, f"{where}.{name}") for name, one in value.items()}

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {"type": "object", "additionalProperties": self.of.schema()}

    def example(self) -> Any:
        """See `Kind`."""
        return {"name": self.of.example()}


class Nullable(Kind):
    """A value, or null."""

    def __init__(self, of: Kind) -> None:
        self.of = of
        self.said = f"{of.said}, or null"

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        return None if value is None else self.of.read(value, where)

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        return None if value is None else self.of.write(value, where)

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {"anyOf": [self.of.schema(), {"type": "null"}]}

    def example(self) -> Any:
        """See `Kind`."""
        return self.of.example()


class Whatever(Kind):
    """Any JSON."""

    said = "any JSON"

    def read(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        return value

    def write(self, value: Any, where: str) -> Any:
        """See `Kind`."""
        as_json(value, where)
        return value

    def schema(self) -> dict[str, Any]:
        """See `Kind`."""
        return {}

    def example(self) -> Any:
        """See `Kind`."""
        return None


def object_schema(fields: Mapping[str, tuple[Kind, bool]], title: str = "") -> dict[str, Any]:
    """Return the JSON schema of an object with these fields, each with whether it is required."""
    schema: dict[str, Any] = {"title": title} if title else {}
    schema |= {"type": "object", "properties": {name: kind.schema() for name, (kind, _) in fields.items()}}
    required = [name for name, (_, is_required) in fields.items() if is_required]
    return {**schema, **({"required": required} if required else {}), "additionalProperties": False}


def as_json(value: Any, where: str) -> bytes:
    """Return a value as the bytes of JSON. Raises Unfit for one that JSON does not hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise Unfit(
            where, f"a value that JSON does not hold ({error})", "numbers, texts, lists and objects"
        ) from None


def listed(value: Any, where: str, expected: str) -> Sequence[Any]:
    """Return what user code gave for a list: a list, a tuple, or an array. Raises Unfit."""
    if isinstance(value, (list, tuple)):
        return value
    if not isinstance(value, (str, bytes, Mapping)) and callable(getattr(value, "tolist", None)):
        found = value.tolist()
        if isinstance(found, list):
            return found
    raise Unfit(where, shown(value), expected)


def shown(value: Any) -> str:
    """Return a value as an error names it: its kind, and its beginning."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        names = ", ".join(map(str, list(value)[:8]))
        return f"an object with {names}"[:_SHOWN] if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    kind = next(
        (said for type_, said in _CALLED.items() if type(value) is type_), f"a {type(value).__name__}"
    )
    try:
        text = repr(value)
    except Exception:  # user code's own
        return kind
    return f"{kind}, {text[:_SHOWN]}" if len(text) <= _SHOWN else f"{kind}, {text[: _SHOWN - 3]}..."


def _item_of(value: Any, where: str) -> Any:
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError) as error:
        raise Unfit(where, f"a {type(value).__name__} ({error})", "one value") from None


def _slots_of(value: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in fields if hasattr(value, name)}
