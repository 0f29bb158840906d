"""DJL model folders made up on disk, and what the format reads from them."""

import zipfile
from pathlib import Path

from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, ModelSpec

FORMAT = DjlFormat()
DEFAULTS = Defaults(queue_items=17, cpus=3)
HANDLER = "from djl_python import Output\ndef handle(inputs):\n    return Output()\n"
TRITON = "class TritonPythonModel:\n    pass\n"
TORCHSERVE = "class H:\n    def handle(self, data, context):\n        return data\n"


def make(root: Path, name: str, *settings: str, **files: str) -> Path:
    """A folder with these lines in serving.properties, if any, and these files; `model_py` is model.py."""
    folder = root / name
    folder.mkdir(parents=True)
    if settings:
        (folder / "serving.properties").write_text("\n".join(settings) + "\n")
    for file, text in files.items():
        (folder / (file if "." in file else file.replace("_", "."))).write_text(text)
    return folder


def zipped(folder: Path, archive: Path, prefix: str = "") -> Path:
    """The files of a folder as a zip archive."""
    with zipfile.ZipFile(archive, "w") as opened:
        for path in sorted(folder.rglob("*")):
            opened.write(path, prefix + str(path.relative_to(folder)))
    return archive


def one(path: Path, defaults: Defaults = DEFAULTS) -> ModelSpec:
    """The only model of a path that must be readable."""
    assert FORMAT.claims(path)
    reading = FORMAT.read(path, defaults)
    assert reading.unreadable == (), reading.unreadable
    (spec,) = reading.specs
    return spec


def faults(path: Path, defaults: Defaults = DEFAULTS) -> list[Finding]:
    """The errors of the only model of a path, which must not be readable."""
    reading = FORMAT.read(path, defaults)
    assert reading.specs == ()
    (broken,) = reading.unreadable
    return [finding for finding in broken.findings if finding.severity is Severity.ERROR]
