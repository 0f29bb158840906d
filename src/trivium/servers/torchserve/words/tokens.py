"""The keys of TorchServe's token authorization: what each opens, when it expires, how it is renewed and written.

Knows neither file nor wire: who makes it gives the clock, the maker of keys and what writes the document. Source: spec
sheet `torchserve`, section 2; keys are longer than the original's, and compared in constant time (section 13).
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from trivium.codecs.json_documents import indented

FAILED = "Token {} failed. Token either incorrect, expired, or not provided correctly"
AUTHORIZATION, AUTHENTICATION = FAILED.format("Authorization"), FAILED.format("Authentication")
"""The original's words to who shows no key that holds: of a request, and of a renewal."""

_HIDDEN = "(a key)"
_BEARER = re.compile(r"Bearer\s+(\S+)")


class TokenPurpose(StrEnum):
    """The purpose of a key; the value is its name in the document."""

    MANAGEMENT = "management"
    INFERENCE = "inference"
    RENEWAL = "API"


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A key, and the moment from which it is worth nothing, in seconds of the epoch; None for never."""

    text: str
    expires: float | None = None


class Tokens:
    """Holds the three keys of a server. Every change is written at once; keys are in no other text."""

    def __init__(
        self,
        make_key: Callable[[], str],
        now: Callable[[], float],
        lifetime: float,
        write: Callable[[bytes], None],
    ) -> None:
        """Make the keys, which last for `lifetime` seconds, and write their document. Raises what `write` does."""
        self._make_key = make_key
        self._now = now
        self._lifetime = lifetime
        self._write = write
        self._keys = {purpose: self._issued(purpose) for purpose in TokenPurpose}
        write(self.document())

    def opens(self, purpose: TokenPurpose, shown: str) -> bool:
        """Tell whether the value of a header Authorization has the key for this purpose, and it has not expired."""
        match = _BEARER.fullmatch(shown.strip())
        key = self._keys[purpose]
        text = match[1] if match else ""
        is_right = hmac.compare_digest(text.encode("utf-8", "surrogateescape"), key.text.encode())
        return is_right and (key.expires is None or self._now() < key.expires)

    def renew(self, purpose: TokenPurpose) -> None:
        """Make another key for this purpose; the one before is worth nothing as soon as it is written. Raises what the
        writing does, and then the key stays.
        """
        before = self._keys[purpose]
        self._keys[purpose] = self._issued(purpose)
        try:
            self._write(self.document())
        except BaseException:
            self._keys[purpose] = before
            raise

    def hidden(self, text: str) -> str:
        """Return a text without these keys, percent-encoded ones included: in a log nobody must find one."""
        is_encoded = "%" in text
        for key in self._keys.values():
            if is_encoded:
                text = _pattern(key.text).sub(_HIDDEN, text)
            elif key.text in text:
                text = text.replace(key.text, _HIDDEN)
        return text

    def document(self) -> bytes:
        """Return the keys as the original writes them."""
        rows = {purpose.value: _row(key) for purpose, key in self._keys.items()}
        return bytes(indented(rows))

    def _issued(self, purpose: TokenPurpose) -> IssuedToken:
        is_lasting = purpose is TokenPurpose.RENEWAL
        return IssuedToken(self._make_key(), None if is_lasting else self._now() + self._lifetime)


def _row(key: IssuedToken) -> dict[str, str]:
    if key.expires is None:
        return {"key": key.text}
    moment = datetime.fromtimestamp(key.expires, UTC).isoformat().replace("+00:00", "Z")
    return {"key": key.text, "expiration time": moment}


@lru_cache(maxsize=8)
def _pattern(key: str) -> re.Pattern[str]:
    """Return what finds a key, whichever of its signs are percent-encoded, once or several times."""
    signs = (f"(?:{re.escape(sign)}|%(?:25)*(?i:{ord(sign):02x}))" for sign in key)
    return re.compile("".join(signs))
