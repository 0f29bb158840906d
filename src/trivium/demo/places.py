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


def workflow(into: Path) -> Path:
    """Lay a workflow of DJL's out in an empty folder: the same network with a translator that takes the picture
    itself, the same behind a handler, and a function that holds their answers together.
    """
    shutil.copytree(_DEMO / "translated", into, dirs_exist_ok=True)
    (into / "digits_picture" / "model.onnx").symlink_to(bare_model())
    shutil.copytree(_DEMO / "handlers" / "djl" / "digits-djl", into / "digits-djl")
    return into / "digits_agree"


def pictures() -> tuple[Path, ...]:
    """One PNG per digit, 0 to 9, that no training has seen; `digit-7.png` shows a seven."""
    return tuple(_DEMO / "pictures" / f"digit-{digit}.png" for digit in range(10))
