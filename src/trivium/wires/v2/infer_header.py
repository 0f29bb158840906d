"""The JSON of an infer request as typed values, and in words what is wrong with one that does not fit.

Source: the Open Inference Protocol v2's inference request object (spec sheet `triton`, section 4.3). Keys
that the protocol does not name are ignored, as it says. The `data` of an input stays undecoded.
"""

import json
import re
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from trivium.codecs import data_reasons
from trivium.codecs.json_groups import Unbalanced, groups
from trivium.types.datatype import DataType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.payload import MOST_BESIDE_DATA
from trivium.wires.v2 import request_reasons

_Size = Annotated[int, msgspec.Meta(ge=0)]


class InputParameters(msgspec.Struct, frozen=True, gc=False):
    """Those of an input, sizes in bytes."""

    binary_data_size: _Size | UnsetType = UNSET
    shared_memory_region: str | UnsetType = UNSET
    shared_memory_byte_size: _Size | UnsetType = UNSET
    shared_memory_offset: _Size = 0


class InputHeader(msgspec.Struct, frozen=True, gc=False):
    """One input; `data` is its JSON text, empty where there is none."""

    name: str
    shape: tuple[_Size, ...]
    datatype: DataType
    parameters: InputParameters = InputParameters()
    data: Raw = Raw()


class OutputParameters(msgspec.Struct, frozen=True, gc=False):
    """Those of an output asked for; `classification` 0 is off."""

    binary_data: bool | UnsetType = UNSET
    classification: _Size = 0
    shared_memory_region: str | UnsetType = UNSET
    shared_memory_byte_size: _Size | UnsetType = UNSET
    shared_memory_offset: _Size = 0


class OutputHeader(msgspec.Struct, frozen=True, gc=False):
    """One output asked for."""

    name: str
    parameters: OutputParameters = OutputParameters()


class InferHeader(msgspec.Struct, frozen=True, gc=False):
    """The whole object; `parameters` are judged apart."""

    inputs: tuple[InputHeader, ...]
    id: str = ""
    outputs: tuple[OutputHeader, ...] = ()
    parameters: dict[str, Any] = {}


class _Outline(msgspec.Struct, frozen=True, gc=False):
    inputs: Raw = Raw()


class _InputData(msgspec.Struct, frozen=True, gc=False):
    data: Raw = Raw()


_DECODER = msgspec.json.Decoder(InferHeader)
_OUTLINE = msgspec.json.Decoder(_Outline)
_DATA = msgspec.json.Decoder(list[_InputData])
_OBJECTS = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*\{")
_MOST_OBJECTS = 2**16
"""Braces in a text whose inputs are looked at in one call; those in strings are counted, too."""
_MOST_WITH_BARE_WORDS = 2**22
"""Bytes of JSON in which NaN and Infinity are looked for: that takes long, and larger ones have to be right."""
_BARE_WORDS = (b"NaN", b"Infinity")
_INPUT = re.compile(r"\.inputs\[(\d+)\]")
_QUOTED = re.compile("`([^`]*)`")
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a string",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def decode_header(text: bytes | memoryview) -> InferHeader:
    """The header in this JSON text. INVALID, with the place, for text that is no JSON or does not fit; TOO_LARGE for
    one that has much beside the data of its inputs.
    """
    if len(text) > MOST_BESIDE_DATA:
        _judge_long(bytes(text))
    try:
        return _DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise _unfit(error, bytes(text)) from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        whole = bytes(text)
        if len(whole) > _MOST_WITH_BARE_WORDS:
            raise _malformed(str(error)) from error
        if any(word in whole for word in _BARE_WORDS):
            return _decode_with_bare_words(whole, frameless(error))
        raise _malformed(str(error)) from error


def _judge_long(text: bytes) -> None:
    """Refuse a text that is read in one call which keeps others waiting: `data` alone may be long, since it is not
    looked into. Leaves it to the decoder to say what is wrong otherwise.
    """
    try:
        inputs = _OUTLINE.decode(text).inputs
        rest = len(text) - len(inputs)
        if rest <= MOST_BESIDE_DATA and _OBJECTS.match(memoryview(inputs)):
            few = text.count(b"{") <= _MOST_OBJECTS
            for group in [bytes(inputs)] if few else groups(bytes(inputs)):
                rest += len(group) - sum(len(entry.data) for entry in _DATA.decode(group))
    except msgspec.ValidationError:
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unbalanced) as error:
        if len(text) > _MOST_WITH_BARE_WORDS:
            raise _malformed(str(error)) from error
        return
    if rest > MOST_BESIDE_DATA:
        raise ServeError(
            Code.TOO_LARGE,
            f"The JSON of the infer request has {rest} bytes beside the data of its inputs; at most {MOST_BESIDE_DATA} "
            "are read. Send fewer or shorter inputs, outputs and parameters.",
        )


def _decode_with_bare_words(text: bytes, error: Exception) -> InferHeader:
    """Python's parser knows the bare words NaN and Infinity, which only data may hold: the data is written
    out again by itself, and the rest goes the usual way.
    """
    try:
        document = json.loads(text.decode())
        inputs = document.get("inputs") if isinstance(document, dict) else None
        entries = inputs if isinstance(inputs, list) else []
        taken = [entry.pop("data", None) for entry in entries if isinstance(entry, dict)]
        header = _DECODER.decode(json.dumps(document))
    except msgspec.ValidationError as misfit:
        raise _unfit(misfit, text) from misfit
    except (ValueError, RecursionError):
        raise _malformed(str(error)) from error
    replaced = [
        entry if data is None else msgspec.structs.replace(entry, data=Raw(json.dumps(data)))
        for entry, data in zip(header.inputs, taken, strict=True)
    ]
    return msgspec.structs.replace(header, inputs=tuple(replaced))


def _malformed(found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The infer request is no valid JSON: {found}. If binary data follows the JSON, give the length of "
        "the JSON in the header Inference-Header-Content-Length.",
        info=ErrorInfo.of(data_reasons.NO_JSON, found=found),
    )


def _unfit(error: msgspec.ValidationError, text: bytes) -> ServeError:
    """msgspec's sentence ("Expected `int`, got `str` - at `$.inputs[0].shape[1]`") in the words of JSON."""
    found, _, place = str(error).partition(" - at `$")
    where = f"at {place.strip('.`')}" if place else "at the top"
    if found.startswith("Invalid enum value"):
        found = (
            f"{found.replace('enum value', 'datatype')}; v2 has {', '.join(kind.wire for kind in DataType)}"
        )
    words = _QUOTED.sub(lambda quoted: _WORDS.get(quoted[1], quoted[0]), found)
    return ServeError(
        Code.INVALID,
        f"The infer request is not of the v2 form {where}: {words[:1].lower()}{words[1:]}. "
        'Expected is {"inputs": [{"name", "shape", "datatype", "data"}], ...}.',
        info=_fault(found, place, text) or ErrorInfo.of(data_reasons.NO_JSON, found=f"{words} {where}"),
    )


def _fault(found: str, place: str, text: bytes) -> ErrorInfo | None:
    """Say more of an input that is no object, or whose datatype does not exist; None where the text is no JSON."""
    at = _INPUT.match(place)
    try:
        is_short = len(text) <= _MOST_WITH_BARE_WORDS
        entry = json.loads(text)["inputs"][int(at[1])] if at is not None and is_short else None
    except (ValueError, RecursionError, LookupError, TypeError):  # msgspec refuses before it has read all
        return None
    if not isinstance(entry, dict):
        return None if entry is None else ErrorInfo.of(request_reasons.NO_DATA, input="")
    if found.startswith("Invalid datatype") and isinstance(entry.get("name"), str):
        return ErrorInfo.of(request_reasons.UNKNOWN_DATATYPE, input=entry["name"])
    return None
