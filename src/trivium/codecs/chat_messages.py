"""Messages of a chat as clients send them in OpenAI's form, made what a model's template takes.

The parts of a content are joined when all of them are text. Calls of tools, what tools said, and the reasoning of
earlier turns are the template's to use. What no model here can take (pictures, sound) is refused by its place. Pure.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from trivium.codecs.error_texts import quoted_json
from trivium.codecs.request_fields import MOST_SHOWN, RequestFields, field_error, unsupported_field
from trivium.types.ignored_fields import IgnoredFields

ROLES: Mapping[str, str] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
"""A client's word -> the template's."""

_KNOWN = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content")
_REASONING = ("reasoning", "reasoning_content")
_IGNORED = frozenset({"refusal", "annotations"})
_REFUSED: Mapping[str, str] = {
    "function_call": "Send it as one of 'tool_calls'.",
    "audio": "Send text.",
}
_MEDIA = frozenset({"image_url", "input_image", "image", "input_audio", "audio_url", "video_url", "file"})
_TEXTS = ("text", "input_text", "output_text")


def read_messages(
    value: object, field: str = "messages", ignored: IgnoredFields | None = None
) -> tuple[Mapping[str, object], ...]:
    """Return the messages of a request. INVALID, naming the place, for what is none. Fields that no message has are
    `ignored`, or else refused.
    """
    if not isinstance(value, list) or not value:
        found = "an empty list" if value == [] else _shown(value)
        raise field_error(
            field, f"The field '{field}' is {found}; expected is a list of messages, at least one."
        )
    return tuple(_message(one, f"{field}[{index}]", ignored) for index, one in enumerate(value))


def template_arguments(fields: RequestFields) -> Mapping[str, object]:
    """Return the variables of the chat template; what a field of its own says, `chat_template_kwargs` may say too."""
    told = {
        "reasoning_effort": fields.text("reasoning_effort"),
        "add_generation_prompt": fields.flag("add_generation_prompt"),
        "continue_final_message": fields.flag("continue_final_message"),
    }
    if told["add_generation_prompt"] and told["continue_final_message"]:
        why = "the last message is continued, or another one begun. Send 'add_generation_prompt' as false."
        raise fields.contradiction("continue_final_message", why)
    found = {name: value for name, value in told.items() if value is not None}
    return {**found, **fields.objects("chat_template_kwargs")}


def _message(value: object, place: str, ignored: IgnoredFields | None) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise field_error(
            place, f"The field '{place}' is {_shown(value)}; expected is an object with role and content."
        )
    role = value.get("role")
    if role == "function":
        raise unsupported_field(f"{place}.role", role, "Send it with the role 'tool'.")
    if not isinstance(role, str) or role not in ROLES:
        expected = ", ".join(ROLES)
        raise field_error(
            f"{place}.role", f"The field '{place}.role' is {_shown(role)}; expected is one of {expected}."
        )
    calls = _calls(value.get("tool_calls"), f"{place}.tool_calls")
    message: dict[str, object] = {"role": ROLES[role], "content": _content(value, calls, place, ignored)}
    if calls:
        message["tool_calls"] = calls
    for key in ("name", "tool_call_id"):
        if value.get(key) is not None:
            message[key] = _text(value[key], f"{place}.{key}")
    said = [_text(value[key], f"{place}.{key}") for key in _REASONING if value.get(key) is not None]
    if said:
        message |= dict.fromkeys(_REASONING, said[0])
    for key, given in value.items():
        if key in _KNOWN or key in _IGNORED or given is None or given == []:
            continue
        if key in _REFUSED:
            raise unsupported_field(f"{place}.{key}", given, _REFUSED[key])
        if ignored is None:
            at = f"{place}.{key[:MOST_SHOWN]}"
            raise field_error(at, f"The field '{at}' is {_shown(given)}, which no message has. Leave it out.")
        ignored.add(f"messages.{key[:MOST_SHOWN]}", _MESSAGE_FIELDS)
    return message


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise field_error(place, f"The field '{place}' is {_shown(value)}; expected is a string.")
    return value


def _calls(value: object, place: str) -> list[object]:
    """Return the calls of tools of an earlier turn, as templates take them: with arguments that are objects."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise field_error(place, f"The field '{place}' is {_shown(value)}; expected is a list of calls.")
    return [_call(one, f"{place}[{index}]") for index, one in enumerate(value)]


def _call(value: object, place: str) -> Mapping[str, object]:
    function = value.get("function") if isinstance(value, dict) else None
    if (
        not isinstance(value, dict)
        or not isinstance(function, dict)
        or not isinstance(function.get("name"), str)
    ):
        expected = 'expected is {"id": string, "type": "function", "function": {"name": string, "arguments": string}}'
        raise field_error(place, f"The field '{place}' is {_shown(value)}; {expected}.")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # a model may have written it
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
    return {**value, "function": {**function, "arguments": {} if arguments is None else arguments}}


def _content(
    message: Mapping[str, Any], calls: list[object], place: str, ignored: IgnoredFields | None
) -> str:
    value, place = message.get("content"), f"{place}.content"
    if isinstance(value, str):
        return value
    if not value and message.get("role") == "assistant":
        says = (message.get(key) for key in ("refusal", *_REASONING))
        if calls or any(isinstance(one, str) for one in says):
            return ""
    if not isinstance(value, list) or not value:
        raise field_error(
            place, f"The field '{place}' is {_shown(value)}; expected is a string or a list of texts."
        )
    return "\n".join(_part(one, f"{place}[{index}]", ignored) for index, one in enumerate(value))


def _part(value: Any, place: str, ignored: IgnoredFields | None) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in _MEDIA:
        raise unsupported_field(f"{place}.type", kind, "Send parts of type text alone.")
    key = "refusal" if kind == "refusal" else "text"
    if kind not in (*_TEXTS, "refusal") or not isinstance(value.get(key), str):
        expected = 'expected is {"type": "text", "text": string}'
        raise field_error(place, f"The field '{place}' is {_shown(value)}; {expected}.")
    if ignored is not None:
        for name, given in value.items():
            if name not in ("type", key) and given is not None and given != []:
                ignored.add(f"messages.content.{name[:MOST_SHOWN]}")
    text: str = value[key]
    return text


def _shown(value: object) -> str:
    return quoted_json(value, MOST_SHOWN)


_MESSAGE_FIELDS = tuple(f"messages.{name}" for name in _KNOWN)
