"""Model folders made up on disk, and what the Triton format reads from them."""

from pathlib import Path

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, ModelSpec

DEFAULTS = Defaults()
TENSORS = """
input { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] }
output { name: "y" data_type: TYPE_STRING dims: 2 }
"""
TWO = ("1/model.onnx", "2/model.onnx")


def make(root: Path, name: str, config: str | None = None, *files: str) -> Path:
    folder = root / name
    folder.mkdir()
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return folder


def one(folder: Path, defaults: Defaults = DEFAULTS) -> ModelSpec:
    reading = FORMAT.read(folder, defaults)
    assert [str(finding) for model in reading.unreadable for finding in model.findings] == []
    (spec,) = reading.specs
    return spec


def faults(folder: Path, defaults: Defaults = DEFAULTS) -> list[Finding]:
    reading = FORMAT.read(folder, defaults)
    assert reading.specs == ()
    (model,) = reading.unreadable
    assert (model.name, model.root) == (folder.name, folder)
    return [finding for finding in model.findings if finding.severity is Severity.ERROR]
