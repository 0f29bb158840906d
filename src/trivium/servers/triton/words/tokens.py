"""The tokens of protobuf's text format, with their lines.

As the original cuts them: words and numbers run on over `+`, `-` and letters, a string ends on its line,
blanks are ASCII only. Every text has tokens; knows neither fields nor types.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class TokenKind(Enum):
    """The kind of a token; `TORN` is a string without its closing quote, `END` comes once, last."""

    WORD = "word"
    NUMBER = "number"
    STRING = "text"
    TORN = "torn"
    MARK = "mark"
    END = "end"


class Token(NamedTuple):
    """One token as written, and its line from 1."""

    kind: TokenKind
    text: str
    line: int

    @property
    def opens(self) -> bool:
        return self.kind is TokenKind.MARK and self.text in "{<["

    @property
    def closes(self) -> bool:
        return self.kind is TokenKind.MARK and self.text in "}>]"

    def __str__(self) -> str:
        """Return the token as a person would call it."""
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        match self.kind:
            case TokenKind.END:
                return "the end of the file"
            case TokenKind.MARK if not text.isprintable() or not text.isascii():
                return f"the character U+{ord(text):04X}"
            case TokenKind.MARK:
                return f"`{text}`"
            case TokenKind.TORN:
                return f"text without its closing quote: {text}"
            case _:
                return f"the {self.kind.value} {text}"


_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\v\f]+|\#[^\n]*)
      | (?P<word>[a-zA-Z_][0-9a-zA-Z_+-]*)
      | (?P<number>(?:[0-9+-]|\.[0-9])[0-9a-zA-Z_.+-]*)
      | (?P<text>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
      | (?P<torn>["'][^\n]*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)


def scan(text: str) -> Iterator[Token]:
    """All tokens, then END."""
    line = 1
    for match in _TOKEN.finditer(text):
        found = match.group()
        if match.lastgroup == "blank":
            line += found.count("\n")
        else:
            assert match.lastgroup is not None
            yield Token(TokenKind(match.lastgroup), found, line)
    yield Token(TokenKind.END, "", line)


class Cursor:
    """A place in the tokens of a text; `token` is the one to read now, `following` the one after it."""

    def __init__(self, text: str) -> None:
        self._rest = scan(text)
        self.token = next(self._rest)
        self.following = next(self._rest, self.token)

    @property
    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def advance(self) -> Token:
        """Step over one token and return it; stays at the end."""
        passed, self.token = self.token, self.following
        self.following = next(self._rest, self.following)
        return passed

    def accept(self, mark: str) -> bool:
        """Step over this mark, if it is next."""
        if self.token.kind is TokenKind.MARK and self.token.text == mark:
            self.advance()
            return True
        return False

    def strings(self) -> list[Token]:
        """Step over one token, and over strings that follow it if it is one."""
        tokens = [self.advance()]
        while tokens[0].kind is TokenKind.STRING and self.token.kind in (TokenKind.STRING, TokenKind.TORN):
            tokens.append(self.advance())
        return tokens

    def skip_value(self) -> None:
        """Step over a value of any kind, whole blocks and lists with all that is in them, at any depth."""
        if not self.token.opens:
            self.strings()
            return
        depth = 0
        while not self.at_end:
            token = self.advance()
            depth += token.opens - token.closes
            if depth == 0:
                return
