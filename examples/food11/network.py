"""The picture classifier of this example: MobileNetV2's layers (Sandler et al. 2018, table 2), 11 kinds of food.

Its weights are seeded random numbers, since the example is about serving: the work and the bytes are those of the real
thing, the labels that it tells are not.
"""

import torch
from torch import nn

LABELS = (
    "Bread",
    "Dairy product",
    "Dessert",
    "Egg",
    "Fried food",
    "Meat",
    "Noodles/Pasta",
    "Rice",
    "Seafood",
    "Soup",
    "Vegetable/Fruit",
)
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, repeats, stride of the first repeat."""


def convolution(into: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """With batch normalisation behind it."""
    padding = kernel // 2
    return [nn.Conv2d(into, out, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(out)]


class Bottleneck(nn.Module):
    """Widen, filter each channel, narrow; with a way around where the shapes allow it."""

    def __init__(self, into: int, out: int, expansion: int, stride: int) -> None:
        super().__init__()
        wide = into * expansion
        widen = [*convolution(into, wide), nn.ReLU6()] if expansion > 1 else []
        filters = [*convolution(wide, wide, 3, stride, groups=wide), nn.ReLU6()]
        self.layers = nn.Sequential(*widen, *filters, *convolution(wide, out))
        self.has_shortcut = stride == 1 and into == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """FP32 [n, into, h, w] to FP32 [n, out, h / stride, w / stride]."""
        return x + self.layers(x) if self.has_shortcut else self.layers(x)


class FoodClassifier(nn.Module):
    """FP32 [n, 3, 224, 224], normalised, to FP32 [n, 11], a score for each label."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [*convolution(3, 32, 3, 2), nn.ReLU6()]
        channels = 32
        for expansion, out, repeats, stride in BLOCKS:
            for repeat in range(repeats):
                layers.append(Bottleneck(channels, out, expansion, stride if repeat == 0 else 1))
                channels = out
        layers += [*convolution(channels, 1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.layers = nn.Sequential(*layers)
        self.scores = nn.Linear(1280, len(LABELS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        scores: torch.Tensor = self.scores(self.layers(x))
        return scores


def seeded(seed: int = 11) -> FoodClassifier:
    """The same weights every time. The last layer's are large enough for the pictures to get different labels."""
    torch.manual_seed(seed)
    network = FoodClassifier().eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_in")
        nn.init.normal_(network.scores.weight, std=0.2)
    return network
