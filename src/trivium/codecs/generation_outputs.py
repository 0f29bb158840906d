"""Outputs of a model that generates other than its text, which a request asks for by inputs of its own.

Source: Triton's vLLM backend, whose names and forms these are. This is pure.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from trivium.types.datatype import DataType
from trivium.types.generation import Finish, Generated, GeneratedChoice, TokenText
from trivium.types.payload import Tensor
from trivium.types.spec import TensorSpec

REASON, SUM, SCORES = "finish_reason", "cumulative_logprob", "logprobs"
READ, MADE = "num_input_tokens", "num_output_tokens"
ASKED: Mapping[str, str] = {f"return_{name}": name for name in (REASON, SUM, SCORES, READ, MADE)}
"""Input -> the output that it asks for."""

ASKS = tuple(TensorSpec(name, DataType.BOOL, (1,), optional=True) for name in ASKED)
TELLS = (
    TensorSpec(REASON, DataType.BYTES, (-1,)),
    TensorSpec(SUM, DataType.FP32, (-1,)),
    TensorSpec(SCORES, DataType.BYTES, (-1,)),
    TensorSpec(READ, DataType.UINT32, (1,)),
    TensorSpec(MADE, DataType.UINT32, (-1,)),
)
NEED_SCORES = frozenset({SUM, SCORES})
"""Those for which each token's log probability is computed."""

_REASONS: Mapping[Finish | None, str] = {
    None: "None",
    Finish.EOS: "stop",
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.CANCELLED: "abort",
    Finish.ERROR: "error",
}


def further_outputs(
    part: Generated, choices: Sequence[GeneratedChoice], asked: Sequence[str]
) -> list[Tensor]:
    """Return the outputs that were asked for, an element for each choice of a part, in its order."""
    return [_MAKE[name](name, part, choices) for name in asked]


def _reasons(name: str, part: Generated, choices: Sequence[GeneratedChoice]) -> Tensor:
    return _texts(name, [_REASONS[choice.finish].encode() for choice in choices])


def _sums(name: str, part: Generated, choices: Sequence[GeneratedChoice]) -> Tensor:
    sums = [sum(token.logprob or 0.0 for token in choice.tokens) for choice in choices]
    numbers = np.array(sums, np.float32)
    return Tensor(name, DataType.FP32, numbers.shape, numbers)


def _scores(name: str, part: Generated, choices: Sequence[GeneratedChoice]) -> Tensor:
    return _texts(name, [msgspec.json.encode(list(map(_ranked, choice.tokens))) for choice in choices])


def _ranked(token: TokenText) -> dict[str, dict[str, object]]:
    """Return a token and its alternatives as vLLM writes them: by id, each with its rank among the likeliest."""
    found: dict[str, dict[str, object]] = {
        str(other): {"logprob": logprob, "rank": rank, "decoded_token": name}
        for rank, (other, name, logprob) in enumerate(token.alternatives, 1)
    }
    own: dict[str, object] = {"logprob": token.logprob, "rank": None}
    found.setdefault(str(token.id), own | {"decoded_token": token.name or token.text})
    return found


def _read(name: str, part: Generated, choices: Sequence[GeneratedChoice]) -> Tensor:
    return _counts(name, [0 if part.usage is None else part.usage.prompt_tokens])


def _made(name: str, part: Generated, choices: Sequence[GeneratedChoice]) -> Tensor:
    return _counts(name, [len(choice.ids) for choice in choices])


def _counts(name: str, counts: Sequence[int]) -> Tensor:
    numbers = np.array(counts, np.uint32)
    return Tensor(name, DataType.UINT32, numbers.shape, numbers)


def _texts(name: str, texts: Sequence[bytes]) -> Tensor:
    made = np.array(texts, dtype=object)
    return Tensor(name, DataType.BYTES, made.shape, made)


_MAKE: Mapping[str, Callable[[str, Generated, Sequence[GeneratedChoice]], Tensor]] = {
    REASON: _reasons,
    SUM: _sums,
    SCORES: _scores,
    READ: _read,
    MADE: _made,
}
