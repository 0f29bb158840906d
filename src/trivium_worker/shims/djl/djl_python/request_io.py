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


MEMBERS_OF_NEXT = 3
"""Members of what `Sequence.get_next_token` returns: 4, with the token's index, in releases since 0.32."""


@dataclass
class Sequence:
    """The tokens of one sequence, which are read one after the other."""

    tokens: list[Token] = field(default_factory=list)
    top_tokens: list[list[Token]] = field(default_factory=list)
    cumulative_log_prob: float = 0.0
    finish_reason: str | None = None
    stop_reason: str | None = None
    last_token_index: int | None = None
    position: int = 0
    top_position: int = 0

    def set_next_token(self, token: Token, is_last_token: bool = False) -> None:
        """Add a token."""
        self.tokens.append(token)
        if is_last_token:
            self.last_token_index = len(self.tokens) - 1

    def has_next_token(self) -> bool:
        """Is there one that has not been read?"""
        return self.position < len(self.tokens)

    def get_next_token(self) -> tuple[Any, ...]:
        """Return the next one, its index where four members are wanted, whether it is the first and whether it is the
        last.
        """
        at, token = self.position, None
        if self.has_next_token():
            token = self.tokens[at]
            self.position += 1
        place = token is not None and at == 0, token is not None and at == self.last_token_index
        return (token, *place) if MEMBERS_OF_NEXT == 3 else (token, 0 if token is None else at, *place)

    def get_last_token(self) -> Token | None:
        """Return the last one, where it has ended."""
        return None if self.last_token_index is None else self.tokens[self.last_token_index]

    def set_next_top_tokens(self, top_tokens: list[Token]) -> None:
        """Add what a token might have been."""
        self.top_tokens.append(top_tokens)

    def has_next_top_tokens(self) -> bool:
        """Is there such a list that has not been read?"""
        return self.top_position < len(self.top_tokens)

    def get_next_top_tokens(self) -> list[Token] | None:
        """Return the next such list."""
        if not self.has_next_top_tokens():
            return None
        self.top_position += 1
        return self.top_tokens[self.top_position - 1]


@dataclass
class RequestInput:
    """Holds the fields of every request."""

    request_id: Any = None
    output_formatter: Callable[..., Any] | str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    server_parameters: dict[str, Any] = field(default_factory=dict)
    tgi_compat: bool = False
    client_request_id: str | None = None


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

    request_id: Any
    input: Any
    finished: bool = False


@dataclass
class TextGenerationOutput(RequestOutput):
    """Generated sequences by index. The best one is that of `best_sequence_index`."""

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

    def set_next_top_tokens(self, top_tokens: list[Token], sequence_index: int) -> None:
        """Add what a token of one sequence might have been."""
        self.sequences[sequence_index].set_next_top_tokens(top_tokens)

    def set_best_sequence_index(self, sequence_index: int) -> None:
        """Say which sequence is the best."""
        self.best_sequence_index = sequence_index

    def set_finish_reason(self, finish_reason: str, sequence_index: int = 0) -> None:
        """Say why a sequence has ended."""
        self.sequences[sequence_index].finish_reason = finish_reason

    def get_tokens_as_dict(self, sequence_index: int = 0) -> list[dict[str, Any]]:
        """Return the tokens of a sequence as an answer shows them."""
        return self._told(self.sequences[sequence_index].tokens)

    def get_prompt_tokens_as_dict(self) -> list[dict[str, Any]]:
        """Return the tokens of the prompt as an answer shows them."""
        return self._told(self.prompt_tokens_details)

    def get_top_tokens_as_dict(self, sequence_index: int = 0) -> list[list[dict[str, Any]]]:
        """Return what the tokens of a sequence might have been."""
        return [self._told(tokens) for tokens in self.sequences[sequence_index].top_tokens]

    def _told(self, tokens: list[Token]) -> list[dict[str, Any]]:
        return [token.as_tgi_dict() if self.input.tgi_compat else token.as_dict() for token in tokens]
