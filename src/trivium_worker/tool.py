"""A program of a shim, run by itself: no worker, and no server behind it.

Its words are the dialect, whose package becomes importable, the module that has a function `run`, and the words of the
program.
"""

import importlib
import os
import sys
from typing import List


def main(words: List[str]) -> None:
    """Call the module's `run` with the program's words as its command line."""
    dialect, module, *own = words
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "shims", dialect))
    sys.argv[1:] = own
    importlib.import_module(module).run()
