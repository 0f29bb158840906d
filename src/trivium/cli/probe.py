"""The probe process: a spec on standard input, what its engine says of the model file on standard output."""

import sys

from trivium.app import ENGINES
from trivium.core.probe import answer


def main() -> None:
    """Run by the server, never by hand."""
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read(), ENGINES))


if __name__ == "__main__":
    main()
