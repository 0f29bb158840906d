"""Reads what a request brings to a translator: its body or form, by the field that holds it, as bytes, text or JSON.

Source: spec sheet `djl`, section 10: the data is the body, the field `data`, or the first one.
"""

import json
from collections.abc import Mapping

from trivium.codecs import json_documents
from trivium.codecs.header_text import essence
from trivium.codecs.v1_bodies import INSTANCES, judge_forms
from trivium.translators.faults import refusal_in_words, unfit
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart

MOST_JSON = 2**22
"""Bytes of JSON or text that a translator reads: reading them holds the interpreter."""

JSON = "application/json"


def body_of(request: Infer) -> Raw:
    """Return the body of a request: translators are asked about no others."""
    assert isinstance(request.payload, Raw), "tensors pass translators by"
    return request.payload


def data_of(raw: Raw) -> RawPart:
    """Return the part that holds the data. Raises INVALID for a request without any."""
    part = next((one for one in raw.parts if one.name in ("", "data", "body")), None)
    part = part or (raw.parts[0] if raw.parts else None)
    if part is None or not len(part.data):
        raise refusal_in_words("Input data is empty.")
    return part


def fields_of(raw: Raw) -> Mapping[str, str]:
    """Return the fields of a form and the arguments of the query as text; of repeated ones the first."""
    found: dict[str, str] = {}
    for part in raw.parts:
        if part.name:
            found.setdefault(part.name, text_of(part.data))
    for name, value in raw.query:
        found.setdefault(name, value)
    return found


def property_of(raw: Raw, name: str) -> str:
    """Return a header of the request by its name in lower case; empty where it has none."""
    return next((value for key, value in raw.properties.items() if key.lower() == name), "")


def content_type_of(raw: Raw, part: RawPart) -> str:
    """Return the content type of the data without its parameters, in lower case."""
    return essence(part.content_type or property_of(raw, "content-type"))


def instances_of(data: bytes | memoryview) -> bytes | None:
    """Return the list of rows of a body of KServe's v1 protocol as JSON; None for a body that has none by that name.
    Raises INVALID for one that has tensors beside them.
    """
    try:
        fields = json_documents.fields_of(data)
    except ServeError:
        return None  # whoever reads the whole says what is wrong with it
    judge_forms(fields)
    rows = fields.get(INSTANCES)
    return None if rows is None or not bytes(rows).lstrip().startswith(b"[") else bytes(rows)


def text_of(data: bytes | memoryview) -> str:
    """Decode UTF-8. Raises INVALID for what is none."""
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise unfit(f"The input is no UTF-8 text: {error.reason} at byte {error.start}.") from error


def json_of(data: bytes | memoryview) -> object:
    """Read JSON. Raises INVALID for what is none, or too much."""
    if len(data) > MOST_JSON:
        raise unfit(f"The input has {len(data)} bytes of JSON; {MOST_JSON} are read at most.")
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise refusal_in_words("Input is not a valid json.") from error
