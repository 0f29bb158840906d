"""Writes the Dockerfiles of the images from their one template, in which the base and the lines of PyTorch are open.

`python docker/images.py` writes them; `tests/unit/test_images.py` holds the committed ones against it.
"""

from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parent
_INSTALL = 'RUN /opt/trivium/bin/pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" torch'


class Image(NamedTuple):
    """All in which one image differs from the others: its base, and the lines that install PyTorch for it."""

    base: str
    torch: str


IMAGES = {
    "cpu": Image(
        "ubuntu:24.04",
        f'ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu\n{_INSTALL} --extra-index-url "${{TORCH_INDEX}}"',
    ),
    "cuda": Image(
        "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04",
        f"{_INSTALL} && /opt/trivium/bin/pip uninstall --yes onnxruntime"
        " && /opt/trivium/bin/pip install --no-cache-dir onnxruntime-gpu",
    ),
}


def dockerfile(name: str) -> str:
    """Return the text of an image's Dockerfile, by its name in `IMAGES`."""
    image = IMAGES[name]
    text = (HOME / "Dockerfile.template").read_text()
    return text.replace("@NAME@", name).replace("@BASE@", image.base).replace("@TORCH@", image.torch)


if __name__ == "__main__":
    for each in IMAGES:
        (HOME / each).mkdir(exist_ok=True)
        (HOME / each / "Dockerfile").write_text(dockerfile(each))
