"""Finds tokens of a tokenizer for which a model has no row in its embedding. This is pure."""

import msgspec


class _Added(msgspec.Struct):
    id: int = -1
    content: str = ""


class _Model(msgspec.Struct):
    vocab: msgspec.Raw = msgspec.Raw(b"{}")


class _Document(msgspec.Struct):
    """A tokenizer.json, as far as it matters."""

    added_tokens: list[_Added] = []
    model: _Model = msgspec.field(default_factory=_Model)


_read = msgspec.json.Decoder(_Document).decode
_read_ids = msgspec.json.Decoder(dict[str, int]).decode
_read_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def highest_token(document: bytes) -> tuple[int, str]:
    """Return the highest id of a tokenizer.json, and its token; -1 where it has none, or is no such document."""
    try:
        told = _read(document)
        highest = max(((one.id, one.content) for one in told.added_tokens), default=(-1, ""))
        raw = bytes(told.model.vocab)
        if raw.lstrip().startswith(b"["):  # pieces with their scores
            last = len(_read_list(raw)) - 1
            return max(highest, (last, f"number {last}"))
        ids = _read_ids(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return -1, ""  # whoever opens the tokenizer says what is wrong with it
    return max(highest, max(((number, token) for token, number in ids.items()), default=(-1, "")))


def beyond_embedding(place: str, highest: tuple[int, str], rows: int, config: str) -> str:
    """Return a sentence for a tokenizer that makes tokens which the model does not have; empty for all others."""
    number, token = highest
    if number < rows:
        return ""
    return (
        f"{place} makes token {number} ({token[:40]!r}), and the embedding has {rows} rows ({config}); expected ids "
        f"below {rows}. A prompt with such a token is refused. Put the tokenizer that the model was trained with "
        "beside it, or save the model with model.resize_token_embeddings(len(tokenizer))."
    )
