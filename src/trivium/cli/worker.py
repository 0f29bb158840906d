"""The worker process of one of our own engines: descriptors by number on the command line."""

import sys

from trivium.catalogue import CATALOGUE
from trivium.core.workers.host import run

if __name__ == "__main__":
    run(sys.argv[1:], CATALOGUE.find_engine)
