"""Reads the prompts of a request: chats by the model's template, texts by its tokenizer, each within the context.

It runs in a thread of the worker and in the process beside it, and imports nothing heavy. What is too long for the
context whatever it says is refused before it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import msgspec

from trivium.codecs.text_bounds import byte_size
from trivium.engines.hf.requests import (
    GenerationLimits,
    beyond_bytes,
    beyond_context,
    field_fault,
    only_reads,
    refusal,
)
from trivium.engines.hf.token_length_policy import TokenLength
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Embeddings, Generate, Sampling

_TEMPLATE_OWN = frozenset({"add_generation_prompt", "continue_final_message"})
"""Arguments of the template's call that a request may give; its others are ours."""


@dataclass(frozen=True, slots=True)
class PromptInput:
    """One prompt as tokens or embeddings, and its text where that is to be echoed."""

    ids: tuple[int, ...] = ()
    embeds: Embeddings | None = None
    text: str = ""

    @property
    def size(self) -> int:
        """Return how many inputs it has."""
        return len(self.ids) if self.embeds is None else self.embeds.tokens


class PromptTokenizer:
    """Makes prompts of requests that have been judged. One thread uses it."""

    def __init__(self, tokenizer: Any, limits: GenerationLimits, length: TokenLength) -> None:
        self.limits = limits
        self.length = length
        self._tokenizer = tokenizer
        self._own = frozenset(signature(tokenizer.apply_chat_template).parameters) - _TEMPLATE_OWN

    def judge(self, generate: Generate) -> None:
        """Raise INVALID for a text with more bytes than the context can hold, whatever its tokens are."""
        if generate.sampling.truncate is None and not only_reads(generate):
            for text in generate.prompts or ():
                self._judge_bytes(text, "prompt")

    def prompts(self, generate: Generate) -> list[PromptInput]:
        """Return the prompts of a request. Whatever template and tokenizer raise is INVALID, and names them."""
        try:
            return [self._bounded(generate, prompt) for prompt in self._read(generate)]
        except ServeError:
            raise
        except (
            BaseException
        ) as error:  # a panic of Rust is no Exception, and code of a folder may ask for the exit
            raise self._unread(generate, error) from error

    def _judge_bytes(self, text: str, field: str) -> None:
        each = self.length.most_bytes
        if each is None or len(text) * 4 <= each:
            return
        most = each * (self.limits.context - 1)
        if (size := byte_size(text)) > most:
            raise beyond_bytes(self.limits, field, size, most)

    def _read(self, generate: Generate) -> list[PromptInput]:
        if generate.embeds is not None:
            return [PromptInput(embeds=generate.embeds)]
        if generate.ids is not None:
            return [PromptInput(ids, text=self._echo(generate, ids)) for ids in generate.ids]
        if generate.messages is not None:
            text = self._template(generate)
            if generate.sampling.truncate is None and not only_reads(generate):
                self._judge_bytes(text, "messages")
            adds_special = bool(generate.adds_special)
            return [self._encoded(generate, text, adds_special)]
        adds_special = generate.adds_special is not False
        return [self._encoded(generate, text, adds_special) for text in generate.prompts or ()]

    def _echo(self, generate: Generate, ids: Sequence[int]) -> str:
        if not generate.echoes:
            return ""
        hides = not generate.sampling.shows_special
        return str(
            self._tokenizer.decode(list(ids), skip_special_tokens=hides, clean_up_tokenization_spaces=False)
        )

    def _template(self, generate: Generate) -> str:
        if not self._tokenizer.chat_template:
            raise field_fault(
                self.limits.model,
                "messages",
                "'messages' need a chat template, and the model has none. Send a prompt, or put chat_template.jinja "
                "into its folder.",
            )
        arguments = dict(generate.template_arguments)
        if clash := sorted(self._own & arguments.keys()):
            raise refusal(
                self.limits.model, "template_arguments", "arguments of the template's own", ", ".join(clash)
            )
        if not arguments.get("continue_final_message"):
            arguments.setdefault("add_generation_prompt", True)
        tools = None if generate.tools is None else [_plain(tool) for tool in generate.tools]
        messages = [_plain(message) for message in generate.messages or ()]
        return str(self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **arguments))

    def _encoded(self, generate: Generate, text: str, adds_special: bool) -> PromptInput:
        ids = self._tokenizer(text, add_special_tokens=adds_special)["input_ids"]
        is_computed = not only_reads(generate)
        if not ids and is_computed and self._tokenizer.bos_token_id is not None:
            ids = [self._tokenizer.bos_token_id]
        if not ids and is_computed:
            raise refusal(self.limits.model, "prompt", "a text of one token at least", "empty")
        vocabulary = self.limits.vocabulary
        if beyond := next((token for token in ids if token >= vocabulary), None):
            raise ServeError(
                Code.MODEL_FAILED,
                f"Model '{self.limits.model}': its tokenizer made token {beyond} of the prompt, and the model knows "
                f"{vocabulary}. Put the tokenizer into its folder that belongs to it.",
            )
        return PromptInput(tuple(ids), text=text if generate.echoes else "")

    def _bounded(self, generate: Generate, prompt: PromptInput) -> PromptInput:
        most = generate.sampling.truncate
        if most == -1:
            most = max(1, self.limits.context - max(1, generate.sampling.max_tokens or 1))
        if most is not None and prompt.size > most:
            prompt = _last(prompt, most, self.limits.width)
        if prompt.size >= self.limits.context and not only_reads(generate):
            raise beyond_context(self.limits, input_field(generate), prompt.size)
        return prompt

    def _unread(self, generate: Generate, error: BaseException) -> ServeError:
        text = str(error).strip() or "no reason given"
        return field_fault(
            self.limits.model,
            "prompt" if generate.messages is None else "messages",
            f"{unreadable(generate)}: {type(error).__name__}: {text}. Send what the model's template and tokenizer "
            "take.",
        )


class _Job(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Holds the fields of a request that reading its texts takes."""

    prompts: tuple[str, ...] | None
    messages: tuple[Mapping[str, object], ...] | None
    ids: tuple[tuple[int, ...], ...] | None
    truncate: int | None
    max_tokens: int | None
    echoes: bool
    tools: tuple[Mapping[str, object], ...] | None
    template_arguments: Mapping[str, object]
    adds_special: bool | None
    scores_prompts: bool
    shows_special: bool


class _Told(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Ids and text of each prompt, or the error's code and words."""

    prompts: tuple[tuple[tuple[int, ...], str], ...] = ()
    code: Code | None = None
    message: str = ""
    reason: str = ""
    metadata: Mapping[str, str] = {}


_read_job = msgspec.json.Decoder(_Job).decode
_read_told = msgspec.json.Decoder(_Told).decode


class PromptWork:
    """Reads prompts in a helper process of the worker: bytes in, bytes out."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, work: bytes) -> bytes:
        """Do a piece of work that `as_work` wrote."""
        job = _read_job(work)
        generate = Generate(
            job.prompts,
            job.messages,
            job.ids,
            sampling=Sampling(
                truncate=job.truncate, max_tokens=job.max_tokens, shows_special=job.shows_special
            ),
            echoes=job.echoes,
            tools=job.tools,
            template_arguments=job.template_arguments,
            adds_special=job.adds_special,
            scores_prompts=job.scores_prompts,
        )
        try:
            told = _Told(tuple((prompt.ids, prompt.text) for prompt in self._tokenizer.prompts(generate)))
        except ServeError as error:
            facts = {name: str(value) for name, value in error.metadata.items()}
            told = _Told(code=error.code, message=error.message, reason=error.reason, metadata=facts)
        return msgspec.json.encode(told)


def as_work(generate: Generate) -> bytes:
    """Return the request as a piece of work."""
    return msgspec.json.encode(
        _Job(
            generate.prompts,
            generate.messages,
            generate.ids,
            generate.sampling.truncate,
            generate.sampling.max_tokens,
            generate.echoes,
            generate.tools,
            generate.template_arguments,
            generate.adds_special,
            generate.scores_prompts,
            generate.sampling.shows_special,
        )
    )


def from_work(told: bytes) -> list[PromptInput]:
    """Return the prompts that a piece of work made. Raises the error that it made instead."""
    read = _read_told(told)
    if read.code is not None:
        info = ErrorInfo(read.reason, read.metadata) if read.reason else None
        raise ServeError(read.code, read.message, info=info)
    return [PromptInput(ids, text=text) for ids, text in read.prompts]


def input_field(generate: Generate) -> str:
    """Return what the field is called that holds a request's prompts."""
    return next(wire for name, wire in _FIELDS.items() if getattr(generate, name) is not None)


def unreadable(generate: Generate) -> str:
    """Return the words for a field that template or tokenizer cannot read."""
    if generate.messages is not None:
        return "'messages' cannot be read by the chat template"
    return "'prompt' cannot be read by the tokenizer"


_FIELDS: Mapping[str, str] = {
    "prompts": "prompt",
    "messages": "messages",
    "ids": "input_ids",
    "embeds": "inputs_embeds",
}


def _last(prompt: PromptInput, count: int, width: int) -> PromptInput:
    """Return a prompt that has the last inputs alone."""
    if prompt.embeds is None:
        return PromptInput(prompt.ids[-count:], text=prompt.text)
    data = memoryview(prompt.embeds.data).cast("B")[-count * width * 4 :]
    return PromptInput(embeds=Embeddings(count, width, data))


def _plain(value: Mapping[str, object]) -> dict[str, object]:
    return dict(value)
