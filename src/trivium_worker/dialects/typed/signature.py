"""The signature of a typed handler: what its `predict` takes and returns, and how it is called.

Made once, while the model loads. Every contradiction is refused there, with the file and the line.
"""

import inspect
import typing
from collections.abc import Mapping
from typing import Any

from trivium_worker.dialects.typed.hints import STREAMS, Place, hints_of, kind_of, optional_hint
from trivium_worker.dialects.typed.kinds import Kind, Many, Record, object_schema
from trivium_worker.dialects.typed.tensors import Array, form_of

BATCHED = "__trivium_batched__"
CONCURRENT = "__trivium_concurrent__"
"""What `trivium_handler` writes on functions."""

IN_FLIGHT = 64
"""Requests that an async handler has in work at once, unless it says another number."""

OUTPUT = "output"
"""The name of what has none."""


class Parameter:
    """One parameter of `predict`. Of an optional one `default` is what user code wrote, and nothing need be sent."""

    def __init__(self, name: str, kind: Kind, is_optional: bool) -> None:
        self.name = name
        self.kind = kind
        self.is_optional = is_optional


class Signature:
    """Reads a function's hints. Raises Failure ("load failed"). `inputs` and `outputs` are in order; with `is_batched`
    the kinds are those of whole batches, and `item` gives those of one request.
    """

    def __init__(self, function: Any, name: str, is_bound: bool = False) -> None:
        """`function` is the class's own, whose first parameter is the object, unless `is_bound`."""
        self._function = function
        self._name = name
        self._is_bound = is_bound
        mark = getattr(function, BATCHED, None)
        self.is_batched = mark is not None
        self.max_rows: int = mark[0] if mark else 1
        self.max_delay: float = mark[1] if mark else 0.0
        self.is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        hints = hints_of(function, name)
        self.inputs = [self._input(one, hints) for one in self._parameters()]
        returned = self._returned(hints)
        self.streams = typing.get_origin(returned) in STREAMS
        self.in_flight: int = getattr(function, CONCURRENT, IN_FLIGHT) if self.is_async else 0
        self._check_form()
        place = Place(function, "return", f"what {name} returns")
        self.answer = kind_of(typing.get_args(returned)[0] if self.streams else returned, place)
        self.answers_record = False
        """Are the outputs the fields of a record?"""
        self.outputs = self._outputs(place)
        if self.is_batched:
            self._check_batch(place)

    @property
    def is_whole(self) -> bool:
        """Does one parameter take the whole body?"""
        return len(self.inputs) == 1

    def item(self, kind: Kind) -> Kind:
        """Return the kind of one request's part of a batch."""
        if not self.is_batched:
            return kind
        if isinstance(kind, Many):
            return kind.of
        assert isinstance(kind, Array), "it was judged so"
        return kind.row()

    @property
    def main(self) -> "Parameter | None":
        """Return the parameter that a body takes that names none: the only one, or the only one that has no default."""
        needed = [one for one in self.inputs if not one.is_optional]
        return self.inputs[0] if self.is_whole else needed[0] if len(needed) == 1 else None

    def document(self) -> dict[str, Any]:
        """Return what the server has to know, as JSON: tensors, and the schemas of bodies."""
        fields = {one.name: (self.item(one.kind), not one.is_optional) for one in self.inputs}
        only = self.inputs[0] if self.is_whole else None
        request = object_schema(fields) if only is None else self.item(only.kind).schema()
        example = {one.name: self.item(one.kind).example() for one in self.inputs if not one.is_optional}
        return {
            "inputs": [[one.name, *_listed(form_of(one.kind)), one.is_optional] for one in self.inputs],
            "outputs": [[name, *_listed(form_of(kind))] for name, kind in self.outputs],
            "is_batched": self.is_batched,
            "max_rows": self.max_rows,
            "max_delay": self.max_delay,
            "streams": self.streams,
            "in_flight": self.in_flight,
            "request": request,
            "answer": self.item(self.answer).schema() if not self.answers_record else self._record_schema(),
            "example": self.item(only.kind).example() if only else example,
        }

    def _record_schema(self) -> dict[str, Any]:
        return object_schema({name: (self.item(kind), True) for name, kind in self.outputs})

    def _parameters(self) -> list[inspect.Parameter]:
        found = list(inspect.signature(self._function).parameters.values())
        return found if self._is_bound else found[1:]

    def _input(self, one: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
        place = Place(self._function, one.name, f"the parameter {one.name} of {self._name}")
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            raise place.fail("cannot be named by a request", "each parameter by its name, with a hint")
        if one.name not in hints:
            raise place.fail("has no hint")
        is_optional = one.default is not one.empty
        if is_optional and self.is_batched:
            raise place.fail(
                "has a default, which has no rows", "it without one, or predict without @batched"
            )
        hint = optional_hint(hints[one.name]) if is_optional and one.default is None else hints[one.name]
        return Parameter(one.name, kind_of(hint, place), is_optional)

    def _returned(self, hints: Mapping[str, Any]) -> Any:
        if "return" not in hints:
            place = Place(self._function, "return", self._name)
            raise place.fail("has no hint for what it returns", "-> and one of the hints, like -> str")
        return hints["return"]

    def _check_form(self) -> None:
        function, place = self._function, Place(self._function, "return", self._name)
        if not self.inputs:
            raise place.fail("takes nothing", "at least one parameter")
        yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if yields and not self.streams:
            raise place.fail("yields, and its hint is no stream", "-> Iterator[str], or of what it yields")
        if inspect.iscoroutinefunction(function) and self.streams:
            raise place.fail("is awaited, and its hint is a stream", "yield in it, or -> what it returns")
        if self.is_batched and (self.streams or self.is_async):
            found = "streams" if self.streams else "is async"
            raise place.fail(f"{found} and is @batched", "it without @batched, or as a plain function")
        if hasattr(function, CONCURRENT) and not self.is_async:
            raise place.fail("is @concurrent and no async function", "async def, or leave @concurrent out")

    def _outputs(self, place: Place) -> list[tuple[str, Kind]]:
        answer = self.answer
        if not isinstance(answer, Record) or not any(
            isinstance(f.kind, Array) for f in answer.fields.values()
        ):
            return [(OUTPUT, answer)]
        if not all(field.is_required for field in answer.fields.values()):
            raise place.fail("has tensors in fields that may lack", "fields that are always there")
        self.answers_record = True
        return [(name, field.kind) for name, field in answer.fields.items()]

    def _check_batch(self, place: Place) -> None:
        named = [
            (Place(self._function, one.name, f"the parameter {one.name}"), one.kind) for one in self.inputs
        ]
        for where, kind in [*named, *((place, kind) for _, kind in self.outputs)]:
            is_open = isinstance(kind, Array) and kind.dims[:1] == (-1,)
            if not is_open and not isinstance(kind, Many):
                text = "a list with an element for each row, or an array whose first dimension is -1"
                raise where.fail("has no rows, and predict is @batched", text)


def _listed(form: "tuple[str, tuple[int, ...]]") -> list[Any]:
    return [form[0], list(form[1])]
