"""A program of a shim, run by itself: no worker, and no server behind it.

Its words are the dialect, whose package becomes importable, the module that has a function `run`, and the words of the
program.
"""

import importlib
import sys

from trivium_worker.dialects import make_importable


def main(words: list[str]) -> None:
    """Call the module's `run` with the program's words as its command line."""
    dialect, module, *own = words
    make_importable(dialect)
    sys.argv[1:] = own
    importlib.import_module(module).run()
