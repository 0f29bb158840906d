"""Reads the hints of a handler's `predict` into kinds, once, while the model loads.

What no kind stands for is refused with the file and the line that it is written in.
"""

import ast
import collections.abc
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union

from trivium_worker.dialects.typed.kinds import (
    Body,
    Chosen,
    Kind,
    Many,
    Named,
    Nullable,
    Plain,
    Record,
    RecordField,
    Whatever,
)
from trivium_worker.dialects.typed.tensors import DATATYPES, Array
from trivium_worker.wire.values import Failure

MARK = "TensorMark"
"""The class of what `trivium_handler.tensor` makes, whose module may have been imported under a name of its own."""

STREAMS = (
    *(collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator),
    *(collections.abc.AsyncIterator, collections.abc.AsyncIterable, collections.abc.AsyncGenerator),
)
_PLAIN = (str, int, float, bool)
_WAYS = (
    "str, int, float, bool, bytes, list[...] of those, a dataclass, a TypedDict, dict[str, ...], or "
    'Annotated[np.ndarray, tensor("FP32", [-1, 3])]'
)
_INSTEAD = {
    "ndarray": 'Annotated[np.ndarray, tensor("FP32", [-1, 3])], which says what it holds',
    "Tensor": 'Annotated[np.ndarray, tensor("FP32", [-1, 3])], and make a tensor of PyTorch of it by torch.from_numpy',
    "Image": "bytes, and open the picture by Image.open(io.BytesIO(...))",
    "Path": "bytes, and open them by io.BytesIO(...): a client sends a file, and no path of this machine",
    "list": "list[str], or of whatever it holds",
    "List": "list[str], or of whatever it holds",
    "dict": "dict[str, float], or a dataclass or TypedDict that names its fields",
    "Dict": "dict[str, float], or a dataclass or TypedDict that names its fields",
    "tuple": "a dataclass or TypedDict, whose fields have names",
    "DataFrame": "a list of dataclasses, one for each row",
    "BaseModel": "a dataclass with the same fields",
}


class Place:
    """A place where a hint is written: a function's parameter, its return, or a field of a class."""

    def __init__(self, owner: Any, name: str, said: str) -> None:
        self.owner = owner
        self.name = name
        self.said = said

    def fail(self, found: str, expected: str = _WAYS) -> Failure:
        """Return the refusal of what is written here."""
        file, line = _written(self.owner, self.name)
        return Failure(f"{file}, line {line}: {self.said} {found}. Write {expected}.", "load failed")


def hints_of(owner: Any, said: str) -> dict[str, Any]:
    """Return the hints of a function or a class, as types. Failure for one that names nothing."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except Exception as error:
        text = f"has a hint that cannot be read ({type(error).__name__}: {error})"
        raise Place(owner, "", said).fail(
            text, "the names of types that the file imports or defines"
        ) from None


def kind_of(hint: Any, place: Place, within: "tuple[type, ...] | None" = None) -> Kind:
    """Return the kind of a hint; `within` are the records around it, None where it is no part of one. Failure."""
    if within is not None and hint is Any:
        return Whatever()
    if isinstance(hint, type) and not typing.get_args(hint):
        return _kind_of_class(hint, place, within)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        mark = next((one for one in arguments[1:] if type(one).__name__ == MARK), None)
        return _array(mark, place) if mark is not None else kind_of(arguments[0], place, within)
    if origin is list and len(arguments) == 1:
        return Many(_element(kind_of(arguments[0], place, within), place))
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return Named(_element(kind_of(arguments[1], place, within or ()), place))
    if origin is Literal and _are_alike(arguments):
        return Chosen(arguments)
    if origin in (Union, types.UnionType) and type(None) in arguments and len(arguments) == 2:
        inner = kind_of(next(one for one in arguments if one is not type(None)), place, within)
        if within is not None:
            return Nullable(inner)
        raise place.fail(f"has the hint {_text(hint)}, and may only be left out", "a default, like = None")
    raise _unknown(hint, origin, place)


def optional_hint(hint: Any) -> Any:
    """Return the hint of a parameter whose default is None, without that."""
    arguments = typing.get_args(hint)
    if (
        typing.get_origin(hint) in (Union, types.UnionType)
        and type(None) in arguments
        and len(arguments) == 2
    ):
        return next(one for one in arguments if one is not type(None))
    return hint


def _kind_of_class(hint: Any, place: Place, within: "tuple[type, ...] | None") -> Kind:
    if hint in _PLAIN:
        return Plain(hint)
    if hint is bytes:
        return Body()
    if dataclasses.is_dataclass(hint):
        return _record(hint, place, within, dict(_dataclass_fields(hint)))
    if typing.is_typeddict(hint):
        required: Any = hint.__required_keys__
        fields = {name: name in required for name in typing.get_type_hints(hint)}
        return _record(hint, place, within, fields)
    raise _unknown(hint, None, place)


def _record(hint: Any, place: Place, within: "tuple[type, ...] | None", fields: dict[str, bool]) -> Record:
    around = within or ()
    if hint in around:
        raise place.fail(f"refers to itself by {hint.__name__}", "records that end, or dict[str, ...]")
    found = {}
    hints = hints_of(hint, f"the class {hint.__name__}")
    for name, is_required in fields.items():
        where = Place(hint, name, f"the field {name} of {hint.__name__}")
        found[name] = RecordField(kind_of(_bare(hints[name]), where, (*around, hint)), is_required)
    return Record(hint.__name__, hint, found)


def _dataclass_fields(hint: Any) -> Iterator[tuple[str, bool]]:
    for field in dataclasses.fields(hint):
        if field.init:
            missing = dataclasses.MISSING
            yield field.name, field.default is missing and field.default_factory is missing


def _bare(hint: Any) -> Any:
    """Return the hint of a TypedDict's field without Required, NotRequired and ReadOnly, which go by their names."""
    origin = typing.get_origin(hint)
    if getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly"):
        return _bare(typing.get_args(hint)[0])
    return hint


def _element(kind: Kind, place: Place) -> Kind:
    if isinstance(kind, Array):
        raise place.fail("has an array inside of a list or a dictionary", "an array with one more dimension")
    return kind


def _array(mark: Any, place: Place) -> Array:
    if mark.datatype not in DATATYPES:
        raise place.fail(f"has a tensor of the datatype {mark.datatype!r}", f"one of {', '.join(DATATYPES)}")
    return Array(mark.datatype, mark.dims)


def _are_alike(values: "tuple[Any, ...]") -> bool:
    return type(values[0]) in (str, int) and all(type(one) is type(values[0]) for one in values)


def _unknown(hint: Any, origin: Any, place: Place) -> Failure:
    known = origin if isinstance(origin, type) else hint
    names = [one.__name__ for one in getattr(known, "__mro__", ())] or [_text(hint)]
    instead = next((_INSTEAD[name] for name in names if name in _INSTEAD), _WAYS)
    return place.fail(f"has the hint {_text(hint)}, which no value of a request stands for", instead)


def _text(hint: Any) -> str:
    return (
        hint.__name__
        if isinstance(hint, type) and not typing.get_args(hint)
        else str(hint).replace("typing.", "")
    )


def _written(owner: Any, name: str) -> tuple[str, int]:
    """Return file and line of what is written of a function or a class: its parameter or field of this name, its return
    for the name "return"; else its first line.
    """
    owner = inspect.unwrap(owner) if callable(owner) and not isinstance(owner, type) else owner
    try:
        file = inspect.getsourcefile(owner) or inspect.getfile(owner)
        lines, first = inspect.getsourcelines(owner)
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return getattr(owner, "__qualname__", "the handler"), 0
    found = next((one for one in _named(node, name)), node)
    return file, (getattr(found, "lineno", 1) + max(first, 1) - 1)


def _named(node: ast.AST, name: str) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        every = node.args
        if name == "return" and node.returns is not None:
            yield node.returns
        arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
        yield from (one for one in arguments if one is not None and one.arg == name)
    elif isinstance(node, ast.ClassDef):
        for line in node.body:
            if (
                isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and line.target.id == name
            ):
                yield line


Function = Callable[..., Any]
