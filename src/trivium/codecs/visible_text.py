"""Makes text that comes from outside harmless where people read it: control characters are written, not obeyed.

A terminal obeys escape characters, and some characters make text read in another order than it stands in a file
("Trojan Source", CVE-2021-42574). Line ends and tabs stay: whoever writes lines looks to them. Pure.
"""

import re

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def visible(text: str) -> str:
    """Return the text with every character that a terminal would obey, and every lone surrogate, as its escape."""
    return text if text.isprintable() else _OBEYED.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a file's name that is no UTF-8 (PEP 383)
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
