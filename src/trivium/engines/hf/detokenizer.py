"""Turns a sequence's tokens into text as they come, and gives out whole characters only.

A character may take several tokens, and how a token reads may depend on those before it. So the last tokens are read
together, and the end is kept back while it may be a part of a character. What can become no character is U+FFFD, as the
tokenizer has it.
"""

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]
"""Reads tokens as text, with U+FFFD in place of bytes that are no character."""

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_OPEN = 3  # bytes that a character may lack its last one with, each of which may read as U+FFFD
_WINDOW = 16  # tokens that are read together at most, as long as they make whole characters
_LONGEST = 32  # the same for tokens that make none


class Detokenizer:
    """One per sequence. The joined texts are what the tokens say."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._tokens: list[int] = []  # those that are read together
        self._said = ""  # what of their text has been given out
        self._whole_tokens = 0  # as many of them ended with a whole character when they came
        self._whole_text = 0

    def push(self, token: int) -> str:
        """Return the text that a token completes; empty in the middle of a character."""
        self._tokens.append(token)
        text = self._read()
        stable = text[: len(text) - _open(text)]
        new = self._say(stable)
        if stable == text:
            self._mark()
        elif len(self._tokens) > _LONGEST:
            self._keep(len(self._tokens) - _LONGEST // 4)
        return new

    def end(self) -> str:
        """Return what had been kept back: nothing follows."""
        return self._say(self._read()) if self._tokens else ""

    def _read(self) -> str:
        text = self._decode(self._tokens)
        if text.startswith(self._said):
            return text
        # bytes that were whole characters by themselves, and are no longer with what follows: they have been said
        self._said = self._said[self._whole_text :]
        del self._tokens[: self._whole_tokens]
        self._whole_tokens = self._whole_text = 0
        return self._decode(self._tokens)

    def _say(self, text: str) -> str:
        new = text[len(self._said) :]
        if new:
            self._said = text
        return new

    def _mark(self) -> None:
        """All tokens have been given out: the next one is read behind as many of them as it may depend on."""
        if len(self._tokens) > _WINDOW:
            self._keep(self._whole_tokens or len(self._tokens) - 1)
        self._whole_tokens, self._whole_text = len(self._tokens), len(self._said)

    def _keep(self, start: int) -> None:
        del self._tokens[:start]
        text = self._decode(self._tokens)
        self._said = text[: len(text) - _open(text)]
        self._whole_tokens = self._whole_text = 0


def _open(text: str) -> int:
    """Return how many characters at the end of a text may become another one."""
    broken = len(text) - len(text.rstrip(_BROKEN))
    return min(broken, _OPEN)
