"""The engine `scripted`: a model that steps and says what its folder's script says, a word for each token.

A token is a character of the prompt's answer: `script.json` has texts by prompt, `*` for all others. The text in braces
stands for what the engine was asked: `{sampling}`, `{messages}`, `{embeds}`. Words that begin with `!` are faults.
"""

import json
import time

import msgspec

from trivium.types.errors import Code, ServeError
from trivium.types.generation import (
    Finish,
    Generate,
    Generated,
    GeneratedChoice,
    GenerationUsage,
    TokenText,
    joined,
)
from trivium.types.interfaces import StepOutlet, StepReport
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelFacts, ModelSpec


class Running:
    """One request in work: what is left of each of its sequences, in tokens."""

    def __init__(self, generate: Generate, texts: list[list[str]], prompt_tokens: int) -> None:
        self.generate = generate
        self.left = texts
        self.made = [0] * len(texts)
        self.prompt_tokens = prompt_tokens
        self.first_at = 0.0
        self.held: list[Generated] = []

    def token(self, index: int, text: str) -> GeneratedChoice:
        """The next part of a sequence; its last one says why."""
        sampling = self.generate.sampling
        self.made[index] += 1
        number = 100 + self.made[index]
        tokens: tuple[TokenText, ...] = ()
        if sampling.logprobs is not None:
            others = tuple((number + i, f"{text}{i}", -1.0 - i) for i in range(sampling.logprobs))
            tokens = (TokenText(number, text, -0.5, others),)
        finish = None
        if sampling.max_tokens is not None and self.made[index] >= sampling.max_tokens:
            finish = Finish.LENGTH
        elif not self.left[index]:
            finish = Finish.EOS
        if finish is not None:
            self.left[index] = []
        shown = text
        for stop in sampling.stop:
            if stop in text:
                shown, finish, self.left[index] = text.partition(stop)[0], Finish.STOP, []
        return GeneratedChoice(index, shown, (number,), tokens, finish)

    def usage(self) -> GenerationUsage:
        """The counts of the whole request."""
        return GenerationUsage(self.prompt_tokens, sum(self.made), self.first_at, time.monotonic())


class ScriptedRunner:
    """Says the script."""

    slots = 4

    def __init__(self, spec: ModelSpec, outlet: StepOutlet) -> None:
        script = json.loads((spec.root / spec.entry).read_text())
        self._texts: dict[str, str] = script["texts"]
        self._pause = float(script.get("pause", 0))
        self._outlet = outlet
        self._running: dict[int, Running] = {}

    def add(self, item: int, infer: Infer) -> None:
        """Take a request."""
        generate = infer.payload
        assert isinstance(generate, Generate)
        prompts = self._prompts(generate)
        texts = []
        for prompt in prompts:
            text = self._texts.get(prompt, self._texts["*"])
            if text.startswith("!refuse"):
                raise ServeError(
                    Code.INVALID, "The prompt is longer than the context of 8 tokens. Send less."
                )
            first, *words = self._words(text, generate)
            for _ in range(generate.sampling.choices):
                texts.append([prompt + first if generate.echoes else first, *words])
        self._running[item] = Running(generate, texts, sum(len(prompt.split()) for prompt in prompts))

    def _prompts(self, generate: Generate) -> list[str]:
        if generate.prompts is not None:
            return list(generate.prompts)
        if generate.messages is not None:
            return [str(generate.messages[-1]["content"])]
        if generate.ids is not None:
            return [" ".join(map(str, ids)) for ids in generate.ids]
        assert generate.embeds is not None
        return [f"{generate.embeds.tokens}x{generate.embeds.width}"]

    def _words(self, text: str, generate: Generate) -> list[str]:
        if text == "{sampling}":
            text = msgspec.json.encode(generate.sampling).decode()
        elif text == "{messages}":
            text = msgspec.json.encode(generate.messages).decode()
        pieces = text.split(" ")
        return [piece + " " for piece in pieces[:-1]] + pieces[-1:]

    def step(self) -> StepReport | None:
        """A token for each sequence."""
        if not self._running:
            return None
        if self._pause:
            time.sleep(self._pause)
        made = 0
        for item, running in list(self._running.items()):
            choices = []
            for index, left in enumerate(running.left):
                if not left:
                    continue
                word = left.pop(0)
                if word.startswith("!"):
                    del self._running[item]
                    kind = word.strip()
                    if kind == "!raise":
                        raise ValueError("this step cannot be computed")
                    self._outlet.end(item, ServeError(Code.MODEL_FAILED, "The model computed no number."))
                    break
                choices.append(running.token(index, word))
            else:
                running.first_at = running.first_at or time.monotonic()
                made += len(choices)
                self._tell(item, running, tuple(choices))
        return StepReport(made, 0, made, 0.25)

    def _tell(self, item: int, running: Running, choices: tuple[GeneratedChoice, ...]) -> None:
        is_last = not any(running.left)
        if not running.generate.streams:
            running.held.append(Generated(choices))
            if is_last:
                whole = joined(running.held)
                del self._running[item]
                self._outlet.end(item, Generated(whole.choices, running.usage()))
        elif is_last:
            del self._running[item]
            self._outlet.end(item, Generated(choices, running.usage()))
        else:
            self._outlet.offer(item, Generated(choices))

    def abort(self, item: int) -> int:
        """Forget one."""
        running = self._running.pop(item, None)
        return 0 if running is None else sum(running.made)

    def reset(self) -> None:
        """Forget all."""
        self._running.clear()

    def close(self) -> None:
        """There is nothing to free."""


class ScriptedEngine:
    """Implements `Engine` and `OpensStepRunner`."""

    name = "scripted"
    takes = frozenset({PayloadKind.GENERATE})
    isolation = (Isolation.PROCESS,)
    has_facts = False

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Nothing is asked of a script."""
        raise NotImplementedError

    def open_steps(self, spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> ScriptedRunner:
        """Open one instance."""
        return ScriptedRunner(spec, outlet)


ENGINE = ScriptedEngine()
