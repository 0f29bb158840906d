"""Modules for torch.jit.script, whose files know no datatype and no shape, written bare and into folders of DJL's."""

from pathlib import Path

import torch
from torch import Tensor, nn


class Two(nn.Module):
    """Two tensors in, two out."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x + y, x - y


class Choice(nn.Module):
    """A tensor that may be left out, and a number that nobody sends."""

    def forward(self, tokens: Tensor, mask: Tensor | None, scale: float = 2.0) -> Tensor:
        return tokens * scale if mask is None else tokens * mask


class Pictures(nn.Module):
    """A list of any length."""

    def forward(self, images: list[Tensor]) -> list[Tensor]:
        return [image.sum() for image in images]


class Named(nn.Module):
    """A dictionary in, and one out."""

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"total": given["a"] + given["b"], "least": torch.minimum(given["a"], given["b"])}


class Double(nn.Module):
    """One tensor in, one out."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Text(nn.Module):
    """It takes what no client can send."""

    def forward(self, x: Tensor, name: str) -> Tensor:
        return x if name == "" else -x


BARE = {"two": Two, "choice": Choice, "pictures": Pictures, "named": Named, "text": Text}
FOLDERS = {
    "binary": "engine=PyTorch\n",
    "stacked": "engine=PyTorch\nbatchifier=stack\nbatch_size=4\nmax_batch_delay=1\n",
}


def write_scripted(root: Path) -> None:
    """Write all of them."""
    for name, kind in BARE.items():
        torch.jit.script(kind()).save(str(root / f"{name}.pt"))
    for name, properties in FOLDERS.items():
        (root / name).mkdir()
        torch.jit.script(Double()).save(str(root / name / f"{name}.pt"))
        (root / name / "serving.properties").write_text(properties)
