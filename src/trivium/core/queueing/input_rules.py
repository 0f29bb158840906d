"""Decides who is let in: checks a request against a model's spec, and a full queue's refusal. Pure.

It refuses with sentences that name the tensor, what was found and what the model takes. It knows neither the
queue nor the clock; what it needs of them comes in as numbers.
"""

import math
from collections.abc import Hashable
from typing import NoReturn

from trivium.types import reasons
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import Listed, Payload, Tensor, Tensors
from trivium.types.spec import Join, ModelSpec, TensorSpec


class InputRules:
    """One model's rules for payloads, prepared once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._model = spec.name
        self._inputs = {tensor.name: tensor for tensor in spec.inputs}
        self._outputs = frozenset(tensor.name for tensor in spec.outputs)
        self._required = frozenset(tensor.name for tensor in spec.inputs if not tensor.optional)
        self._takes_bytes = any(tensor.datatype is DataType.BYTES for tensor in spec.inputs)
        self._has_axis = spec.batching.batch_axis
        self._max_rows = spec.batching.max_rows
        is_fixed = len(self._required) == len(spec.inputs) and all(
            -1 not in tensor.dims for tensor in spec.inputs
        )
        self._fitting: tuple[int, ...] = ()  # the last that did: a header that comes again brings the same
        self._open = frozenset(tensor.name for tensor in spec.inputs if tensor.open)
        self._many = next((tensor for tensor in spec.inputs if tensor.many), None)
        is_plain = self._has_axis and len(spec.inputs) == 1 and not self._open
        self._only = spec.inputs[0] if is_plain else None
        self._join = spec.batching.join
        self.needs_key = spec.batching.merge and bool(
            self._open or (not is_fixed and self._join is Join.ROWS)
        )
        self._tells_outputs = bool(spec.outputs or not self._open)
        self._ragged = frozenset(tensor.name for tensor in spec.inputs if tensor.ragged)

    def admit(self, infer: Infer, payload: Tensors) -> int:
        """The rows of a request that fits the model; ServeError for one that does not."""
        if infer.outputs and self._tells_outputs:
            self._check_outputs(infer.outputs)
        items = payload.items
        only = self._only
        if only is not None and len(items) == 1:  # what all checks together come to, for most requests
            tensor = items[0]
            shape = tensor.shape
            if (
                tensor.name == only.name
                and tensor.datatype is only.datatype
                and shape
                and (shape is self._fitting or shape[1:] == only.dims)
                and 0 < shape[0] <= self._max_rows
            ):
                self._fitting = shape
                return shape[0]
        if len(items) != 1 or len(self._inputs) != 1:
            self._check_names(items)
        for tensor in items:
            self._check(tensor)
        if not self._has_axis or not items:
            return 1
        rows = items[0].shape[0]
        if not 0 < rows <= self._max_rows:
            self._refuse_rows(rows, items[-1])
        if len(items) > 1:
            self._check_rows(items, rows)
        return rows

    def shape_key(self, infer: Infer) -> Hashable:
        """Return what items of one batch must have in common, for models where `needs_key` says that it can differ."""
        assert isinstance(infer.payload, Tensors)
        ragged, items = self._ragged, infer.payload.items
        if self._open:
            return tuple(sorted((one.name, one.datatype.wire, self._row_shape(one)) for one in items))
        return tuple(sorted((one.name, () if one.name in ragged else one.shape[1:]) for one in items))

    def _row_shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The part of an open tensor's shape that those of one batch have in common."""
        match self._join:
            case Join.ROWS:
                return tensor.shape[1:]
            case Join.STACK:
                return tensor.shape
            case Join.PAD:
                return (len(tensor.shape),)

    def _check(self, tensor: Tensor) -> None:
        rule = self._inputs.get(tensor.name, self._many)
        if rule is None:
            self._refuse_name(tensor.name)
        if rule.open:
            self._check_open(tensor, rule)
            return
        if rule.column:
            self._check_column(tensor, rule)
            return
        if tensor.datatype is not rule.datatype:
            self._refuse_datatype(tensor, rule)
        shape = tensor.shape
        if self._has_axis:
            if not shape:
                self._refuse_shape(tensor, rule)
            shape = shape[1:]
        if shape != rule.dims and not _fits(shape, rule.dims) and (shape or rule.inner != ()):
            self._refuse_shape(tensor, rule)

    def _check_open(self, tensor: Tensor, rule: TensorSpec) -> None:
        """Refuse what holds no numbers, and what has no batch dimension where there is one."""
        if tensor.datatype is DataType.BYTES and not self._takes_bytes:
            found, expected = DataType.BYTES.wire, "numbers"
            told = {"model": self._model, "input": tensor.name, "found": found, "expected": expected}
            self._refuse_bytes(tensor.name, ErrorInfo.of(reasons.DATATYPE, **told))
        if self._has_axis and not tensor.shape:
            self._refuse_shape(tensor, rule)

    def _check_column(self, tensor: Tensor, rule: TensorSpec) -> None:
        """Refuse texts among numbers, numbers among texts, and what is no column."""
        if (tensor.datatype is DataType.BYTES) is not (rule.datatype is DataType.BYTES):
            self._refuse_datatype(tensor, rule)
        if len(tensor.shape) not in (1, 2) or tensor.shape[1:] not in ((), (1,)):
            self._refuse_shape(tensor, rule)

    def _check_rows(self, items: tuple[Tensor, ...], rows: int) -> None:
        for tensor in items:
            if tensor.shape[0] != rows:
                last = items[-1].shape[0]
                first = next(each.name for each in reversed(items) if each.shape[0] != last)
                self._refuse(
                    f"got {rows} rows in '{items[0].name}' and {tensor.shape[0]} in '{tensor.name}'",
                    "the first dimension of every input is the batch and must be the same",
                    ErrorInfo.of(reasons.ROWS_APART, model=self._model, input=first),
                )

    def _check_outputs(self, outputs: tuple[WantedOutput, ...]) -> None:
        for output in outputs:
            if output.name not in self._outputs:
                self._refuse(
                    f"has no output '{output.name}'",
                    f"its outputs are {_names(self._outputs)}",
                    ErrorInfo.of(reasons.UNKNOWN_OUTPUT, model=self._model, output=output.name),
                )

    def _check_names(self, items: tuple[Tensor, ...]) -> None:
        names = {tensor.name for tensor in items}
        if len(names) != len(items):
            twice = next(tensor.name for tensor in items if [t.name for t in items].count(tensor.name) > 1)
            facts = ErrorInfo.of(reasons.INPUT_TWICE, input=twice)
            self._refuse(f"got input '{twice}' more than once", "each input is given once", facts)
        if self._many is not None:
            return
        unknown = next((tensor.name for tensor in items if tensor.name not in self._inputs), None)
        if unknown is not None and not len(self._required) <= len(items) <= len(self._inputs):
            self._refuse_name(unknown, self._other_count(items, names))
        missing = self._required - names
        if len(items) < len(self._required) or (missing and names <= self._inputs.keys()):
            facts = self._other_count(items, names)
            self._refuse(f"got no input {_names(missing)}", f"it takes {self._wanted()}", facts)

    def _other_count(self, items: tuple[Tensor, ...], names: set[str]) -> ErrorInfo:
        return ErrorInfo.of(
            reasons.INPUT_COUNT,
            model=self._model,
            least=len(self._required),
            most=len(self._inputs),
            got=[tensor.name for tensor in items],
            missing=[name for name in self._inputs if name in self._required and name not in names],
        )

    def _wanted(self) -> str:
        return ", ".join(
            f"'{tensor.name}' {tensor.kind(self._has_axis)}" + (" (optional)" if tensor.optional else "")
            for tensor in self._inputs.values()
        )

    def _refuse_name(self, name: str, facts: ErrorInfo | None = None) -> NoReturn:
        facts = facts or ErrorInfo.of(reasons.UNKNOWN_INPUT, model=self._model, input=name)
        self._refuse(f"has no input '{name}'", f"it takes {self._wanted()}", facts)

    def _refuse_datatype(self, tensor: Tensor, rule: TensorSpec) -> NoReturn:
        found, expected = tensor.datatype, rule.datatype
        facts = ErrorInfo.of(
            reasons.DATATYPE, model=self._model, input=tensor.name, found=found.wire, expected=expected.wire
        )
        if found is DataType.BYTES and not self._takes_bytes:
            self._refuse_bytes(tensor.name, facts)
        self._refuse(
            f"got datatype {found.wire} for input '{tensor.name}'", f"it takes {expected.wire}", facts
        )

    def _refuse_bytes(self, name: str, facts: ErrorInfo) -> NoReturn:
        raise ServeError(
            Code.UNSUPPORTED_MEDIA,
            f"Model '{self._model}' got BYTES for input '{name}', and takes numbers alone: {self._wanted()}. What is "
            "in the bytes is never guessed: send the numbers, or serve the model with a handler that decodes it.",
            info=facts,
        )

    def _refuse(self, found: str, expected: str, facts: ErrorInfo) -> NoReturn:
        raise ServeError(Code.INVALID, f"Model '{self._model}' {found}; {expected}.", info=facts)

    def _refuse_shape(self, tensor: Tensor, rule: TensorSpec) -> NoReturn:
        told = {"model": self._model, "input": tensor.name, "has_rows": self._has_axis}
        dims = (-1, *rule.dims) if self._has_axis else rule.dims
        facts = ErrorInfo.of(reasons.SHAPE, found=tensor.shape, expected=dims, **told)
        if self._has_axis and not tensor.shape:
            facts = ErrorInfo.of(reasons.NO_SHAPE, model=self._model, input=tensor.name)
        hint = ", where the first dimension is the batch" if self._has_axis else ""
        self._refuse(
            f"got shape {_shape_text(tensor.shape)} for input '{tensor.name}'",
            f"it takes {_shape_text(dims)}{hint}; -1 stands for any size",
            facts,
        )

    def _refuse_rows(self, rows: int, last: Tensor) -> NoReturn:
        if rows == 0:
            rule = self._inputs[last.name]
            size = math.prod(dim for dim in rule.dims if dim > 0)
            facts = ErrorInfo.of(
                reasons.BYTE_SIZE, input=last.name, expected=size * rule.datatype.itemsize, found=0
            )
            if rule.datatype is DataType.BYTES:
                facts = ErrorInfo.of(reasons.FEW_STRINGS, input=last.name, expected=size, found=0)
            self._refuse("got an empty batch", f"a request has 1 to {self._max_rows} rows", facts)
        self._refuse(
            f"got a batch of {rows} rows",
            f"it takes at most {self._max_rows}: send it in several requests",
            ErrorInfo.of(reasons.TOO_MANY_ROWS, model=self._model, most=self._max_rows),
        )


def refuse_kind(model: str, payload: Payload) -> NoReturn:
    """The refusal of a payload that nothing converts into what the model takes."""
    if isinstance(payload, Listed):
        raise ServeError(
            Code.UNSUPPORTED_MEDIA,
            f"Model '{model}' takes one payload, and got a list of {len(payload.payloads)}. Let a function of the "
            "graph make one of them.",
        )
    raise ServeError(
        Code.UNSUPPORTED_MEDIA,
        f"Model '{model}' cannot take a {type(payload).__name__} payload. Send named tensors by the v2 protocol, "
        "or a body that the payload table has a rule for.",
    )


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(d in (-1, s) for s, d in zip(shape, dims, strict=True))


def _shape_text(dims: tuple[int | str, ...]) -> str:
    return f"[{','.join(map(str, dims))}]"


def _names(names: frozenset[str] | set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"
