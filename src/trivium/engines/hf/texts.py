"""Turns requests into tokens, in a thread of its own: a long text or template must not keep the steps waiting.

The thread has its own copy of the tokenizer, since encoding changes settings that decoding reads.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from queue import Empty, SimpleQueue
from typing import Any

from trivium.engines.hf.processors import LogitsProcessors
from trivium.engines.hf.requests import GenerationLimits, beyond_context, refusal, sequences_per_prompt
from trivium.types.errors import Code, ServeError, frameless, noted
from trivium.types.generation import Embeddings, Generate
from trivium.types.running import ItemId

_PATIENCE = 5.0
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


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be computed, or why not. `processors` has one for each sequence, if it has any."""

    item: ItemId
    prompts: Sequence[PromptInput] = ()
    processors: Sequence[Callable[..., Any]] = ()
    error: ServeError | None = None


class PromptReader:
    """Reads requests in the order in which they come. `wake` is called in its thread when one is ready."""

    def __init__(
        self, tokenizer: Any, limits: GenerationLimits, processors: LogitsProcessors, wake: Callable[[], None]
    ) -> None:
        self._tokenizer = tokenizer
        self._limits = limits
        self._processors = processors
        self._wake = wake
        self._own = frozenset(signature(tokenizer.apply_chat_template).parameters) - _TEMPLATE_OWN
        self._queue: SimpleQueue[tuple[ItemId, Generate] | None] = SimpleQueue()
        self._ready: SimpleQueue[PreparedRequest] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="trivium-texts", daemon=True)
        self._thread.start()

    def read(self, item: ItemId, generate: Generate) -> None:
        """Take a request that has been judged."""
        self._queue.put((item, generate))

    def take(self, seconds: float) -> PreparedRequest | None:
        """Return the next one that is ready, or is within so many seconds."""
        with suppress(Empty):
            return self._ready.get(timeout=seconds) if seconds else self._ready.get_nowait()
        return None

    def close(self) -> None:
        """End the thread behind the request that it has in hand, or leave it to that if it takes long."""
        self._queue.put(None)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while (told := self._queue.get()) is not None:
            item, generate = told
            try:
                made = self._prepared(item, generate)
            except ServeError as error:
                made = PreparedRequest(item, error=frameless(error))
            except Exception as error:
                made = PreparedRequest(item, error=self._unread(generate, noted(error)))
            self._ready.put(made)
            self._wake()

    def _prepared(self, item: ItemId, generate: Generate) -> PreparedRequest:
        prompts = [self._bounded(generate, prompt) for prompt in self._prompts(generate)]
        name = generate.sampling.processor
        count = len(prompts) * sequences_per_prompt(generate.sampling) if name is not None else 0
        return PreparedRequest(item, prompts, [self._processors.make(name or "") for _ in range(count)])

    def _prompts(self, generate: Generate) -> list[PromptInput]:
        if generate.embeds is not None:
            return [PromptInput(embeds=generate.embeds)]
        if generate.ids is not None:
            return [PromptInput(ids, text=self._echo(generate, ids)) for ids in generate.ids]
        if generate.messages is not None:
            text = self._template(generate)
            return [PromptInput(self._encoded(text, False), text=text if generate.echoes else "")]
        return [
            PromptInput(self._encoded(text, True), text=text if generate.echoes else "")
            for text in generate.prompts or ()
        ]

    def _echo(self, generate: Generate, ids: Sequence[int]) -> str:
        if not generate.echoes:
            return ""
        return str(
            self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    def _template(self, generate: Generate) -> str:
        if not self._tokenizer.chat_template:
            raise ServeError(
                Code.INVALID,
                f"Model '{self._limits.model}': 'messages' need a chat template, and the model has none. Send a "
                "prompt, or put chat_template.jinja into its folder.",
            )
        arguments = dict(generate.template_arguments)
        if clash := sorted(self._own & arguments.keys()):
            raise refusal(
                self._limits.model, "template_arguments", "arguments of the template's own", ", ".join(clash)
            )
        if not arguments.get("continue_final_message"):
            arguments.setdefault("add_generation_prompt", True)
        tools = None if generate.tools is None else [_plain(tool) for tool in generate.tools]
        messages = [_plain(message) for message in generate.messages or ()]
        return str(self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **arguments))

    def _encoded(self, text: str, adds_special: bool) -> tuple[int, ...]:
        ids = self._tokenizer(text, add_special_tokens=adds_special)["input_ids"]
        if not ids and self._tokenizer.bos_token_id is not None:
            ids = [self._tokenizer.bos_token_id]
        if not ids:
            raise refusal(self._limits.model, "prompt", "a text of one token at least", "empty")
        vocabulary = self._limits.vocabulary
        if beyond := next((token for token in ids if token >= vocabulary), None):
            raise ServeError(
                Code.MODEL_FAILED,
                f"Model '{self._limits.model}': its tokenizer made token {beyond} of the prompt, and the model knows "
                f"{vocabulary}. Put the tokenizer into its folder that belongs to it.",
            )
        return tuple(ids)

    def _bounded(self, generate: Generate, prompt: PromptInput) -> PromptInput:
        most = generate.sampling.truncate
        if most is not None and prompt.size > most:
            prompt = _last(prompt, most, self._limits.width)
        if prompt.size >= self._limits.context:
            field = next(wire for name, wire in _FIELDS.items() if getattr(generate, name) is not None)
            raise beyond_context(self._limits, field, prompt.size)
        return prompt

    def _unread(self, generate: Generate, error: Exception) -> ServeError:
        field = "messages" if generate.messages is not None else "prompt"
        what = "the chat template" if generate.messages is not None else "the tokenizer"
        text = str(error).strip() or "no reason given"
        return ServeError(
            Code.INVALID,
            f"Model '{self._limits.model}': '{field}' cannot be read by {what}: {type(error).__name__}: {text}. Send "
            "what the model's template and tokenizer take.",
        )


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
