"""The worker process of one of our own engines: descriptors by number on the command line."""

import sys

from trivium.core.workers.host import run
from trivium.model_catalogue import MODELS

if __name__ == "__main__":
    run(sys.argv[1:], MODELS.find_engine)
