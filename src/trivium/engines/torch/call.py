"""Makes the arguments of `forward` from named inputs, and named outputs from what it returns.

Source: sheet `triton`, section 2.4, step C: by the names of the arguments, by the index in names like `INPUT__0`,
else in the order given; a single argument that is a dictionary takes them by name. Pure rules on names and on what
a schema says; knows no tensor library.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_INDEXED = re.compile(r".*__(\d{1,4})")
_OPTIONAL = "Optional[Tensor]"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of `forward`, without `self`; its type as TorchScript writes it."""

    name: str
    type: str
    has_default: bool

    @property
    def takes_tensor(self) -> bool:
        """Is it a tensor, where it is given?"""
        return self.type in ("Tensor", _OPTIONAL)

    @property
    def may_lack(self) -> bool:
        """May it be left out, or be None?"""
        return self.has_default or self.type == _OPTIONAL


Arrange = Callable[[Mapping[str, Any]], tuple[list[Any], dict[str, Any]]]
"""Arguments by position and by name, of inputs by name."""


def arguments_of(module: Any) -> tuple[Argument, ...]:
    """Describes what `forward` of a module takes."""
    found = module.forward.schema.arguments[1:]
    return tuple(Argument(one.name, str(one.type), one.has_default_value()) for one in found)


def arrange(arguments: Sequence[Argument], names: Sequence[str]) -> Arrange:
    """Return how inputs of these names, in this order, are handed over. ValueError says why they cannot be."""
    if len(arguments) == 1 and arguments[0].type == "Dict[str, Tensor]":
        return lambda inputs: ([{name: inputs[name] for name in names}], {})
    strange = [one for one in arguments if not one.takes_tensor and not one.has_default]
    if len(arguments) == 1 and arguments[0].type == "List[Tensor]":
        order = _order(names)
        return lambda inputs: ([[inputs[name] for name in order]], {})
    if strange:
        raise ValueError(f"forward takes {_text(arguments)}, and '{strange[0].name}' is no tensor")
    if names and set(names) <= {one.name for one in arguments}:
        lacking = [one.name for one in arguments if one.name not in names and not one.may_lack]
        if lacking:
            raise ValueError(f"forward takes {_text(arguments)}, and '{lacking[0]}' lacks")
        nothing = _nothing(one for one in arguments if one.name not in names)
        return lambda inputs: ([], {name: inputs[name] for name in names} | nothing)
    order = _order(names)
    rest = arguments[len(order) :]
    if len(order) > len(arguments) or not all(one.may_lack for one in rest):
        raise ValueError(f"forward takes {_text(arguments)}, and the inputs are {', '.join(names) or 'none'}")
    nothing = _nothing(rest)
    return lambda inputs: ([inputs[name] for name in order], nothing)


def flatten(result: object, is_tensor: Callable[[object], bool]) -> dict[str, Any] | list[Any]:
    """The tensors that `forward` returned: by name of a dictionary, else in order. ValueError for what is neither."""
    if is_tensor(result):
        return [result]
    if isinstance(result, tuple | list):
        if all(map(is_tensor, result)):
            return list(result)
    elif isinstance(result, dict) and all(
        isinstance(name, str) and is_tensor(value) for name, value in result.items()
    ):
        return dict(result)
    raise ValueError(
        f"forward returned a {_kind(result)}, expected a tensor, or a tuple, list or dictionary of tensors"
    )


def choose(found: Mapping[str, Any] | Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """The outputs of these names, in their order, of those returned; all of them where no names are declared, by
    their keys or as `OUTPUT__0`, `OUTPUT__1` and so on. ValueError where one is not there.
    """
    if isinstance(found, Mapping):
        wanted = names or sorted(found)
        lacking = [name for name in wanted if name not in found]
        if lacking:
            raise ValueError(f"forward returned {', '.join(found) or 'nothing'}, and '{lacking[0]}' lacks")
        return [(name, found[name]) for name in wanted]
    if not names:
        return [(f"OUTPUT__{at}", tensor) for at, tensor in enumerate(found)]
    indexes = _indexes(names) or list(range(len(names)))
    if max(indexes) >= len(found):
        raise ValueError(f"forward returned {len(found)} tensors, and the outputs are {', '.join(names)}")
    return [(name, found[index]) for name, index in zip(names, indexes, strict=True)]


def _order(names: Sequence[str]) -> list[str]:
    """Sort them by index, where all have one; else leave them as they are."""
    indexes = _indexes(names)
    if indexes is None:
        return list(names)
    order = [name for _, name in sorted(zip(indexes, names, strict=True))]
    if sorted(indexes) != list(range(len(names))):
        raise ValueError(f"the inputs {', '.join(order)} do not count from 0 without a gap")
    return order


def _nothing(arguments: Iterable[Argument]) -> dict[str, Any]:
    """Return None for each argument that is not given and has no default of its own."""
    return {one.name: None for one in arguments if not one.has_default}


def _indexes(names: Sequence[str]) -> list[int] | None:
    """The distinct numbers at the end of the names; None where there is a name without one."""
    matches = [_INDEXED.fullmatch(name) for name in names]
    indexes = [int(match[1]) for match in matches if match is not None]
    return indexes if len(set(indexes)) == len(names) else None


def _text(arguments: Sequence[Argument]) -> str:
    return ", ".join(f"{one.name}: {one.type}" + (" (optional)" if one.may_lack else "") for one in arguments)


def _kind(result: object) -> str:
    if isinstance(result, tuple | list):
        return f"{type(result).__name__} of {', '.join(sorted({type(one).__name__ for one in result}))}"
    return type(result).__name__
