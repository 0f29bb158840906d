"""Messages of a chat as clients send them in OpenAI's form, made what a model's template takes.

The parts of a content are joined when all of them are text. What no model here can take (pictures, sound, calls of
tools) is refused by its place in the request. Pure.
"""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.error_texts import quoted_json
from trivium.codecs.request_fields import MOST_SHOWN, field_error, unsupported_field

ROLES: Mapping[str, str] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
}
"""A client's word -> the template's."""

_TOOLS = ("tool", "function")
_IGNORED = frozenset({"refusal", "annotations"})
_REFUSED: Mapping[str, str] = {
    "tool_calls": "Send what the tool said as text of the user.",
    "function_call": "Send what the function said as text of the user.",
    "tool_call_id": "Send what the tool said as text of the user.",
    "audio": "Send text.",
}
_MEDIA = frozenset({"image_url", "input_image", "image", "input_audio", "audio_url", "video_url", "file"})


def read_messages(value: object, field: str = "messages") -> tuple[Mapping[str, object], ...]:
    """Return the messages of a request. INVALID, naming the place, for what is none."""
    if not isinstance(value, list) or not value:
        found = "an empty list" if value == [] else _shown(value)
        raise field_error(
            field, f"The field '{field}' is {found}; expected is a list of messages, at least one."
        )
    return tuple(_message(one, f"{field}[{index}]") for index, one in enumerate(value))


def _message(value: object, place: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise field_error(
            place, f"The field '{place}' is {_shown(value)}; expected is an object with role and content."
        )
    role = value.get("role")
    if role in _TOOLS:
        raise unsupported_field(f"{place}.role", role, "Send what the tool said as text of the user.")
    if not isinstance(role, str) or role not in ROLES:
        expected = ", ".join(ROLES)
        raise field_error(
            f"{place}.role", f"The field '{place}.role' is {_shown(role)}; expected is one of {expected}."
        )
    message: dict[str, object] = {
        "role": ROLES[role],
        "content": _content(value.get("content"), f"{place}.content"),
    }
    for key, given in value.items():
        if key in ("role", "content") or key in _IGNORED or given is None or given == []:
            continue
        if key in _REFUSED:
            raise unsupported_field(f"{place}.{key}", given, _REFUSED[key])
        if key != "name" or not isinstance(given, str):
            at = f"{place}.{key[:MOST_SHOWN]}"
            raise field_error(at, f"The field '{at}' is {_shown(given)}, which no message has. Leave it out.")
        message["name"] = given
    return message


def _content(value: object, place: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise field_error(
            place, f"The field '{place}' is {_shown(value)}; expected is a string or a list of texts."
        )
    return "\n".join(_part(one, f"{place}[{index}]") for index, one in enumerate(value))


def _part(value: Any, place: str) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in _MEDIA:
        raise unsupported_field(f"{place}.type", kind, "Send parts of type text alone.")
    key = "refusal" if kind == "refusal" else "text"
    if kind not in ("text", "refusal") or not isinstance(value.get(key), str):
        expected = 'expected is {"type": "text", "text": string}'
        raise field_error(place, f"The field '{place}' is {_shown(value)}; {expected}.")
    text: str = value[key]
    return text


def _shown(value: object) -> str:
    return quoted_json(value, MOST_SHOWN)
