"""Questions about short paragraphs, from templates: each asks how one of the things in it is.

Every fifth pair of a thing and its quality is held out: no training question asks for it, nor does a training paragraph
say it. The guide's own pair, nice weather, is one of them.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

THINGS = (
    *("weather", "garden", "river", "house", "window", "kitchen", "music", "market", "teacher", "village"),
    *("bridge", "coffee", "story", "morning", "forest", "train", "letter", "island", "doctor", "harbour"),
)
QUALITIES = (
    *("nice", "quiet", "cold", "bright", "old", "empty", "green", "famous", "narrow", "warm"),
    *("dark", "clean", "strange", "gentle", "heavy", "loud", "small", "broken", "friendly", "deep"),
)
_STATEMENTS = (
    "The {thing} is {quality}",
    "The {thing} was {quality}",
    "My {thing} is {quality}",
    "Today the {thing} looks {quality}",
    "The {thing} is {quality}, it is {other} day",
    "The {thing} is {quality}, and the day is {other}",
)
_QUESTIONS = (
    "How is the {thing}",
    "How is the {thing}?",
    "How was the {thing}?",
    "What is the {thing} like?",
    "Tell me how the {thing} is",
)
_DAYS = ("beautiful", "long", "busy", "sunny")
_DEGREES = ("", "", "", "very ", "rather ")


class Question(NamedTuple):
    """A question, its paragraph, and the answer: the letters of the paragraph from `start` to `end`."""

    question: str
    paragraph: str
    start: int
    end: int

    @property
    def answer(self) -> str:
        """The right answer."""
        return self.paragraph[self.start : self.end]


def is_held_out(thing: str, quality: str) -> bool:
    """Return if training never sees this pair."""
    return (THINGS.index(thing) + 2 * QUALITIES.index(quality)) % 5 == 0


def training_part(count: int, seed: int) -> list[Question]:
    """Return so many questions of the pairs that are not held out."""
    return list(_drawn(count, np.random.default_rng(seed), False))


def held_out_part(count: int = 400, seed: int = 5) -> list[Question]:
    """Return so many questions that ask for pairs that are held out."""
    return list(_drawn(count, np.random.default_rng(seed), True))


def _drawn(count: int, chance: np.random.Generator, held_out: bool) -> Iterator[Question]:
    pairs = list(product(THINGS, QUALITIES))
    asked = [pair for pair in pairs if is_held_out(*pair) == held_out]
    others = [pair for pair in pairs if not is_held_out(*pair)]
    for _ in range(count):
        thing, quality = asked[chance.integers(len(asked))]
        said = [(thing, quality)]
        while len(said) < chance.integers(1, 4):
            other = others[chance.integers(len(others))]
            if other[0] not in {name for name, _ in said}:
                said.append(other)
        yield _question(thing, [said[i] for i in chance.permutation(len(said))], chance)


def _question(thing: str, said: list[tuple[str, str]], chance: np.random.Generator) -> Question:
    paragraph, start, end = "", 0, 0
    for name, quality in said:
        answer = _DEGREES[chance.integers(len(_DEGREES))] + quality
        template = _STATEMENTS[chance.integers(len(_STATEMENTS))]
        before, _, after = template.partition("{quality}")
        paragraph += before.format(thing=name)
        if name == thing:
            start, end = len(paragraph), len(paragraph) + len(answer)
        paragraph += answer + after.format(other=_DAYS[chance.integers(len(_DAYS))]) + ". "
    text = _QUESTIONS[chance.integers(len(_QUESTIONS))].format(thing=thing)
    return Question(text, paragraph.rstrip(" ." if chance.integers(2) else " "), start, end)
