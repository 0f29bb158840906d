"""A tiny encoder of BERT's shape with two heads: the span that answers a question, and the class of a text."""

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, HEADS, LAYERS, POSITIONS = 48, 4, 2, 128


class Layer(nn.Module):
    """Attention and two dense layers, each with a shortcut around it and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.seen = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.wide = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.narrow = nn.Linear(2 * HIDDEN, HIDDEN)
        self.first = nn.LayerNorm(HIDDEN)
        self.second = nn.LayerNorm(HIDDEN)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the next states `[rows, tokens, HIDDEN]`; `mask` is 0, or very negative where nothing is."""
        rows, tokens = states.size(0), states.size(1)
        parts = self.seen(states).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(-1, -2) / parts.size(4) ** 0.5 + mask
        mixed = (scores.softmax(-1) @ parts[2]).transpose(1, 2).reshape(rows, tokens, -1)
        states = self.first(states + self.out(mixed))
        return self.second(states + self.narrow(functional.gelu(self.wide(states))))


class Encoder(nn.Module):
    """Turns ids into states. A token's embedding holds those of the one and the two before it, too."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, HIDDEN)
        self.mix = nn.Linear(3 * HIDDEN, HIDDEN)
        self.places = nn.Embedding(POSITIONS, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])

    def forward(self, ids: Tensor, present: Tensor, types: Tensor) -> Tensor:
        """Return the states `[rows, tokens, HIDDEN]`."""
        words = self.words(ids)
        one, two = functional.pad(words, (0, 0, 1, 0))[:, :-1], functional.pad(words, (0, 0, 2, 0))[:, :-2]
        places = self.places(torch.arange(ids.size(1), device=ids.device))
        states = self.norm(self.mix(torch.cat([words, one, two], -1)) + places + self.types(types))
        mask = (1.0 - present[:, None, None, :].to(states.dtype)) * -1e4
        for layer in self.layers:
            states = layer(states, mask)
        return states


class QuestionModel(nn.Module):
    """Scores every token as the beginning and as the end of an answer."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.encoder = Encoder(words)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the scores `[rows, tokens]` of beginnings and of ends."""
        scores = self.head(self.encoder(input_ids, attention_mask, token_type_ids))
        return scores[:, :, 0], scores[:, :, 1]


class SentenceModel(nn.Module):
    """Scores the classes of a text, by the mean of its states."""

    def __init__(self, words: int, classes: int) -> None:
        super().__init__()
        self.encoder = Encoder(words)
        self.chance = nn.Dropout(0.5)
        self.head = nn.Linear(HIDDEN, classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the scores `[rows, classes]`."""
        states = self.encoder(input_ids, attention_mask, torch.zeros_like(input_ids))
        present = attention_mask[:, :, None].to(states.dtype)
        mean = (states * present).sum(1) / present.sum(1)
        return self.head(self.chance(mean))
