"""Chooses the next token of every sequence of a step, for all of them at once.

Order: repetition, presence and frequency penalty, bias, minimum of tokens, a processor of the model's folder; then
temperature, top-k, top-p, min-p and typical-p, each over what the one before it left. A token is drawn by one number
per sequence: the first of those left, in the order of the vocabulary, whose probability added to those before it
exceeds that number. Log probabilities are the model's own, before all of this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.functional import pad

from trivium.engines.hf.answers import ChosenToken
from trivium.engines.hf.call_guard import CallGuard
from trivium.engines.hf.draws import draw
from trivium.engines.hf.forward import PromptLogits
from trivium.engines.hf.processors import LogitsCall
from trivium.engines.hf.requests import is_greedy
from trivium.engines.hf.token_counts import TokenCounts, uses_counts
from trivium.types.errors import Code, ServeError, named
from trivium.types.generation import Sampling

_ALL = 2.0  # a part of the shares that rounding does not reach
_BLOCK = 256  # shares that are added up together: exact enough for any vocabulary, and fast


class SampledSequence(Protocol):
    """Tells what choosing a token needs to know of a sequence."""

    key: int
    number: int
    seed: int
    sampling: Sampling
    new: list[int]
    processor: LogitsCall | None
    wants_logprob: bool

    def known(self) -> list[int]:
        """Return the tokens of its prompt, if it has any, and its own."""
        ...

    @property
    def place(self) -> int:
        """Return its slot."""
        ...


@dataclass(frozen=True, slots=True)
class Choices:
    """The token of each sequence, and in its place the error of those that failed, by their row."""

    tokens: Sequence[ChosenToken]
    failed: Mapping[int, ServeError]


class TokenSampler:
    """One per model: what it knows of the step before is used again while the sequences are the same ones."""

    def __init__(self, ends: Sequence[int], device: torch.device, calls: CallGuard) -> None:
        self._calls = calls
        self._counts = TokenCounts()
        self._ends = list(ends)
        self._device = device
        self._keys: tuple[tuple[int, int], ...] = ()
        self._controls = _Controls([], device)

    def begin(self, sequence: SampledSequence) -> None:
        """A sequence got a slot."""
        if uses_counts(sequence.sampling):
            self._counts.begin(sequence.place, sequence.known(), sequence.new)

    def choose(self, logits: torch.Tensor, sequences: Sequence[SampledSequence]) -> Choices:
        """Return the next token of each sequence, whose logits are the row of the same number."""
        keys = tuple((sequence.key, sequence.place) for sequence in sequences)
        if keys != self._keys:
            self._keys, self._controls = keys, _Controls(sequences, self._device)
        controls = self._controls
        raw = logits.float()
        scores, failed = self._changed(raw, sequences, controls)
        best, picks = scores.max(-1)
        if controls.cut is not None or controls.plain is not None:
            drawn = torch.tensor([draw(one.seed, one.number, len(one.new)) for one in sequences])
            _draw(scores, picks, controls, drawn.to(self._device))
        for row, is_good in enumerate(torch.isfinite(best).tolist()):
            if not is_good and row not in failed:
                failed[row] = _no_number()
        if controls.counted:
            self._counts.add(controls.slots, picks[controls.counted].tolist())
        return Choices(self._told(raw, picks, controls, sequences), failed)

    def score(self, told: PromptLogits) -> None:
        """Append the scores of a prompt's tokens that the logits tell, with as many alternatives as are wanted."""
        prompt, count = told.prompt, len(told.logits)
        assert prompt.scores is not None, "it is to be scored"
        ids = torch.tensor(prompt.ids[told.begin + 1 : told.begin + 1 + count], device=self._device)
        logprobs = torch.log_softmax(told.logits.float(), -1)
        chosen = logprobs.gather(1, ids[:, None])[:, 0].tolist()
        best, at = logprobs.topk(min(prompt.alternatives, logprobs.shape[1]), -1)
        prompt.scores += [
            ChosenToken(id, logprob, list(zip(others, values, strict=True)))
            for id, logprob, others, values in zip(
                ids.tolist(), chosen, at.tolist(), best.tolist(), strict=True
            )
        ]

    def _changed(
        self, raw: torch.Tensor, sequences: Sequence[SampledSequence], controls: "_Controls"
    ) -> tuple[torch.Tensor, dict[int, ServeError]]:
        """Return the logits as the requests want them changed. Rows whose processor failed keep theirs."""
        failed: dict[int, ServeError] = {}
        young = [
            i for i in controls.with_least if len(sequences[i].new) < (sequences[i].sampling.min_tokens or 0)
        ]
        if not (controls.counted or controls.biased or controls.processed or young):
            return raw, failed
        scores = raw.clone()
        if controls.counted:
            self._counts.penalise(scores, controls.counted, controls.slots, controls.penalties)
        if controls.biased:
            scores.index_put_(controls.bias_at, controls.bias, accumulate=True)
        self._hold_ends(scores, sequences, young)
        for row in controls.processed:
            error = _process(scores, row, sequences[row], self._calls)
            if error is not None:
                failed[row] = error
        return scores, failed

    def _hold_ends(
        self, scores: torch.Tensor, sequences: Sequence[SampledSequence], young: Sequence[int]
    ) -> None:
        pairs = [(row, end) for row in young for end in (*self._ends, *sequences[row].sampling.stop_ids)]
        if pairs:
            rows, ends = (torch.tensor(column, device=self._device) for column in zip(*pairs, strict=True))
            scores[rows, ends] = -torch.inf

    def _told(
        self,
        raw: torch.Tensor,
        picks: torch.Tensor,
        controls: "_Controls",
        sequences: Sequence[SampledSequence],
    ) -> list[ChosenToken]:
        tokens = picks.tolist()
        if not controls.logprob_rows:
            return [ChosenToken(token) for token in tokens]
        rows = torch.tensor(controls.logprob_rows, device=self._device)
        logprobs = torch.log_softmax(raw[rows], -1)
        chosen = logprobs.gather(1, picks[rows, None])[:, 0].tolist()
        most = max(sequences[row].sampling.logprobs or 0 for row in controls.logprob_rows)
        best, at = logprobs.topk(min(most, raw.shape[1]), -1)
        told = {
            row: (chosen[i], list(zip(ids, values, strict=True))[: sequences[row].sampling.logprobs or 0])
            for i, (row, ids, values) in enumerate(
                zip(controls.logprob_rows, at.tolist(), best.tolist(), strict=True)
            )
        }
        return [ChosenToken(token, *told.get(row, (None, ()))) for row, token in enumerate(tokens)]


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Lists the rows whose tokens are drawn, and how each is cut: a number per row."""

    rows: torch.Tensor
    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    typical_p: torch.Tensor
    has_typical: bool


@dataclass(slots=True)
class _Controls:
    """Holds what the sequences of a step ask for, as one tensor for all of them."""

    sequences: Sequence[SampledSequence]
    device: torch.device
    plain: _Cuts | None = None
    cut: _Cuts | None = None
    counted: list[int] = field(default_factory=list)
    processed: list[int] = field(default_factory=list)
    with_least: list[int] = field(default_factory=list)
    logprob_rows: list[int] = field(default_factory=list)
    biased: bool = False
    slots: list[int] = field(default_factory=list)
    penalties: Any = None
    bias_at: Any = None
    bias: Any = None

    def __post_init__(self) -> None:
        told = [sequence.sampling for sequence in self.sequences]
        drawn = [row for row, one in enumerate(told) if not is_greedy(one)]
        self.plain = self._cuts([row for row in drawn if not _is_cut(told[row])], told)
        self.cut = self._cuts([row for row in drawn if _is_cut(told[row])], told)
        self.processed = [row for row, one in enumerate(self.sequences) if one.processor is not None]
        self.with_least = [row for row, one in enumerate(told) if one.min_tokens]
        self.logprob_rows = [row for row, one in enumerate(self.sequences) if one.wants_logprob]
        self.counted = [row for row, one in enumerate(told) if uses_counts(one)]
        if self.counted:
            self.slots = [self.sequences[row].place for row in self.counted]
            some = [told[row] for row in self.counted]
            self.penalties = torch.stack(
                (
                    self._numbers([one.repetition_penalty or 1.0 for one in some]),
                    self._numbers([one.presence_penalty or 0.0 for one in some]),
                    self._numbers([one.frequency_penalty or 0.0 for one in some]),
                )
            )
        biases = [(row, at, value) for row, one in enumerate(told) for at, value in one.logit_bias.items()]
        if biases:
            self.biased = True
            rows, at, values = zip(*biases, strict=True)
            self.bias_at = torch.tensor(rows, device=self.device), torch.tensor(at, device=self.device)
            self.bias = self._numbers(values)

    def _numbers(self, values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)

    def _cuts(self, rows: list[int], told: Sequence[Sampling]) -> _Cuts | None:
        if not rows:
            return None
        some = [told[row] for row in rows]
        top_k = [one.top_k if one.top_k and one.top_k > 0 else 2**31 for one in some]
        typical = [1.0 if one.typical_p is None else one.typical_p for one in some]
        return _Cuts(
            torch.tensor(rows, device=self.device),
            self._numbers([1.0 if one.temperature is None else one.temperature for one in some])[:, None],
            torch.tensor(top_k, device=self.device)[:, None],
            self._numbers([_ALL if one.top_p in (None, 1) else one.top_p for one in some])[:, None],
            self._numbers([one.min_p or 0.0 for one in some])[:, None],
            self._numbers(typical)[:, None],
            any(value < 1 for value in typical),
        )


def _is_cut(sampling: Sampling) -> bool:
    shares = sampling.top_p, sampling.typical_p
    has_share = any(share is not None and share < 1 for share in shares)
    return bool(has_share or sampling.min_p or (sampling.top_k or 0) > 0)


def _draw(scores: torch.Tensor, picks: torch.Tensor, controls: _Controls, drawn: torch.Tensor) -> None:
    """Draw the tokens of the rows that want it, into `picks`."""
    for cuts, is_cut in ((controls.plain, False), (controls.cut, True)):
        if cuts is not None:
            scaled = scores[cuts.rows] / cuts.temperature
            shares = torch.softmax(scaled, -1)
            if is_cut:
                shares = shares * _left(scaled, cuts)
            picks[cuts.rows] = _at(shares, drawn[cuts.rows])


def _left(scaled: torch.Tensor, cuts: _Cuts) -> torch.Tensor:
    """Return which tokens each row may draw. Those that the cuts but the last leave are all above one score."""
    ordered = _descending(scaled)
    best = ordered[:, :1]
    ranks = torch.arange(scaled.shape[1], device=scaled.device)
    last = ordered.gather(1, cuts.top_k.clamp(max=scaled.shape[1]) - 1)
    shares = torch.softmax(ordered, -1) * (ordered >= last)
    summed = shares.cumsum(-1)
    count = ((summed - shares) < cuts.top_p * summed[:, -1:]).sum(-1, True)
    last = torch.maximum(last, ordered.gather(1, (count - 1).clamp(min=0)))
    last = torch.maximum(last, torch.minimum(best + cuts.min_p.log(), best))
    if not cuts.has_typical:
        return scaled >= last
    masked = torch.where(ordered >= last, ordered, -torch.inf)
    whole = masked.logsumexp(-1, True)
    shares = (masked - whole).exp()
    entropy = torch.where(shares > 0, shares * (whole - masked), 0.0).sum(-1, True)
    distance = (whole - ordered - entropy).abs()
    nearest, order = torch.where(ordered >= last, distance, torch.inf).sort(-1)
    place = (shares.gather(1, order).cumsum(-1) < cuts.typical_p).sum(-1, True).clamp(max=len(ranks) - 1)
    limit = torch.where(cuts.typical_p < 1, nearest.gather(1, place), torch.inf)
    return (scaled >= last) & ((whole - scaled - entropy).abs() <= limit)


def _descending(scaled: torch.Tensor) -> torch.Tensor:
    """Return each row's scores, the greatest first. On a CPU numpy sorts ten times as fast."""
    if scaled.device.type == "cpu":
        return torch.from_numpy(np.sort(scaled.numpy(), -1)[:, ::-1].copy())
    return scaled.sort(-1, descending=True).values


def _at(shares: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """Return the first place of each row whose share, added to those before it, exceeds the drawn part of all."""
    rows, size = shares.shape
    blocks = pad(shares, (0, -size % _BLOCK)).reshape(rows, -1, _BLOCK)
    sums = blocks.sum(-1).double().cumsum(-1)
    target = sums[:, -1:] * drawn[:, None].to(sums.dtype)
    block = torch.searchsorted(sums, target, right=True).clamp(max=sums.shape[1] - 1)
    before = sums.gather(1, block) - blocks.sum(-1).double().gather(1, block)
    inner = blocks[torch.arange(rows, device=shares.device), block[:, 0]].double()
    place = torch.searchsorted(inner.cumsum(-1), target - before, right=True)
    last = (
        _BLOCK - 1 - (inner > 0).flip(-1).float().argmax(-1, True)
    )  # rounding leads nowhere that has no share
    return (block * _BLOCK + torch.minimum(place, last))[:, 0]


def _process(
    scores: torch.Tensor, row: int, sequence: SampledSequence, calls: CallGuard
) -> ServeError | None:
    """Let a processor of the model's folder change a row; what it does wrong is its request's fault alone."""
    assert sequence.processor is not None
    name = sequence.sampling.processor
    try:
        known = torch.tensor([sequence.known()], dtype=torch.long, device=scores.device)
        made = calls.call(name or "", sequence.processor, known, scores[row : row + 1].clone())
        if not isinstance(made, torch.Tensor) or made.shape != scores[row : row + 1].shape:
            shape = getattr(made, "shape", type(made).__name__)
            raise ValueError(f"it returned {shape}, and expected were scores of shape {(1, scores.shape[1])}")
        scores[row] = made[0]
    except BaseException as error:
        return ServeError(
            Code.MODEL_FAILED,
            f"The logits processor '{name}' failed: {named(error)}",
        )
    return None


def _no_number() -> ServeError:
    return ServeError(
        Code.MODEL_FAILED,
        "The model's logits are no numbers (NaN, or all infinite), so that no token can be chosen. Look at the "
        "embeddings or the processor of the request, or load the model with dtype fp32.",
    )
