"""An added token of which the normalizer leaves nothing: the library looks for it everywhere."""

import json

import pytest

from trivium.codecs.vanishing_tokens import vanishing_token

STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}
LESS = {"type": "Replace", "pattern": {"String": "mask"}, "content": ""}


@pytest.mark.parametrize(
    ("content", "is_normalized", "normalizer", "found"),
    [
        (" ", True, STRIP, " "),
        ("mask", True, LESS, "mask"),
        (" ", False, STRIP, None),
        (" ", True, None, None),
        ("<mask>", True, LESS, None),
        ("a", True, STRIP, None),
    ],
)
def test_a_token_of_nothing_is_found(content, is_normalized, normalizer, found):
    tokenizers = pytest.importorskip("tokenizers")
    added = {"lstrip": False, "rstrip": False, "single_word": False, "special": False}
    added |= {"id": 7, "content": content, "normalized": is_normalized}
    model = {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}
    document = {"version": "1.0", "model": model, "normalizer": normalizer, "added_tokens": [added]}
    assert vanishing_token(tokenizers.Tokenizer.from_str(json.dumps(document))) == found
