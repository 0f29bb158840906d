"""A fingerprint is the same for what was made of the same files, and another for what makes other tokens."""

import json

import pytest

from trivium.codecs.tokenizer_fingerprint import tokenizer_fingerprint

tokenizers = pytest.importorskip("tokenizers")

WORDS = {"a": 0, "b": 1, "ab": 2, "c": 2, "d": 2, "e": 2}
MODELS = {
    "byte pairs": {"type": "BPE", "vocab": WORDS, "merges": [["a", "b"]]},
    "words": {"type": "WordLevel", "vocab": WORDS, "unk_token": "a"},
    "pieces": {"type": "WordPiece", "vocab": WORDS, "unk_token": "a", "continuing_subword_prefix": "##"}
    | {"max_input_chars_per_word": 9},
    "unigrams": {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.0]], "unk_id": 0},
}


def of(model, *more, **parts):
    made = tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "model": model} | parts))
    return tokenizer_fingerprint(made.to_str(), made.get_vocab(), *more)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_file_has_the_same_fingerprint_though_tokens_share_a_number(name):
    assert len({of(MODELS[name]) for _ in range(30)}) == 1


@pytest.mark.parametrize("name", MODELS)
def test_what_makes_other_tokens_has_another_fingerprint(name):
    model = MODELS[name]
    words = [*model["vocab"], ["f", -2.0]] if name == "unigrams" else model["vocab"] | {"f": 3}
    others = [
        of(model),
        of(model, "a template"),
        of(model, "another"),
        of(model, normalizer={"type": "Lowercase"}),
        of(model | {"vocab": words}),
    ]
    if name == "byte pairs":
        others.append(of(model | {"merges": []}))
    assert len(set(others)) == len(others)
