"""Converts raw bodies to a model's tensors, a handler's answer to its outputs, and tensors to a body to send.

The rows are those of `payload_table`: looked for by content type first, by the first bytes where that tells
nothing. Pixels are never guessed at: a picture goes into a BYTES input or is refused. Whether what was read
fits the model, the core's admission says.
"""

from collections.abc import Mapping, Sequence
from math import prod

from trivium.codecs import data_reasons, json_documents, jsontensors, signatures, v1_bodies, v2_bodies
from trivium.codecs.binary import Buffer
from trivium.codecs.binding import Wanted, bind, in_order, is_anonymous, one_element
from trivium.codecs.header_text import by_preference, essence
from trivium.codecs.payload_table import JSON, NPZ, READER_OF, READERS, WRITER_OF, Reader, by_signature
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.payload import Payload, Raw, RawForm, RawPart, Scalar, Tensor, Tensors
from trivium.types.spec import TensorSpec

SLOW_BYTES = 2**18
"""Bytes of a body beyond which reading it may take long."""

_READERS: Mapping[RawForm, v2_bodies.Read] = {**v2_bodies.READERS, **v1_bodies.READERS}
"""What reads a body whose wire says its form."""

_SHOWN = 500  # characters of a handler's error that go into ours
_WHOLE_BODY = ("", "data", "body")  # what DJL and TorchServe call a body without a name of its own


def to_tensors(raw: Raw, inputs: tuple[TensorSpec, ...], batch_axis: bool, model: str) -> Tensors:
    """The inputs of a model from a raw body, or from the fields of a form by the inputs' names.

    INVALID for a body that is not what its content type says, UNSUPPORTED_MEDIA with what would be accepted for
    one that the table cannot make into these inputs. The answer has the lease of `raw`, whose buffer it views.
    """
    wanted = Wanted(model, inputs, batch_axis)
    parts = raw.parts
    reader = _READERS.get(raw.form)
    if reader is not None:
        return Tensors(reader(parts[0].data, wanted), raw.lease)
    if len(parts) == 1 and parts[0].name in _WHOLE_BODY and wanted.named(parts[0].name) is None:
        part = _signed(parts[0]) if raw.form is RawForm.SIGNED else parts[0]
        return Tensors(_whole(part, wanted), raw.lease)
    return Tensors(tuple(tensor for part in parts for tensor in _field(part, wanted)), raw.lease)


def to_outputs(
    raw: Raw, outputs: tuple[TensorSpec, ...], model: str, names: Sequence[str] = ()
) -> tuple[Tensors, dict[str, Scalar]]:
    """A handler's raw answer for a wire that carries tensors: the declared outputs where its body has them by name;
    where none are declared, the tensors of a body whose content type says that it holds some, or that are as many as
    the `names` asked for; else one BYTES tensor `output` of shape [1], with the parameter `content_type`.

    MODEL_FAILED with the body's text and the handler's status where that is an error, where a declared output
    is not of its datatype, and where a body is not what its content type says. Of an answer of several parts the first
    one is the body.
    """
    part = raw.parts[0] if raw.parts else RawPart(b"")
    if raw.status >= 400:
        raise _failed(raw, part, model)
    kind = part.content_type or _property(raw, "content-type")
    wanted = Wanted(model, outputs, are_outputs=True)
    if outputs:
        found = _declared(part.data, essence(kind), wanted)
    else:
        found = _undeclared(part.data, essence(kind), wanted, names)
    if found is not None:
        return Tensors(found, raw.lease), {}
    body = one_element(TensorSpec("output", DataType.BYTES, (1,)), part.data, False)
    return Tensors((body,), raw.lease), {"content_type": kind or signatures.content_type_of(part.data)}


def is_slow_to_read(raw: Raw) -> bool:
    """Would making tensors of it keep others waiting? What is compressed may be of any size."""
    return sum(len(part.data) for part in raw.parts) > SLOW_BYTES or any(
        READER_OF.get(essence(part.content_type)) is NPZ or by_signature(part.data) is NPZ
        for part in raw.parts
    )


def is_slow_to_write(payload: Payload | None) -> bool:
    """Would writing it keep others waiting, in whichever form? False for what cannot be written at all."""
    try:
        return isinstance(payload, Tensors) and any(map(jsontensors.is_large, payload.items))
    except TypeError:
        return False


def negotiated(
    tensors: Tensors, accept: str, content_type: str, default: str, bare: Tensors | None = None
) -> tuple[str, tuple[Buffer, ...]]:
    """A result as a body: its content type, and buffers that may view the tensors. One BYTES element is the body
    itself, with the content type that its bytes look like. In forms other than JSON `bare` is written instead, if it is
    given.

    Else by `accept`; where that names nothing that is written, by the `content_type` that the request had, else
    `default`. A form that cannot hold the tensors is passed over; only where none can, the first's error is raised.
    """
    items = tensors.items
    if len(items) == 1 and items[0].datatype is DataType.BYTES and prod(items[0].shape) == 1:
        body: bytes = items[0].array.ravel()[0]
        return signatures.content_type_of(body), (body,)
    first: ServeError | None = None
    for name in (*_accepted(accept, default), essence(content_type), default, *WRITER_OF):
        writer = WRITER_OF.get(name)
        if writer is None:
            continue
        try:
            return name, writer.write(items if bare is None or name == signatures.JSON else bare.items)
        except ServeError as error:
            first = first or frameless(error)
    assert first is not None, "there are writers"
    raise anew(first)


def _accepted(accept: str, default: str) -> list[str]:
    """The content types asked for that are written, most wanted first; a range stands for the default if it is
    of it, else for the first of the table. `*/*` leaves the choice, and so ends the wishes.
    """
    names: list[str] = []
    for name in by_preference(accept):
        if name == "*/*":
            break
        if name.endswith("/*"):
            names += [known for known in (default, *WRITER_OF) if known.startswith(name[:-1])][:1]
        else:
            names.append(name)
    return names


def _signed(part: RawPart) -> RawPart:
    """Return the part without its content type, if that is neither JSON nor CSV and its first bytes say what it is."""
    kind = essence(part.content_type)
    if kind in (signatures.JSON, signatures.CSV) or by_signature(part.data) is None:
        return part
    return RawPart(part.data, "", part.name, part.filename)


def _whole(part: RawPart, wanted: Wanted) -> tuple[Tensor, ...]:
    kind, text = essence(part.content_type), wanted.text
    if not part.data and not any(not spec.optional for spec in wanted.specs):
        return ()
    reader = _row(kind, part.data) if text is None else READER_OF.get(kind)
    found = None if reader is None else _read(reader, part.data, wanted)
    if found is not None:
        return bind(found, wanted, reader is JSON)
    if text is not None:  # what has no content type goes in as it is, whatever it looks like
        return (one_element(text, part.data, wanted.batch_axis),)
    raise _unsupported(part, wanted)


def _field(part: RawPart, wanted: Wanted) -> tuple[Tensor, ...]:
    """The input that a field of a form is named after."""
    spec = wanted.named(part.name)
    if spec is None:
        raise ServeError(
            Code.INVALID,
            f"The form has the field {part.name!r}, which is no input of model '{wanted.model}'; it takes {wanted}.",
        )
    if spec.datatype is DataType.BYTES:
        return (one_element(spec, part.data, wanted.batch_axis),)
    alone = Wanted(wanted.model, (spec,), wanted.batch_axis)
    kind = essence(part.content_type)
    reader = _row(kind, part.data)
    if reader is None and kind in ("", "text/plain") and not _picture(part):
        reader = JSON  # a number typed into a form
    found = None if reader is None else _read(reader, part.data, alone)
    if found is None:
        raise _unsupported(part, wanted)
    return bind(found, alone, reader is JSON)


def _read(reader: Reader, data: Buffer, wanted: Wanted) -> tuple[Tensor, ...] | None:
    """Read a request's body. What makes it INVALID keeps its words, and is UNDECODED to wires that have their own."""
    try:
        return reader.read(data, wanted)
    except ServeError as error:
        if error.code is not Code.INVALID:
            raise
        raise ServeError(error.code, error.message, info=_unreadable(reader)) from error


def _unreadable(reader: Reader | None) -> ErrorInfo:
    media_type = reader.media_types[0] if reader else ""
    return ErrorInfo.of(data_reasons.UNDECODED, media_type=media_type)


def _row(kind: str, data: Buffer) -> Reader | None:
    return by_signature(data) if kind in signatures.UNSAID else READER_OF.get(kind)


def _declared(data: Buffer, kind: str, wanted: Wanted) -> tuple[Tensor, ...] | None:
    """The declared outputs in their order, if the body has them all, or just as many without names."""
    reader = _row(kind, data)
    try:
        found = None if reader is None else reader.read(data, wanted)
    except ServeError as error:
        raise _misanswered(wanted, error.message) from error
    tensors = None if found is None else in_order(found, wanted)
    for spec, tensor in zip(wanted.specs, tensors or (), strict=False):
        if tensor.datatype is not spec.datatype:
            raise _misanswered(wanted, f"'{spec.name}' came as {tensor.datatype.wire}.")
    return tensors


def _undeclared(data: Buffer, kind: str, wanted: Wanted, names: Sequence[str]) -> tuple[Tensor, ...] | None:
    """The tensors of a body whose content type says that it holds some, or of any that holds as many as the `names`
    asked for, which they get; without these, those that have no names of their own get their position. JSON is
    nobody's tensors by itself.
    """
    said = READER_OF.get(kind)
    said = None if said is JSON else said
    reader = said or (by_signature(data) if names else None)
    if reader is None or reader is JSON:
        return None
    try:
        tensors = reader.read(data, wanted) or ()
    except ServeError as error:
        if said is None:
            return None
        text = (
            f"Model '{wanted.model}' answered what it calls {kind}, and that cannot be read: {error.message}"
        )
        raise ServeError(Code.MODEL_FAILED, f"{text} Correct the handler.") from error
    own = [tensor.name for tensor in tensors]
    if len(names) == len(tensors):
        if set(names) == set(own):
            return tuple(tensors)
    elif said is None:
        return None
    elif all(map(is_anonymous, own)):
        names = [f"output_{i}" for i in range(len(tensors))] if len(tensors) > 1 else ["output"]
    else:
        return tuple(tensors)
    return tuple(
        Tensor(name, tensor.datatype, tensor.shape, tensor.array)
        for name, tensor in zip(names, tensors, strict=True)
    )


def _misanswered(wanted: Wanted, found: str) -> ServeError:
    return ServeError(
        Code.MODEL_FAILED,
        f"Model '{wanted.model}' declares {wanted} and did not answer them: {found} Correct the handler, or what "
        "is declared.",
    )


def _property(raw: Raw, name: str) -> str:
    return next((value for key, value in raw.properties.items() if key.lower() == name), "")


def _picture(part: RawPart) -> str:
    kind = essence(part.content_type)
    return (
        kind
        if kind.startswith("image/")
        else signatures.picture_type(bytes(part.data[: signatures.LOOKED_AT]))
    )


def _failed(raw: Raw, part: RawPart, model: str) -> ServeError:
    text = str(part.data[: 4 * _SHOWN], "utf-8", "replace").strip() or raw.reason or "it said nothing else"
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    status = raw.status if raw.status <= 599 else None  # else it is of no wire but its handler's own
    return ServeError(
        Code.MODEL_FAILED, f"Model '{model}' answered with status {raw.status}: {text}", status=status
    )


def _unsupported(part: RawPart, wanted: Wanted) -> ServeError:
    picture, kind = _picture(part), essence(part.content_type)
    if picture:
        found = f"a picture ({picture})"
    elif _row(kind, part.data) is JSON:
        found = f"JSON in none of the forms that carry its tensors ({json_documents.FORMS})"
    elif kind:
        found = f"a body of content type {kind[:80]!r}"
    else:
        found = f"a body of {len(part.data)} bytes that no content type explains"
    place = f" in field {part.name!r}" if part.name not in _WHOLE_BODY else ""
    accepted = ", ".join(reader.media_types[0] for reader in READERS)
    hint = f"Send one of {accepted}, or the v2 protocol."
    if picture:
        hint = (
            f"Resizing and normalisation are never guessed: send tensors ({accepted}, or the v2 protocol), or serve "
            "the model with a handler that takes the picture."
        )
    takes = str(wanted) or "no inputs"
    return ServeError(
        Code.UNSUPPORTED_MEDIA,
        f"Model '{wanted.model}' takes {takes}, and cannot take {found}{place}. {hint}",
        info=_unreadable(_row(kind, part.data)),
    )
