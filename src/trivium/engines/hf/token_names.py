"""Names each token of a vocabulary by what it stands for, so that no two have one name.

A token is read behind another one: alone it may lose its blank. A piece of a character is named by its bytes, as OpenAI
does: `bytes:\\xe4\\xbd`; what stands for nothing by its number.
"""

import re
from collections.abc import Callable

from trivium.codecs.byte_letters import BYTE_OF_LETTER
from trivium.engines.hf.detokenizer import Decode

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class TokenNames:
    """One per model. `piece` returns how the vocabulary writes a token, `anchor` is one to read others behind."""

    def __init__(
        self, decode: Decode, piece: Callable[[int], str | None], anchor: int | None, is_byte_level: bool
    ) -> None:
        self._decode = decode
        self._piece = piece
        self._before = [] if anchor is None else [anchor]
        self._said = decode(self._before) if self._before else ""
        self._is_byte_level = is_byte_level
        self._known: dict[int, str] = {}

    def __call__(self, token: int) -> str:
        """Return the name of a token."""
        found = self._known.get(token)
        if found is None:
            found = self._known[token] = self._name(token)
        return found

    def _name(self, token: int) -> str:
        piece = self._piece(token) or ""
        byte = _BYTE.fullmatch(piece)
        if byte and self._decode([token]) != piece:
            return f"bytes:\\x{byte[1].lower()}"
        text = self._decode([*self._before, token])
        text = text[len(self._said) :] if text.startswith(self._said) else self._decode([token])
        if _BROKEN in text and self._is_byte_level and all(one in BYTE_OF_LETTER for one in piece):
            return "bytes:" + "".join(f"\\x{BYTE_OF_LETTER[one]:02x}" for one in piece)
        return text or piece or f"token_id:{token}"
