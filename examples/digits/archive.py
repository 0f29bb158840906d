"""Makes the shipped TorchServe archive of the digit classifier; the same bytes every time."""

import json
import zipfile
from pathlib import Path

from examples.digits import shipped

SOURCE = Path(__file__).parent / "torchserve" / "handler.py"
NETWORK = "network.onnx"
MANIFEST = {
    "createdOn": "01/01/2026 00:00:00",
    "runtime": "python",
    "model": {
        "modelName": "digits-torchserve",
        "serializedFile": NETWORK,
        "handler": SOURCE.name,
        "modelVersion": "1.0",
        "configFile": "model-config.yaml",
    },
    "archiverVersion": "0.12.0",
}
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 4\nmaxBatchDelay: 1\n"


def write(path: Path) -> None:
    """The archive, as torch-model-archiver would lay it out."""
    members = {
        "MAR-INF/MANIFEST.json": json.dumps(MANIFEST, indent=2).encode(),
        SOURCE.name: SOURCE.read_bytes(),
        "model-config.yaml": CONFIG.encode(),
        NETWORK: shipped.BARE_MODEL.read_bytes(),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    write(shipped.ARCHIVE)
    print(f"wrote {shipped.ARCHIVE} ({shipped.ARCHIVE.stat().st_size} bytes)")
