"""The fingerprint of a tokenizer: equal for two that were made of the same files, wherever that was. Pure."""

import json
from collections.abc import Mapping
from hashlib import sha256


def tokenizer_fingerprint(document: str, vocabulary: Mapping[str, int], *more: object) -> str:
    """Return what tells a tokenizer from one that makes other tokens of a text, or differs in `more`. The document is
    what the package `tokenizers` writes; where tokens share a number, it names any of them, another one each time.
    """
    told = json.loads(document)
    model = told.get("model", {})
    if isinstance(model.get("vocab"), Mapping):
        model["vocab"] = sorted(vocabulary.items())
        if len(set(vocabulary.values())) < len(vocabulary):
            model["merges"] = len(model.get("merges", ()))
    text = json.dumps([told, *map(repr, more)], sort_keys=True)
    return sha256(text.encode()).hexdigest()
