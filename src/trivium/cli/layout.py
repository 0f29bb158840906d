"""Lays rows and sentences out for a screen: a table where each row fits a line, else a block for each row.

Pure. A key, a shape, a name and a URL are looked for and copied, and so never broken: a line that is longer than the
screen is left to the terminal.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len

GAP = 2
_SHAPE = re.compile(r"\[[^\[\]]{1,80}\]")
_JOINT = "\0"


def fits(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Tell whether rows of these cells, one below the other, are no wider than that."""
    return sum(_widths(rows)) + GAP * (len(rows[0]) - 1) <= width


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: int) -> Iterator[str]:
    """Return a table with its headings; where that does not fit, a block for each row, below its first cell."""
    if not rows:
        return
    space = " " * indent
    if fits([headings, *rows], width - indent):
        widths = _widths([headings, *rows])
        for row in (headings, *rows):
            yield (
                space
                + "".join(
                    cell + " " * (most - cell_len(cell) + GAP) for cell, most in zip(row, widths, strict=True)
                ).rstrip()
            )
        return
    most = max(map(len, headings[1:]), default=0)
    for name, *cells in rows:
        yield space + name
        for heading, cell in zip(headings[1:], cells, strict=True):
            if cell:
                yield f"{space}  {heading:{most}}  {cell}"


def labelled(pairs: Sequence[tuple[str, str]], width: int, indent: int) -> Iterator[str]:
    """Return sentences behind their labels, which go on below themselves; only spaces between words are broken at."""
    most = max((len(label) for label, _ in pairs), default=0)
    start = indent + most + GAP
    for label, words in pairs:
        for at, line in enumerate(_lines(words, max(20, width - start))):
            yield f"{' ' * indent}{'' if at else label:{most}}{' ' * GAP}{line}"


def _lines(words: str, width: int) -> Iterator[str]:
    for paragraph in words.splitlines() or [""]:
        whole = _SHAPE.sub(lambda found: found[0].replace(" ", _JOINT), paragraph)
        for line in wrap(whole, width, break_long_words=False, break_on_hyphens=False) or [""]:
            yield line.replace(_JOINT, " ")


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
