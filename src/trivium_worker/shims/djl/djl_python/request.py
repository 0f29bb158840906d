"""One request of a rolling batch: its parameters, its tokens, and the text of its answer so far.

Source: spec sheet `djl`, sections 11.3 and 11.5. Formats `json` (all at the end) and `jsonlines` (a line per token), or
a function that gets the output with its next token, or, as in releases before 0.28, that token and what is known of it.
"""

import inspect
import json
from typing import Any

from djl_python.request_io import RequestOutput, TextGenerationOutput, TextInput, Token

_JSON, _LINES = "application/json", "application/jsonlines"
_FAILED = 424
_LEAST_OF_TOKENS, _MOST_OF_TOKENS = 3, 6
"""Arguments of an output formatter of the older form."""


class Request:
    """One request, of a `TextInput`, or of an id, a text and parameters."""

    def __init__(  # noqa: PLR0913 - as in the original
        self,
        request_input: Any = None,
        input_text: Any = None,
        parameters: dict[str, Any] | None = None,
        details: bool = False,
        input_ids: list[int] | None = None,
        adapter: Any = None,
        output_formatter: Any = None,
    ) -> None:
        if not isinstance(request_input, TextInput):
            told = dict(parameters or {}, details=True) if details else dict(parameters or {})
            request_input = TextInput(
                0 if request_input is None else request_input,
                output_formatter,
                told,
                dict(parameters or {}),
                input_text=input_text,
                input_ids=input_ids or [],
                adapters=adapter,
            )
        self.id = request_input.request_id
        self.request_input: TextInput = request_input
        self.input_text = request_input.input_text
        self.parameters = request_input.server_parameters
        self.adapter = request_input.adapters
        self.last_token = False
        self.request_output = TextGenerationOutput(self.id, request_input)
        self.next_token_str = ""
        self.error = ""
        self.error_code = 0
        self.has_said = False
        self._formatter = _formatter_of(request_input)
        self._takes_tokens = callable(self._formatter) and takes_tokens(self._formatter)

    def __repr__(self) -> str:
        return (
            f"<Request id: {self.id} Input {self.input_text} Parameters {self.parameters} "
            f"Finished {self.last_token}>"
        )

    def set_next_token(
        self,
        next_token: Token | str,
        *more: Any,
        last_token: bool = False,
        finish_reason: str | None = None,
        prompt_tokens_details: list[Token] | None = None,
    ) -> None:
        """Add a token; `more` is whether it is the last, and why, behind an output formatter where one is given."""
        rest = [one for one in more if not (one is None or callable(one))]
        if rest:
            last_token = bool(rest[0])
            finish_reason = rest[1] if len(rest) > 1 else finish_reason
        token = Token(-1, next_token) if isinstance(next_token, str) else next_token
        token.request_id = self.id
        self.request_output.set_next_token(token, 0, last_token, finish_reason)
        if prompt_tokens_details:
            self.request_output.prompt_tokens_details = prompt_tokens_details
        self.last_token = self.request_output.finished = last_token
        if finish_reason == "error":
            self.error, self.error_code = token.error_msg or "the request failed", _FAILED

    def get_next_token(self) -> str:
        """Return what the answer has more of, by the tokens that came. A function that writes a whole answer is called
        once, one that streams for each token.
        """
        if self.next_token_str:
            return self.next_token_str
        streams = self._takes_tokens or bool(self.request_input.parameters.get("stream"))
        if callable(self._formatter) and not streams:
            self.next_token_str = str(self._formatter(self.request_output))
            return self.next_token_str
        sequence = self.request_output.sequences[self.request_output.best_sequence_index]
        while not self.next_token_str and sequence.has_next_token():
            self.next_token_str = self._written()
        while sequence.has_next_token():
            self.next_token_str += self._written()
        return self.next_token_str

    def reset_next_token(self) -> None:
        """Forget what `get_next_token` has returned."""
        self.has_said = self.has_said or bool(self.next_token_str)
        self.next_token_str = ""

    def is_last_token(self) -> bool:
        """Has it ended?"""
        return self.last_token

    def get_content_type(self) -> str:
        """Return the type of its answer; empty where a function of its own formats it."""
        return "" if callable(self._formatter) else (_LINES if self._formatter == "jsonlines" else _JSON)

    def _written(self) -> str:
        if self._takes_tokens:
            return self._of_token()
        if callable(self._formatter):
            before = self.request_output.sequences[0].position
            text = str(self._formatter(self.request_output))
            if self.request_output.sequences[0].position == before:  # it has read none: then this was for one
                self.request_output.sequences[0].get_next_token()
            return text
        token, *_, is_last = self.request_output.sequences[0].get_next_token()
        assert token is not None, "asked only while there is one"
        if self._formatter == "jsonlines":
            return self._line(token, is_last)
        return _text(self._whole()) if is_last else ""

    def _of_token(self) -> str:
        """Return what a function of the older form makes of the next token."""
        output, given = self.request_output, self.request_input
        sequence = output.sequences[output.best_sequence_index]
        details: dict[str, Any] = {}
        if given.parameters.get("details"):
            details = {
                "finish_reason": sequence.finish_reason,
                "tokens": output.get_tokens_as_dict(output.best_sequence_index),
                "generated_tokens": len(sequence.tokens),
                "inputs": given.input_text,
                "parameters": given.parameters,
                "prompt_tokens": len(output.prompt_tokens_details),
            }
        elif sequence.finish_reason == "error":
            details = {"finish_reason": "error"}
        token, *_, is_first, is_last = sequence.get_next_token()
        text = given.input_text if given.parameters.get("return_full_text") else ""
        if is_last:
            text += "".join(one.text for one in sequence.tokens)
        arguments = (token, is_first, is_last, details, text, output.request_id)
        return str(self._formatter(*arguments[: _most(self._formatter)]))

    def _line(self, token: Token, is_last: bool) -> str:
        told = token.as_tgi_dict() if self.request_input.tgi_compat else token.as_dict()
        line: dict[str, Any] = {"token": told}
        if is_last:
            line.update(self._whole(with_tokens=False))
        return _text(line) + "\n"

    def _whole(self, with_tokens: bool = True) -> dict[str, Any]:
        sequence = self.request_output.sequences[0]
        if sequence.finish_reason == "error":
            whole: dict[str, Any] = {"generated_text": None, "error": self.error, "code": 400}
        else:
            prompt = self.input_text if self.request_input.parameters.get("return_full_text") else ""
            whole = {"generated_text": prompt + "".join(token.text for token in sequence.tokens)}
        if self.request_input.parameters.get("details"):
            details: dict[str, Any] = {
                "finish_reason": sequence.finish_reason,
                "generated_tokens": len(sequence.tokens),
                "inputs": self.input_text,
            }
            if with_tokens:
                details["tokens"] = [token.as_dict() for token in sequence.tokens]
            whole["details"] = details
        return whole


def takes_tokens(function: Any) -> bool:
    """Tell whether an output formatter has the form of releases before 0.28: it takes a token and facts about it."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return False
    first = parameters[0].annotation
    if first is Token or first == "Token":
        return True
    is_output = isinstance(first, type) and issubclass(first, RequestOutput)
    needed = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return not is_output and len(needed) >= _LEAST_OF_TOKENS


def _most(function: Any) -> int:
    """Return how many of the arguments a function of the older form takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return _MOST_OF_TOKENS
    return min(len(parameters), _MOST_OF_TOKENS)


def _formatter_of(given: TextInput) -> Any:
    asked = given.parameters.get("output_formatter", given.output_formatter)
    if callable(asked) or asked in ("json", "jsonlines"):
        return asked
    if asked is None:
        return "jsonlines" if given.parameters.get("stream") else "json"
    raise ValueError(
        f"the output_formatter {asked!r} is not supported; expected json, jsonlines or a function"
    )


def _text(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)
