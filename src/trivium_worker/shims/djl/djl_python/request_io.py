"""Holds requests of a rolling batch and what is generated for them: texts and tokens.

Source: spec sheet `djl`, section 11.3 and 11.6.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Token:
    """One generated token. `error_msg` says why there is none."""

    def __init__(
        self,
        id: int,
        text: str,
        log_prob: float | None = None,
        special_token: bool | None = None,
        error_msg: str | None = None,
    ) -> None:
        self.id = id
        self.text = text
        self.log_prob = log_prob
        self.special_token = special_token
        self.error_msg = error_msg
        self.request_id: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what an answer tells of it."""
        told: dict[str, Any] = {"id": self.id, "text": self.text, "log_prob": self.log_prob}
        if self.special_token:
            told["special_token"] = self.special_token
        if self.error_msg:
            told["error_msg"] = self.error_msg
        return told

    def as_tgi_dict(self) -> dict[str, Any]:
        """Return the same in the words of Text Generation Inference."""
        told: dict[str, Any] = {"id": self.id, "text": self.text, "logprob": self.log_prob}
        if self.special_token:
            told["special"] = self.special_token
        return told


@dataclass
class Sequence:
    """The tokens of one sequence, which are read one after the other."""

    tokens: list[Token] = field(default_factory=list)
    cumulative_log_prob: float = 0.0
    finish_reason: str | None = None
    last_token_index: int | None = None
    position: int = 0

    def set_next_token(self, token: Token, is_last_token: bool = False) -> None:
        """Add a token."""
        self.tokens.append(token)
        if is_last_token:
            self.last_token_index = len(self.tokens) - 1

    def has_next_token(self) -> bool:
        """Is there one that has not been read?"""
        return self.position < len(self.tokens)

    def get_next_token(self) -> tuple[Token | None, bool, bool]:
        """Return the next one, whether it is the first and whether it is the last."""
        if not self.has_next_token():
            return None, False, False
        at = self.position
        self.position += 1
        return self.tokens[at], at == 0, at == self.last_token_index


@dataclass
class RequestInput:
    """Holds the fields of every request."""

    request_id: int
    output_formatter: Callable[..., Any] | str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    server_parameters: dict[str, Any] = field(default_factory=dict)
    tgi_compat: bool = False


@dataclass
class TextInput(RequestInput):
    """A text to be continued."""

    input_text: Any = None
    input_ids: list[int] = field(default_factory=list)
    adapters: Any = None
    tokenizer: Any = None
    found_adapters: bool = False

    def prompt_tokens_length(self) -> int:
        """Count the tokens of the prompt."""
        return len(self.input_ids)


@dataclass
class RequestOutput:
    """Holds the fields of every answer."""

    request_id: int
    input: RequestInput
    finished: bool = False


@dataclass
class TextGenerationOutput(RequestOutput):
    """Generated sequences by index."""

    sequences: dict[int, Sequence] = field(default_factory=lambda: {0: Sequence()})
    best_sequence_index: int = 0
    prompt_tokens_details: list[Token] = field(default_factory=list)
    other_sequences_indices: list[int] = field(default_factory=list)

    def set_next_token(
        self,
        token: Token,
        sequence_index: int = 0,
        is_last_token: bool = False,
        finish_reason: str | None = None,
    ) -> None:
        """Add a token to one sequence."""
        sequence = self.sequences.setdefault(sequence_index, Sequence())
        sequence.set_next_token(token, is_last_token)
        if token.log_prob is not None:
            sequence.cumulative_log_prob += token.log_prob
        if finish_reason:
            sequence.finish_reason = finish_reason
