"""Declares the operators that torchvision registers shapes for: its wheel for CUDA lacks them beside torch for the CPU,
and could not be imported. None is called by what the original's handlers do with a picture.
"""

import importlib.util
import re
from pathlib import Path

import torch

_NAMES = re.compile(r"""@register_meta\("(\w+)"\)|register_fake\("torchvision::(\w+)"\)""")


def declare() -> None:
    """Declare each that there is not yet, without a meaning."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    text = Path(spec.origin).with_name("_meta_registrations.py").read_text()
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in sorted({found[1] or found[2] for found in _NAMES.finditer(text)}):
        library.define(f"{name}(Tensor first) -> Tensor")
    _KEPT.append(library)


_KEPT: list[torch.library.Library] = []
"""What a library declares goes with it."""

declare()
