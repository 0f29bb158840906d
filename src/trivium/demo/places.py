"""The places of the shipped examples on this machine: models, and pictures to ask them about.

Files of the installed package; the package is never imported from an archive. Knows no model's content.
"""

import shutil
from importlib.resources import files
from pathlib import Path

_DEMO = Path(str(files("trivium.demo")))


def models() -> Path:
    """The Triton repository; it holds the model `digits`."""
    return _DEMO / "models"


def bare_model() -> Path:
    """Return the same network as a bare file, served as `digits-bare`."""
    return _DEMO / "bare" / "digits-bare.onnx"


def handlers() -> tuple[Path, ...]:
    """Return the same network behind a handler of each dialect: a Triton repository, a DJL folder, a TorchServe
    archive.
    """
    folder = _DEMO / "handlers"
    return (
        folder / "triton",
        folder / "djl" / "digits-djl",
        folder / "torchserve" / "digits-torchserve.mar",
    )


def translated(into: Path) -> Path:
    """Lay the same network out in an empty folder as one of DJL's, whose translator takes the picture itself."""
    folder = into / "digits_picture"
    shutil.copytree(_DEMO / "translated" / folder.name, folder)
    (folder / "model.onnx").symlink_to(bare_model())
    return folder


def pictures() -> tuple[Path, ...]:
    """One PNG per digit, 0 to 9, that no training has seen; `digit-7.png` shows a seven."""
    return tuple(_DEMO / "pictures" / f"digit-{digit}.png" for digit in range(10))
