"""Reads a prediction's bytes as an `Infer`: headers become properties, the query and the body's parts are kept apart.

Source: spec sheet `djl`, sections 4.2, 4.3 and 4.7. How a handler sees all this is its dialect's business.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from trivium.codecs import forms
from trivium.codecs.error_table import said
from trivium.codecs.header_text import essence
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate
from trivium.types.operations import PREDICT, Infer
from trivium.types.payload import Raw, RawForm, RawPart
from trivium.types.spoken import spoken
from trivium.types.wire import Body, Head, Target

_ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"
_PRIORITY = b"x-priority"
_ADAPTER = b"x-amzn-sagemaker-adapter-identifier"
_MEMBER = b'"adapters"'
_MOST_JSON = 2**18
"""Bytes of JSON that are searched for the name of an adapter."""

_LONGEST_NUMBER = 9
_MAX_ARGUMENTS = 1000
Query = tuple[tuple[str, str], ...]

ReadGenerate = Callable[[Raw, Mapping[str, str]], Generate]
"""Reads a body, with the parameters of its model, as a request to generate."""


@dataclass(frozen=True, slots=True)
class DjlHead:
    """Holds what a head says of a prediction, read once for all requests that repeat it: nobody changes it.

    `handler` names the function that answers, `adapter` what the head alone says of that; a form has fields. JSON that
    is called a form goes to handlers as JSON, unless it `keeps_forms`.
    """

    head: Head
    accept: str
    content_type: str
    properties: Mapping[str, str]
    query: Query
    handler: str
    priority: int
    adapter: str
    is_form: bool
    is_json: bool
    keeps_forms: bool


def read_head(head: Head, keeps_forms: bool = False) -> DjlHead:
    """Read a head. INVALID for a query or a priority that cannot be."""
    properties = _properties(head)
    query = _query(head)
    content_type = properties.get("content-type", "")
    kind = essence(content_type)
    return DjlHead(
        head,
        head.headers.get(b"accept", b"").decode("latin-1"),
        head.headers.get(b"content-type", b"").decode("latin-1"),
        properties,
        query,
        _property(properties, "handler"),
        _priority(head),
        _argument(query, "adapter") or head.headers.get(_ADAPTER, b"").decode("latin-1"),
        kind in (forms.MULTIPART, forms.URL_ENCODED),
        kind == "application/json",
        keeps_forms,
    )


def decode_infer(
    known: DjlHead,
    target: Target,
    body: Body,
    request_id: str,
    may_name_handler: bool = False,
    as_generate: ReadGenerate | None = None,
) -> Infer:
    """The operation of a prediction, whose parts view the body. INVALID, TOO_LARGE or UNSUPPORTED.

    Where it `may_name_handler`, the property `handler` names the function that answers. `as_generate` reads the body
    for a model that generates.
    """
    if known.handler and not may_name_handler:
        raise said(
            Code.INVALID,
            spoken(
                "The request has a header, or custom attribute, named handler. Which function answers is the model's "
                "to say (option.handler); send the request without it, or start the server with "
                "--djl-handler-override."
            ),
            "The handler can't be overridden in a request",
        )
    properties, query = known.properties, known.query
    parts, whole = _parts(known, body)
    model, version = target.model, target.version
    if not model:
        model = named("model_name", query, properties, parts)
        version = _argument(query, "model_version") or _property(properties, "model_version")
    return Infer(
        model,
        Raw(parts, properties, query, lease=body.lease, form=RawForm.SIGNED, whole=whole),
        version,
        request_id,
        priority=known.priority,
        method=known.handler or PREDICT,
        adapter=known.adapter or _adapter(known, parts, whole),
        as_generate=as_generate,
    )


def _parts(known: DjlHead, body: Body) -> tuple[tuple[RawPart, ...], RawPart | None]:
    """Return the parts of a body, and the whole of one that is called a form and is JSON."""
    if not known.is_form:
        return (RawPart(body.data, known.content_type),), None
    whole = forms.called_form(known.content_type, body.data)
    if whole is not None and not known.keeps_forms:
        return (whole,), whole
    return forms.parts(known.content_type, body.data), whole


def _properties(head: Head) -> dict[str, str]:
    """Headers under their names, and the pairs of the custom attributes in place of that header."""
    properties = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}
    attributes = properties.pop(_ATTRIBUTES, "")
    for pair in attributes.split(";") if attributes else ():
        name, sign, value = pair.partition("=")
        if sign and name.strip():
            properties[name.strip()] = value.strip()
    return properties


def _query(head: Head) -> Query:
    if not head.query:
        return ()
    try:
        return tuple(
            parse_qsl(head.query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_ARGUMENTS)
        )
    except ValueError as error:  # of which UnicodeDecodeError is one
        raise ServeError(
            Code.INVALID,
            f"The query string cannot be read ({error}). Send at most {_MAX_ARGUMENTS} arguments, percent-encoded "
            "as UTF-8.",
        ) from error


def named(name: str, query: Query, properties: Mapping[str, str], parts: tuple[RawPart, ...]) -> str:
    """Return a value that the query, a property or a form field may give; empty where none does. INVALID for a field
    that is no text.
    """
    found = _argument(query, name) or _property(properties, name)
    if found:
        return found
    for part in parts:
        if part.name == name:
            try:
                return bytes(part.data).decode()
            except UnicodeDecodeError as error:
                raise ServeError(Code.INVALID, f"The form field {name} is not UTF-8. Send text.") from error
    return ""


def _argument(query: Query, name: str) -> str:
    """Return an argument of the query, of repeated ones the first."""
    return next((value for key, value in query if key == name), "")


def _adapter(known: DjlHead, parts: tuple[RawPart, ...], whole: RawPart | None) -> str:
    """Return the adapter that the body of a request is for, if a form field or a member of its JSON names one.

    A list of them, one for each input, is the handler's to read.
    """
    if known.is_form and parts and parts[0].name:
        return next((_text(part.data) for part in parts if part.name == "adapter"), "")
    data = parts[0].data if (known.is_json or whole is not None) and parts else b""
    if not 0 < len(data) <= _MOST_JSON or _MEMBER not in bytes(data):
        return ""
    try:
        document = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return ""  # the handler will say so
    found = document.get("adapters") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def _text(data: bytes | memoryview) -> str:
    return bytes(data).decode("utf-8", "replace")


def _property(properties: Mapping[str, str], name: str) -> str:
    for key, value in properties.items():
        if key.lower() == name:
            return value
    return ""


def _priority(head: Head) -> int:
    """Smaller goes first; 0 in an `Infer` would mean none was given, so that is where 1 begins."""
    value = head.headers.get(_PRIORITY)
    if value is None:
        return 0
    text = value.strip().decode("latin-1")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER):
        raise ServeError(
            Code.INVALID, f"The header x-priority is {text[:40]!r}; expected is an integer, such as 3."
        )
    return max(1, int(text))
