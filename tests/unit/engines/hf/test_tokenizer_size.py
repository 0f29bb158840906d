"""Tokens of a tokenizer for which a model has no row."""

import json

import pytest

from trivium.engines.hf.tokenizer_size import beyond_embedding, highest_token

BPE = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 6}},
    "added_tokens": [{"id": 9, "content": "<x>", "special": True}],
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (BPE, (9, "<x>")),
        (BPE | {"added_tokens": []}, (6, "b")),
        ({"model": {"vocab": [["<unk>", 0.0], ["a", -1.5]]}}, (1, "number 1")),
        ({}, (-1, "")),
        ([], (-1, "")),
        ({"model": {"vocab": {"a": "b"}}}, (-1, "")),
        ({"added_tokens": 3}, (-1, "")),
    ],
)
def test_the_highest_token_is_found(document, expected):
    assert highest_token(json.dumps(document).encode()) == expected


@pytest.mark.parametrize("document", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_document_has_none(document):
    assert highest_token(document) == (-1, "")


def test_a_token_beyond_is_told_with_both_numbers_and_the_way_out():
    assert beyond_embedding("t.json", (9, "<x>"), 10, "config.json, vocab_size") == ""
    words = beyond_embedding("t.json", (10, "<x>"), 10, "config.json, vocab_size")
    assert words.startswith(
        "t.json makes token 10 ('<x>'), and the embedding has 10 rows (config.json, vocab_size)"
    )
    assert "resize_token_embeddings" in words
