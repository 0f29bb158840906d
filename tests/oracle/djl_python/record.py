"""Runs every call on the original package, and writes what comes of each to `record.json`.

    git clone https://github.com/deepjavalibrary/djl-serving
    python -m venv original && original/bin/pip install numpy pillow pydantic requests
    original/bin/python -m tests.oracle.djl_python.record djl-serving/engines/python/setup COMMIT

It runs in the folder of this project. The record holds outcomes alone, nothing of the original's text but what it
raises or prints.
"""

import json
import platform
import sys
from pathlib import Path

import numpy
import PIL
from tests.oracle.djl_python.calls import CALLS
from tests.oracle.djl_python.world import outcome, signature

RECORD = Path(__file__).with_name("record.json")


def main(package: str, commit: str) -> None:
    """Write the record of the package in this folder."""
    sys.path.insert(0, str(Path(package).resolve()))
    outcomes: dict[str, dict[str, object]] = {}
    for call in CALLS:
        outcomes.setdefault(call.name, {})[call.expression] = outcome(call.expression)
    about = {"commit": commit, "python": platform.python_version(), "numpy": numpy.__version__}
    signatures = {name: signature(name) for name in outcomes}
    document = {"about": about | {"pillow": PIL.__version__}, "signatures": signatures, "outcomes": outcomes}
    RECORD.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    print(f"{len(CALLS)} calls of {len(outcomes)} names: {RECORD}")


if __name__ == "__main__":
    main(*sys.argv[1:])
