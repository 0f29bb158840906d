"""Bounds of reading texts, whoever reads them: beyond which size a text is read where that can be ended, and when."""

LONG = 2**18
"""Bytes of text beyond which tokenizing takes long: a third of a second, where all else takes a few milliseconds."""

SECONDS = 10.0
"""Seconds that the texts of a request may take, waiting for those before them included. Ten megabytes take as long, and
no template of a chat takes a tenth of a second: what takes longer has no end, or keeps others from theirs.
"""

MOST_MEMORY = 2**30
"""Bytes that reading a text may take. A megabyte of text takes about a hundred and fifty."""


def byte_size(text: str) -> int:
    """Return how many bytes a text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
