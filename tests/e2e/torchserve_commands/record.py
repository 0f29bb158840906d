"""Has the real TorchServe run every command line, and writes down what it did; `make original` runs it."""

import json
from pathlib import Path

from tests.e2e.torchserve_commands.play import Program, play

RECORD = Path(__file__).parent / "original.json"
_ENVIRONMENT = Path(__file__).parents[3] / ".venv-original" / "bin"


def main() -> None:
    """Write the record."""
    found = play(Program([str(_ENVIRONMENT / "torchserve")], str(_ENVIRONMENT)))
    RECORD.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
