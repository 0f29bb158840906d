"""Former name of `trivium_worker.pictures`, by which handlers may import it."""

import sys

from trivium_worker import pictures

sys.modules[__name__] = pictures
