"""Says what an engine has against a request to generate in the names of the wire that was asked. Pure.

An engine knows no wire: its errors name fields by their neutral names, and each wire has its own for them.
"""

from collections.abc import Mapping

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import ServeError

_NEUTRAL = {
    "stop_ids": "stop_token_ids",
    "choices": "n",
    "truncate": "truncate_prompt_tokens",
    "processor": "logits_processor",
    "template_arguments": "chat_template_kwargs",
    "prompts": "prompt",
}
_OF_GENERATION = (reasons.GENERATION_FIELD, reasons.TOO_LONG)


def in_words_of(error: ServeError, names: Mapping[str, str]) -> ServeError:
    """Return an engine's error about a field with the `names` of a wire's own; any other error as it is."""
    if error.reason not in _OF_GENERATION:
        return error
    known = {**_NEUTRAL, **names}
    told = error.metadata
    field = str(told.get("field", ""))
    start = len(f"Model '{told.get('model', '')}': ")
    message = error.message[start:]
    for name in (field, *filter(None, str(told.get("names", "")).split(","))):
        message = message.replace(f"'{name}'", f"'{known.get(name, name)}'", 1)
    info = ErrorInfo(error.reason, {**told, "field": known.get(field, field)})
    return ServeError(
        error.code, error.message[:start] + message, error.retry_after, status=error.status, info=info
    )


def wire_names(sampling: Mapping[str, str], **inputs: str) -> dict[str, str]:
    """Return a wire's names by neutral name, from its table of sampling fields and what it calls the inputs. Of several
    names the first in the table counts.
    """
    return {attribute: name for name, attribute in reversed(list(sampling.items()))} | inputs
