"""The probe process: a spec on standard input, what its engine says of the model file on standard output."""

import os
import sys

from trivium.catalogue import CATALOGUE
from trivium.core.models.inspector import answer


def main() -> None:
    """Run by the server, never by hand. What libraries print goes to standard error: the answer stands alone."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        out.write(answer(sys.stdin.buffer.read(), CATALOGUE.find_engine))


if __name__ == "__main__":
    main()
