"""How tokens are chosen: the arguments that the engine `vllm` gives, judged as vLLM judges them."""

from dataclasses import dataclass, field
from enum import Enum

from vllm.exceptions import VLLMValidationError


class RequestOutputKind(Enum):
    """What an output holds."""

    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    """Those of one request."""

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    detokenize: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    logit_bias: dict[int, float] | None = field(default=None)

    def __post_init__(self):
        if not -2.0 <= self.presence_penalty <= 2.0:
            raise VLLMValidationError(
                f"presence_penalty must be in [-2, 2], got {self.presence_penalty}.",
                parameter="presence_penalty",
                value=self.presence_penalty,
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise VLLMValidationError("max_tokens must be at least 1", parameter="max_tokens")
