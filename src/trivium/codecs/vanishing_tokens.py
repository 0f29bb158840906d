"""Finds in a tokenizer the added token that its normalizer makes nothing of.

The library looks for each added token in every text, and for nothing everywhere: where another one begins with the
letter that is there, it takes memory without end (seen with tokenizers 0.23, for a text of one letter).
"""

from typing import Any


def vanishing_token(tokenizer: Any) -> str | None:
    """Return the added token, as it is written, that is empty once it is normalized; None where there is none."""
    normalizer = tokenizer.normalizer
    if normalizer is None:
        return None
    for token in tokenizer.get_added_tokens_decoder().values():
        if token.normalized and not normalizer.normalize_str(token.content):
            return str(token.content)
    return None
