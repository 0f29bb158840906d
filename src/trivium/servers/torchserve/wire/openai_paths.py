"""Predictions of a model of `vllm_handler`: below /predictions/MODEL/VERSION stands OpenAI's own path.

Source: TorchServe's vllm_handler. Its errors are answers of status 200; here they have their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trivium.codecs.chat_answers import ChatIdentity
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.codecs.request_fields import decode_request
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw
from trivium.wires.openai.answer import OpenAiEncoder

_CHAT, _COMPLETION = "v1/chat/completions", "v1/completions"


def asks_as_openai(parameters: Mapping[str, str]) -> bool:
    """Tell whether a model with these parameters is asked so."""
    return parameters.get("openai_paths") == "true"


@dataclass(frozen=True, slots=True)
class OpenAiPaths:
    """Makes what reads such requests. `epoch` says when one came, in seconds of the Unix epoch; `ignored` tells of
    fields that have no effect, and without it they are refused.
    """

    epoch: Callable[[], float] = lambda: 0.0
    ignored: IgnoredFieldLog | None = None

    def encoder(self, raw: Raw, model: str, request_id: str, accept: str) -> OpenAiEncoder:
        """Return what reads the request, and writes its answer. NOT_FOUND for another path."""
        path = (raw.path or "").strip("/")
        if path not in (_CHAT, _COMPLETION):
            raise ServeError(
                Code.NOT_FOUND,
                f"The model {model!r} is asked as OpenAI's API is, and {path[:80] or 'no path'!r} is none of its "
                f"paths. Ask /predictions/{model}/VERSION/{_CHAT}, or .../{_COMPLETION}.",
            )
        document = decode_request(raw.parts[0].data if raw.parts else b"")
        named = document.get("model")
        kind = "chatcmpl" if path == _CHAT else "cmpl"
        name = named if isinstance(named, str) and named else model
        identity = ChatIdentity(f"{kind}-{request_id}", int(self.epoch()), name)
        return OpenAiEncoder(identity, request_id, document, path == _CHAT, accept, self.ignored)
