"""The probe process: specs on standard input, what their engine says of the model files on standard output."""

import gc
import os
import sys

from trivium.core.models.inspector import answer_all
from trivium.model_catalogue import MODELS

_ALLOCATIONS = 50_000
"""Between two looks for garbage: importing a library makes hardly any, and a fourth of its time would go into that."""


def main() -> None:
    """Run by the server, never by hand. What libraries print goes to standard error: the answers stand alone."""
    gc.set_threshold(_ALLOCATIONS, 50, 100)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        answer_all(sys.stdin.buffer, out, MODELS.find_engine)


if __name__ == "__main__":
    main()
