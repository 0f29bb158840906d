"""Joins the lines of a Python traceback to one text, as far as lines show what belongs together. Pure.

A traceback begins with its own first line, goes on with lines that are indented, and ends with the exception's; another
may follow that came of it, behind a sentence that says so. Whatever else comes is a text of its own.
"""

MOST_CHARACTERS = 2**16
"""Of one traceback; what is longer is cut into several texts."""

_BEGINNINGS = ("Traceback (most recent call last):", "  + Exception Group Traceback (most recent call last):")
_LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


class TracebackLines:
    """Holds the lines of a traceback that may go on."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._is_open = False  # the line of its exception has not come

    @property
    def is_holding(self) -> bool:
        """Does it hold lines?"""
        return bool(self._lines)

    def add(self, line: str) -> list[str]:
        """Take a line; return the texts that are whole now, in order."""
        whole: list[str] = []
        if self._lines and self._size + len(line) > MOST_CHARACTERS:
            whole = self.rest()
        if line.startswith(_BEGINNINGS):
            if self._lines and not (self._is_open or self._lines[-1] in ("", *_LINKS)):
                whole += self.rest()
            self._is_open = True
        elif not self._lines:
            return [*whole, line]
        elif self._is_open:
            self._is_open = line.startswith((" ", "\t")) or not line
        elif line and line not in _LINKS:
            return [*whole, *self.rest(), line]
        self._lines.append(line)
        self._size += len(line)
        return whole

    def rest(self) -> list[str]:
        """Return what it holds as a text; it holds nothing then. Empty lines at its end are dropped."""
        lines, self._lines, self._size, self._is_open = self._lines, [], 0, False
        text = "\n".join(lines).rstrip("\n")
        return [text] if text else []
