"""Computes one forward pass over a row of tokens of many sequences, whose keys and values lie in slots.

transformers' models call an attention function by name; ours writes the keys and values of the row into the slots, and
lets each token see those of its own sequence. The tokens that are alone of their sequence are one padded call, each
piece of a prompt is one. Masks are made once per step and window, since all layers have the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from trivium.types.errors import Code, ServeError

_NAMES = count()
_INERT = frozenset(
    {
        *("position_ids", "use_cache", "cache", "past_key_values", "cache_position", "return_dict"),
        *("output_attentions", "output_hidden_states", "output_router_logits", "num_items_in_batch"),
    }
)
"""Arguments that change nothing here: positions are told, and there is no cache."""

_SPREAD = (
    2  # times as many rows as there are tokens may be computed, where that spares a copy of keys and values
)


@dataclass(frozen=True, slots=True)
class RowSegment:
    """Tokens of one sequence, as they lie in the row: `size` of them, behind `start` that its slot has."""

    slot: int
    start: int
    size: int


class _Rows:
    """The tokens of a step that are alone of their sequence: where they lie, and what each of them may see."""

    def __init__(self, segments: Sequence[RowSegment], device: torch.device) -> None:
        slots = [segment.slot for segment in segments]
        starts = [segment.start for segment in segments]
        self.count = len(slots)
        self.slots = torch.tensor(slots, device=device)
        self.starts = torch.tensor(starts, device=device)
        self.low, self.high = min(slots), max(slots) + 1
        self.width = max(starts) + 1
        self.is_view = self.high - self.low <= _SPREAD * self.count
        self.is_dense = slots == list(range(self.low, self.high))
        self.places = self.slots - self.low if self.is_view else torch.arange(self.count, device=device)
        self._of_all = torch.full((self.high - self.low if self.is_view else self.count,), 0, device=device)
        self._of_all[self.places] = self.starts
        self._masks: dict[int | None, torch.Tensor] = {}

    def mask(self, window: int | None) -> torch.Tensor:
        """Return which keys each row sees: [rows, 1, 1, width]."""
        found = self._masks.get(window)
        if found is None:
            at = torch.arange(self.width, device=self._of_all.device)
            found = at <= self._of_all[:, None]
            if window is not None:
                found = found & (at > self._of_all[:, None] - window)
            found = self._masks[window] = found[:, None, None, :]
        return found


class StepAttention:
    """The keys and values of one model, and the function that its layers call. `name` is what they know it by."""

    def __init__(self, slots: int, context: int) -> None:
        self.name = f"trivium_steps_{next(_NAMES)}"
        self._slots = slots
        self._context = context
        self._keys: dict[int, torch.Tensor] = {}
        self._values: dict[int, torch.Tensor] = {}
        self._rows: _Rows | None = None
        self._pieces: list[tuple[int, RowSegment]] = []
        self._piece_masks: dict[tuple[RowSegment, int | None], torch.Tensor] = {}

    def place(self, segments: Sequence[RowSegment], device: torch.device) -> None:
        """Say what the next row holds: first the tokens that are alone, then the pieces, each in its order."""
        alone = [segment for segment in segments if segment.size == 1]
        self._rows = _Rows(alone, device) if alone else None
        self._pieces, self._piece_masks = [], {}
        at = len(alone)
        for segment in segments:
            if segment.size > 1:
                self._pieces.append((at, segment))
                at += segment.size

    def copy(self, source: int, target: int, size: int) -> None:
        """Give a slot the first keys and values of another one."""
        for store in (*self._keys.values(), *self._values.values()):
            store[target, :, :size] = store[source, :, :size]

    def clear(self, slot: int, size: int) -> None:
        """Forget the first keys and values of a slot: numbers that are none would spread to whoever gets it."""
        for store in (*self._keys.values(), *self._values.values()):
            store[slot, :, :size] = 0

    def clear_all(self) -> None:
        """Forget the keys and values of all slots."""
        for store in (*self._keys.values(), *self._values.values()):
            store.zero_()

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
        keys, values = self._store(module, key, value)
        scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        out = query.new_empty(query.shape[2], query.shape[1], value.shape[-1])
        if self._rows is not None:
            rows = self._rows
            keys[rows.slots, :, rows.starts] = key[0, :, : rows.count].transpose(0, 1)
            values[rows.slots, :, rows.starts] = value[0, :, : rows.count].transpose(0, 1)
            row_query = query[0, :, : rows.count].transpose(0, 1)
            out[: rows.count] = _alone(rows, row_query, keys, values, (scale, sliding_window, softcap))
        for at, piece in self._pieces:
            end = piece.start + piece.size
            keys[piece.slot, :, piece.start : end] = key[0, :, at : at + piece.size]
            values[piece.slot, :, piece.start : end] = value[0, :, at : at + piece.size]
            seen = keys[piece.slot, None, :, :end], values[piece.slot, None, :, :end]
            mask = self._piece_mask(piece, sliding_window, query.device)
            piece_query = query[:, :, at : at + piece.size]
            out[at : at + piece.size] = _grouped(piece_query, *seen, mask, scale, softcap)[0].transpose(0, 1)
        return out[None], None

    def _store(
        self, module: Any, key: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        layer = module.layer_idx
        if layer not in self._keys:
            size = self._slots, key.shape[1], self._context
            self._keys[layer] = key.new_zeros(*size, key.shape[3])
            self._values[layer] = value.new_zeros(*size, value.shape[3])
        return self._keys[layer], self._values[layer]

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
    rows: _Rows,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    how: tuple[float, int | None, float | None],
) -> torch.Tensor:
    """Return what the tokens that are alone see: [rows, heads, size]. Slots that lie together are not copied."""
    scale, window, softcap = how
    if rows.is_view:
        seen = keys[rows.low : rows.high, :, : rows.width], values[rows.low : rows.high, :, : rows.width]
    else:
        seen = keys[rows.slots, :, : rows.width], values[rows.slots, :, : rows.width]
    if rows.is_view and not rows.is_dense:
        spread = query.new_zeros(rows.high - rows.low, *query.shape[1:])
        spread[rows.places] = query
        query = spread
    groups = query.shape[1] // keys.shape[1]
    packed = query.reshape(query.shape[0], keys.shape[1], groups, query.shape[2])
    out = _attention(packed, *seen, rows.mask(window), scale, softcap)
    out = out.reshape(query.shape[0], query.shape[1], values.shape[-1])
    return out[rows.places] if rows.is_view and not rows.is_dense else out


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
