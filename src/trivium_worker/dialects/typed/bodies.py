"""Turns a request into what `predict` is called with, and what it returns into a body or tensors.

A body that names no field is the main parameter's: the only one, or the only one without a default. Every refusal names
the field.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trivium_worker.dialects.typed.kinds import (
    MISSING,
    UNKNOWN,
    Body,
    Kind,
    Many,
    Named,
    Plain,
    Record,
    Unfit,
    as_json,
    shown,
)
from trivium_worker.dialects.typed.signature import OUTPUT, Parameter, Signature
from trivium_worker.dialects.typed.tensors import Array, bare, tensor_of, value_of
from trivium_worker.wire.values import Failure, Item, Part, Raw, Tensor

TEXT, JSON, LINES, BYTES = (
    "text/plain; charset=utf-8",
    "application/json",
    "application/x-ndjson",
    "application/octet-stream",
)
_WHOLE = ("", "data", "body")
"""Names that clients of other servers have for a body without one."""

_NO_FIELDS = (
    ". The body is called a form, and has no field: curl calls it so unless it is told, as by "
    "-H 'Content-Type: text/plain'"
)
_UNSAID = ("", BYTES)
_LIKE_JSON = (b"{", b"[")


class Bodies:
    """Reads and writes for one model, named in every refusal."""

    def __init__(self, model: str, signature: Signature) -> None:
        self._model = model
        self._signature = signature
        self._inputs = {one.name: one for one in signature.inputs}
        self.takes = ", ".join(map(self._said, signature.inputs))

    def values(self, item: Item) -> dict[str, Any]:
        """Return what the request gives, by parameter: of a batch's model rows, one for a body. Failure ("invalid")."""
        try:
            if not isinstance(item.payload, Raw):
                return self._of_tensors(item.payload, item.parameters)
            return self._of_body(item.payload)
        except Unfit as error:
            raise self._refused(error) from None

    def answer(self, value: Any, as_body: bool) -> "list[Tensor] | Raw":
        """Return an answer, or a piece of one. Failure ("model failed") for a value that its hint does not fit."""
        signature = self._signature
        try:
            if as_body and not self._is_file(signature.answer):
                return _body(signature.answer, value, signature.streams)
            if not signature.answers_record:
                return [tensor_of(OUTPUT, signature.answer, value)]
            assert isinstance(signature.answer, Record), "it was judged so"
            return [
                tensor_of(name, field.kind, one) for name, field, one in signature.answer.parts(value, OUTPUT)
            ]
        except Unfit as error:
            raise self.misreturned(error) from None

    def rows(self, values: Mapping[str, Any], begin: int, end: int, as_body: bool) -> "list[Tensor] | Raw":
        """Return the answer to one request of a batch, whose rows of each output these are. Failure as `answer`."""
        signature = self._signature
        try:
            if not as_body:
                return [tensor_of(name, kind, values[name][begin:end]) for name, kind in signature.outputs]
            kinds = {name: signature.item(kind) for name, kind in signature.outputs}
            if not signature.answers_record:
                only, value = kinds[OUTPUT], values[OUTPUT][begin]
                return [tensor_of(OUTPUT, only, value)] if self._is_file(only) else _body(only, value, False)
            found = {name: kind.write(values[name][begin], name) for name, kind in kinds.items()}
            return Raw([Part(as_json(found, OUTPUT), JSON)])
        except Unfit as error:
            raise self.misreturned(error) from None

    def _is_file(self, kind: Kind) -> bool:
        """Is an answer bytes? As a tensor of one element it is sent with the content type that it looks like."""
        return isinstance(kind, Body) and not self._signature.streams

    def misreturned(self, error: Unfit) -> Failure:
        """Return the failure of a handler that returned what its hint does not say."""
        return Failure(
            f"Model '{self._model}': {error.where} of what predict returned is {error.found}, and its hint says "
            f"{error.expected}. Correct the handler, or the hint."
        )

    def _of_tensors(self, tensors: Sequence[Tensor], parameters: Mapping[str, Any]) -> dict[str, Any]:
        found = {one.name: value_of(self._inputs[one.name].kind, one) for one in tensors}
        for name in self._inputs.keys() & parameters.keys() - found.keys():
            found[name] = self._inputs[name].kind.read(parameters[name], name)
        return found

    def _of_body(self, raw: Raw) -> dict[str, Any]:
        parts, query = raw.parts, {}
        for name, text in raw.query:
            if name in self._inputs:
                query[name] = self._typed(self._inputs[name], text.encode())
        if len(parts) == 1 and parts[0].name in _WHOLE and parts[0].name not in self._inputs:
            found = {**query, **self._of_whole(parts[0], query)}
        else:
            found = {**query, **{name: value for part in parts for name, value in self._of_field(part)}}
        for one in self._signature.inputs:
            if one.name not in found and not one.is_optional:
                raise Unfit(one.name, MISSING, self._kind(one).said + ("" if parts else _NO_FIELDS))
        return {name: self._row(self._inputs[name], value) for name, value in found.items()}

    def _of_whole(self, part: Part, query: Mapping[str, Any]) -> dict[str, Any]:
        main, media = self._signature.main, essence(part.content_type)
        if not len(part.data) and (query or not media):
            return {}
        kind = None if main is None else self._kind(main)
        is_json = media == JSON or media.endswith("+json")
        if main is not None and kind is not None:
            if isinstance(kind, Body) and not (is_json and not self._signature.is_whole):
                return {main.name: bytes(part.data)}
            if not is_json and _is_text(kind) and not self._looks_like_fields(part.data, media):
                return {main.name: self._typed(main, self._said_to_be_text(part, media))}
            if isinstance(kind, Array) and media in _UNSAID and bytes(part.data[:1]) not in _LIKE_JSON:
                return {main.name: bare(kind, part.data, main.name)}
        if (
            not is_json
            and media not in (*_UNSAID, "application/x-www-form-urlencoded")
            and not media.startswith("text/")
        ):
            raise self._unsupported(media)
        return self._of_json(_loaded(part.data), main)

    def _of_json(self, value: Any, main: "Parameter | None") -> dict[str, Any]:
        is_whole = self._signature.is_whole
        if main is not None and (is_whole or not isinstance(value, dict)):
            kind = self._kind(main)
            is_named = isinstance(value, dict) and list(value) == [main.name]
            if is_named and not isinstance(kind, (Record, Named)):
                value = value[main.name]
            return {main.name: kind.read(value, main.name)}
        if not isinstance(value, dict):
            raise Unfit("the body", shown(value), f"an object with {self.takes}")
        for name in value:
            if name not in self._inputs:
                raise Unfit(str(name)[:80], UNKNOWN, self.takes)
        given = {
            name: one for name, one in value.items() if not (one is None and self._inputs[name].is_optional)
        }
        return {name: self._kind(self._inputs[name]).read(one, name) for name, one in given.items()}

    def _of_field(self, part: Part) -> list[tuple[str, Any]]:
        one = self._inputs.get(part.name)
        if one is None:
            raise Unfit(part.name[:80] or "a part without a name", UNKNOWN, self.takes)
        return [(one.name, self._typed(one, part.data))]

    def _typed(self, one: Parameter, data: Any) -> Any:
        """Return the value of a field of a form, or of the query: bytes, a text, or else JSON."""
        kind = self._kind(one)
        if isinstance(kind, Body) or _is_text(kind):
            return kind.decode(bytes(data), one.name)
        try:
            value = json.loads(bytes(data))
        except (ValueError, RecursionError):
            raise Unfit(one.name, shown(bytes(data[:80]).decode("utf-8", "replace")), kind.said) from None
        return kind.read(value, one.name)

    def _said_to_be_text(self, part: Part, media: str) -> Any:
        if media.startswith(("image/", "audio/", "video/")) or media in (
            "application/x-npz",
            "application/x-npy",
        ):
            raise self._unsupported(media)
        return part.data

    def _looks_like_fields(self, data: Any, media: str) -> bool:
        """May a body that nobody calls JSON be an object with several fields?"""
        return not self._signature.is_whole and not media.startswith("text/") and bytes(data[:1]) == b"{"

    def _kind(self, one: Parameter) -> Kind:
        return self._signature.item(one.kind)

    def _row(self, one: Parameter, value: Any) -> Any:
        if not self._signature.is_batched:
            return value
        return [value] if isinstance(one.kind, Many) else value[None]

    def _said(self, one: Parameter) -> str:
        return f"{one.name} ({self._kind(one).said}{', optional' if one.is_optional else ''})"

    def _refused(self, error: Unfit) -> Failure:
        words = f"Model '{self._model}': {error.where} is {error.found}; expected {error.expected}."
        return Failure(words, "invalid")

    def _unsupported(self, media: str) -> Failure:
        words = f"Model '{self._model}' takes {self.takes}, and cannot take a body of content type {media[:80]!r}."
        return Failure(f"{words} Send JSON, a form, or tensors by the v2 protocol.", "unsupported media")


def essence(content_type: str) -> str:
    """Return a content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def _is_text(kind: Kind) -> bool:
    return isinstance(kind, Plain) and kind.type is str


def _loaded(data: Any) -> Any:
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise Unfit("the body", f"no JSON ({error})"[:200], "JSON") from None


def _body(kind: Kind, value: Any, is_piece: bool) -> Raw:
    """Return a body: of a text the text, of bytes these, of all else JSON; of pieces of a stream a line each."""
    if isinstance(kind, Body):
        return Raw([Part(kind.encode(value, OUTPUT), BYTES if is_piece else "")])
    if _is_text(kind):
        return Raw([Part(kind.encode(value, OUTPUT), TEXT)])
    text = as_json(kind.write(value, OUTPUT), OUTPUT)
    return Raw([Part(text + b"\n", LINES)]) if is_piece else Raw([Part(text, JSON)])
