"""The same targets, driven by atheris, which goes on from those inputs that reach new lines of the readers.

Optional: `pip install atheris` puts it beside the tests. It stops at the first fault and writes that input to a file.
"""

import contextlib
import random
import sys
import tempfile
from pathlib import Path

PACKAGES = ["trivium", "trivium_worker"]


def fuzz(name: str, count: int) -> int:
    """So many inputs for one target. Does not return where atheris ends the process itself."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed. Install it beside the tests: .venv-test/bin/pip install atheris")
        return 2
    with atheris.instrument_imports(include=PACKAGES):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]

    def read(data: bytes) -> None:
        with contextlib.suppress(*target.refusals):
            target.read(data, random.Random(0))

    with tempfile.TemporaryDirectory(prefix="fuzz-corpus-") as folder:
        for number, entry in enumerate(target.corpus):
            (Path(folder) / str(number)).write_bytes(entry)
        options = [f"-runs={count}", f"-max_len={target.most}", "-timeout=10", folder]
        atheris.Setup([sys.argv[0], *options], read)
        atheris.Fuzz()
    return 0
