"""The commands. One that is started as `python -m trivium.cli...` takes the current folder, which `-m` put there, off
the path, before anything else is imported; unless the package itself lies there.
"""

import os
import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    _HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.path[:1] in ([""], [os.getcwd()]) and not os.path.samefile(os.curdir, _HOME):
        del sys.path[0]
