"""Puts a sequence's answer together: text in whole characters, tokens, and where it ends.

The model's own end and stop tokens end a sequence and are left out of its text; so are stop texts, unless they are to
be kept. Before the minimum of tokens nothing ends it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.engines.hf.detokenizer import Decode, Detokenizer
from trivium.engines.hf.stops import StopMatcher
from trivium.types.generation import Finish, GeneratedChoice, Sampling, TokenText


@dataclass(frozen=True, slots=True)
class TokenReading:
    """Reads a model's tokens as text: without special ones, with them, and one by itself. `hidden` are those that the
    first of these leaves out.
    """

    decode: Decode
    decode_all: Decode
    name: Callable[[int], str]
    special: frozenset[int]
    ends: frozenset[int]
    hidden: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """A token, its log probability where that is wanted, and the likeliest ones in its place."""

    id: int
    logprob: float | None = None
    alternatives: Sequence[tuple[int, float]] = ()


class SequenceAnswer:
    """One per sequence. `room` is the number of tokens that it may have; the text begins with the `echo`, and continues
    that of the tokens `before` it. If it is `scored`, the tokens of its prompt come before its own.
    """

    def __init__(
        self,
        sampling: Sampling,
        reading: TokenReading,
        room: int,
        echo: str = "",
        before: Sequence[int] = (),
        scored: bool = False,
    ) -> None:
        self._reading = reading
        self._sampling = sampling
        self._room = room
        self._least = sampling.min_tokens or 0
        self._stop_ids = frozenset(sampling.stop_ids)
        if sampling.shows_special:
            self._detokenizer = Detokenizer(reading.decode_all, before)
        else:
            self._detokenizer = Detokenizer(reading.decode, before, reading.hidden)
        self._matcher = StopMatcher(sampling.stop, sampling.keeps_stop)
        self._texts = [echo] if echo else []
        self._ids: list[int] = []
        self._tokens: list[TokenText] = []
        self._is_told = False
        self.lacks_prompt = scored
        self.count = 0
        self.logprob = 0.0
        self.finish: Finish | None = Finish.LENGTH if room <= 0 and not scored else None

    @property
    def has_room(self) -> bool:
        """Return whether it may have a token of its own at all."""
        return self._room > 0

    @property
    def score(self) -> float:
        """Return the mean log probability of its tokens, by which sequences are compared."""
        return self.logprob / self.count if self.count else 0.0

    def take(self, token: ChosenToken) -> None:
        """Continue by a token; sets `finish` where the sequence ends with it."""
        self.count += 1
        self.logprob += token.logprob or 0.0
        text, finish = self._read(token.id)
        if self.count >= self._least:
            out, is_stopped = self._matcher.push(text)
        else:
            out, is_stopped = text, False
        if is_stopped:
            finish = Finish.STOP
        elif finish is not None:
            out += self._matcher.end()
        self.finish = finish
        self._ids.append(token.id)
        if out:
            self._texts.append(out)
        if self._sampling.logprobs is not None:
            self._tokens.append(_told(self._reading, token, text))

    def begin(self, prompt: Sequence[TokenText]) -> None:
        """Put the tokens of the prompt in front. Sets `finish` where no others were asked for."""
        self.lacks_prompt = False
        self._tokens += prompt
        if not self.has_room:
            self.finish = Finish.LENGTH

    def cut(self, finish: Finish) -> None:
        """End the sequence without a further token."""
        text, _ = self._matcher.push(self._detokenizer.end())
        if text := text + self._matcher.end():
            self._texts.append(text)
        self.finish = finish

    def part(self, index: int) -> GeneratedChoice | None:
        """Return what has come since the last part; None for nothing."""
        if self._is_told or not (self._texts or self._ids or self._tokens or self.finish):
            return None
        self._is_told = self.finish is not None
        part = GeneratedChoice(
            index, "".join(self._texts), tuple(self._ids), tuple(self._tokens), self.finish
        )
        self._texts, self._ids, self._tokens = [], [], []
        return part

    def _read(self, token: int) -> tuple[str, Finish | None]:
        """Return the text that a token completes, and whether the sequence ends with it."""
        finish = None
        hides = False
        if token in self._reading.ends and not self._sampling.ignores_eos:
            finish, hides = Finish.EOS, not self._sampling.shows_special
        elif token in self._stop_ids and self.count >= self._least:
            finish, hides = Finish.STOP, not self._sampling.keeps_stop
        elif self.count >= self._room:
            finish = Finish.LENGTH
        text = "" if hides else self._detokenizer.push(token)
        return (text if finish is None else text + self._detokenizer.end()), finish


def prompt_texts(reading: TokenReading, tokens: Sequence[ChosenToken]) -> list[TokenText]:
    """Return the tokens of a prompt with the text that each of them completes."""
    detokenizer = Detokenizer(reading.decode_all, ())
    return [_told(reading, token, detokenizer.push(token.id)) for token in tokens]


def _told(reading: TokenReading, token: ChosenToken, text: str) -> TokenText:
    others = tuple((other, reading.name(other), logprob) for other, logprob in token.alternatives)
    return TokenText(
        token.id, text, token.logprob, others, token.id in reading.special, reading.name(token.id)
    )
