"""An archive of TorchServe whose handler answers with a variable of its own environment."""

import json
import zipfile
from pathlib import Path

_HANDLER = """
import os

def handle(data, context):
    return data and [os.environ.get("OMP_NUM_THREADS", "not set") for _ in data]
"""


def told_archive(folder: Path, name: str = "told") -> Path:
    """Write NAME.mar into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.mar"
    model = {"modelName": name, "modelVersion": "1.0", "handler": "handler.py"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"runtime": "python", "model": model}))
        archive.writestr("handler.py", _HANDLER)
    return path
