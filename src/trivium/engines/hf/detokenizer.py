"""Turns a sequence's tokens into text as they come, and gives out whole characters only.

A character may take several tokens, and how a token reads may depend on those before it. So the last tokens are read
together, and the end is kept back while it may be a part of a character. What can become no character is U+FFFD, as the
tokenizer has it.

The first token is read behind the last ones of the prompt: many tokenizers drop the blank in front of a whole text.
"""

from collections.abc import Callable, Sequence
from itertools import islice, product

Decode = Callable[[Sequence[int]], str]
"""Reads tokens as text, with U+FFFD in place of bytes that are no character."""

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_OPEN = 3  # bytes that a character may lack its last one with, each of which may read as U+FFFD
_WINDOW = 16  # tokens that are read together at most, as long as they make whole characters
_LONGEST = 32  # the same for tokens that make none
_CONTEXT = 8  # tokens of the prompt that the first one is read behind
_CONTEXTS = range(_CONTEXT, _CONTEXT + _OPEN + 1)  # one of them begins with a character
_LONGER_ONES = range(_LONGEST - _OPEN, _LONGEST + 1)


class Detokenizer:
    """One per sequence. The joined texts are what the tokens say behind those `before` them; `hidden` ones say nothing,
    and stand between no others.
    """

    def __init__(
        self, decode: Decode, before: Sequence[int] = (), hidden: frozenset[int] = frozenset()
    ) -> None:
        self._decode = decode
        self._hidden = hidden
        self._before: Sequence[int] | None = before  # until the first token comes
        self._tokens: list[int] = []  # those that are read together
        self._said = ""  # what of their text has been given out
        self._said_whole: str | None = (
            None  # the same without the piece of a character that the prompt ends with
        )
        self._whole_tokens = 0  # as many of them ended with a whole character when they came
        self._whole_text = 0

    def push(self, token: int) -> str:
        """Return the text that a token completes; empty in the middle of a character."""
        if self._before is not None:
            self._begin(self._before)
        if token in self._hidden:
            return ""
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

    def _begin(self, before: Sequence[int]) -> None:
        """Take up the prompt's last tokens, from where a character begins and something is to be seen."""
        self._before = None
        shown = list(islice((one for one in reversed(before) if one not in self._hidden), _LONGEST))[::-1]
        self._tokens = shown[-_CONTEXT:]
        self._said = self._decode(self._tokens) if shown else ""
        for cut, count in product(range(_OPEN + 1), (*_CONTEXTS, *_LONGER_ONES) if shown else ()):
            tokens = shown[-count:]
            whole = self._decode(tokens[: len(tokens) - cut])
            if whole and not (whole.startswith(_BROKEN) or _open(whole)):
                self._tokens, self._whole_tokens, self._whole_text = tokens, len(tokens) - cut, len(whole)
                self._said = self._decode(tokens) if cut else whole
                self._said_whole = _stable(self._said, whole) if cut else None
                return

    def _read(self) -> str:
        text = self._decode(self._tokens)
        if text.startswith(self._said):
            return text
        if self._said_whole is not None and text.startswith(self._said_whole):
            self._said, self._said_whole = self._said_whole, None
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
        # what alone says nothing is no context: the blank of the next token would be lost
        earlier = range(start, max(start - _WINDOW, 0) - 1, -1)
        del self._tokens[: next((at for at in earlier if self._decode(self._tokens[at:])), start)]
        self._said_whole = None
        text = self._decode(self._tokens)
        self._said = text[: len(text) - _open(text)]
        self._whole_tokens = self._whole_text = 0


def _stable(text: str, whole: str) -> str:
    """Return what stays of a text that begins with a whole one: the next token may begin with a blank, and end within a
    character. Of a text that does not, whose bytes are no longer what they were, the whole one stays.
    """
    return text[: len(text) - _open(text)] if text.startswith(whole) else whole


def _open(text: str) -> int:
    """Return how many characters at the end of a text may become another one."""
    broken = len(text) - len(text.rstrip(_BROKEN))
    return min(broken, _OPEN)
