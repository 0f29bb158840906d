"""Text that came from outside, as a terminal and a log may show it."""


def printable(text: str) -> str:
    r"""Return the text with everything escaped that is no printable sign: control characters, terminal escapes, marks
    that turn the direction of writing, bytes that were no UTF-8. Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else _escaped(sign) for sign in text)


def _escaped(sign: str) -> str:
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name (PEP 383)
        return f"\\x{code - 0xDC00:02x}"
    return sign.encode("unicode_escape", "backslashreplace").decode()
