"""Computes one forward pass over a row of tokens of many sequences, whose keys and values lie in slots.

transformers' models call an attention function by name; ours writes the keys and values of the row into the slots of a
storage, and lets each token see those of its own sequence. The tokens that are alone of their sequence are one padded
call, each piece of a prompt is one. Masks are made once per step and window, since all layers have the same.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from trivium.engines.hf.storage import KeyValueStorage, RowPlaces, RowSegment, Seen
from trivium.types.errors import Code, ServeError

_NAMES = count()
_INERT = frozenset(
    {
        *("position_ids", "use_cache", "cache", "past_key_values", "cache_position", "return_dict"),
        *("output_attentions", "output_hidden_states", "output_router_logits", "num_items_in_batch"),
    }
)
"""Arguments that change nothing here: positions are told, and there is no cache."""


class StepAttention:
    """The function that a model's layers call, over keys and values of a storage. `name` is what they know it by."""

    def __init__(self, storage: KeyValueStorage) -> None:
        self.name = f"trivium_steps_{next(_NAMES)}"
        self.storage = storage
        self._rows: RowPlaces | None = None
        self._pieces: list[tuple[int, RowSegment]] = []
        self._row_masks: dict[int | None, torch.Tensor] = {}
        self._piece_masks: dict[tuple[RowSegment, int | None], torch.Tensor] = {}

    def place(self, segments: Sequence[RowSegment], device: torch.device) -> None:
        """Say what the next row holds: first the tokens that are alone, then the pieces, each in its order."""
        self.storage.reserve(segments)
        alone = [segment for segment in segments if segment.size == 1]
        self._rows = self.storage.rows(alone, device) if alone else None
        self._pieces, self._row_masks, self._piece_masks = [], {}, {}
        at = len(alone)
        for segment in segments:
            if segment.size > 1:
                self._pieces.append((at, segment))
                at += segment.size

    def clear_all(self) -> None:
        """Forget the keys and values of all slots, and give their memory back."""
        self.storage.release_all()

    def attend(  # noqa: PLR0913 - the order in which transformers' models call it
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float | None = None,
        sliding_window: int | None = None,
        softcap: float | None = None,
        **others: Any,
    ) -> tuple[torch.Tensor, None]:
        """See `transformers.AttentionInterface`. Raises UNSUPPORTED for an argument that it does not know."""
        _refuse_unknown(module, attention_mask, others)
        layer = module.layer_idx
        self.storage.open_layer(layer, key, value)
        scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        out = query.new_empty(query.shape[2], query.shape[1], value.shape[-1])
        if self._rows is not None:
            rows = self._rows
            row_key, row_value = key[0, :, : rows.count], value[0, :, : rows.count]
            rows.write(layer, row_key.transpose(0, 1), row_value.transpose(0, 1))
            row_query = query[0, :, : rows.count].transpose(0, 1)
            mask = self._row_mask(rows, sliding_window)
            out[: rows.count] = _alone(rows, row_query, rows.read(layer), mask, scale, softcap)
        for at, piece in self._pieces:
            span = slice(at, at + piece.size)
            self.storage.write(layer, piece, key[0, :, span], value[0, :, span])
            seen = self.storage.read(layer, piece.slot, piece.start + piece.size)
            mask = self._piece_mask(piece, sliding_window, query.device)
            out[span] = _grouped(query[:, :, span], *seen, mask, scale, softcap)[0].transpose(0, 1)
        return out[None], None

    def _row_mask(self, rows: RowPlaces, window: int | None) -> torch.Tensor:
        """Return which keys each row sees: [rows, 1, 1, width]."""
        found = self._row_masks.get(window)
        if found is None:
            at = torch.arange(rows.width, device=rows.last.device)
            found = at <= rows.last[:, None]
            if window is not None:
                found = found & (at > rows.last[:, None] - window)
            found = self._row_masks[window] = found[:, None, None, :]
        return found

    def _piece_mask(self, piece: RowSegment, window: int | None, device: torch.device) -> torch.Tensor:
        found = self._piece_masks.get((piece, window))
        if found is None:
            end = piece.start + piece.size
            at = torch.arange(end, device=device)
            own = torch.arange(piece.start, end, device=device)[:, None]
            found = at <= own
            if window is not None:
                found = found & (at > own - window)
            self._piece_masks[piece, window] = found
        return found


def _alone(
    rows: RowPlaces,
    query: torch.Tensor,
    seen: Seen,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Return what the tokens that are alone see: [rows, heads, size]."""
    query, shared = rows.spread(query), seen[0].shape[1]
    packed = query.reshape(query.shape[0], shared, query.shape[1] // shared, query.shape[2])
    out = _attention(packed, *seen, mask, scale, softcap)
    return rows.gathered(out.reshape(query.shape[0], query.shape[1], seen[1].shape[-1]))


def _grouped(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Return what the tokens of one piece see, where several heads share their keys."""
    heads, size = query.shape[1:3]
    groups = heads // keys.shape[1]
    if groups == 1:
        return _attention(query, keys, values, mask, scale, softcap)
    packed = query.reshape(1, keys.shape[1], groups * size, query.shape[3])
    out = _attention(packed, keys, values, mask.repeat(groups, 1), scale, softcap)
    return out.reshape(1, heads, size, values.shape[-1])


def _attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    if softcap is None:
        return scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)
    scores = torch.matmul(query, keys.transpose(2, 3)) * scale
    scores = (torch.tanh(scores / softcap) * softcap).masked_fill(~mask, -torch.inf)
    return torch.matmul(torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype), values)


def _refuse_unknown(module: Any, mask: torch.Tensor | None, others: dict[str, Any]) -> None:
    known = {name: value for name, value in others.items() if value is not None and name not in _INERT}
    if known.pop("dropout", 0.0) == 0.0 and known.pop("is_causal", True) and mask is None and not known:
        return
    found = ", ".join(sorted(known)) or "a mask of its own, dropout, or no causal order"
    raise ServeError(
        Code.UNSUPPORTED,
        f"Attention of {type(module).__name__} asks for {found}, which this engine does not compute: it would answer "
        "with other tokens. Serve the model with vLLM, or with a handler in Python that calls generate.",
    )
