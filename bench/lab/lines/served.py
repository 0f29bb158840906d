"""The server, whose timers do not fire while it is stepped, and which at SIGUSR1 writes where its code objects lie."""

import gc
import os
import signal
import sys
import types
from pathlib import Path

from trivium.cli.main import main
from trivium.core.clock import LoopWatch
from trivium.core.workers import watch
from trivium.frontends.http import state


def _dump(*_: object) -> None:
    gc.unfreeze()
    codes = {one.__code__ for one in gc.get_objects() if isinstance(one, types.FunctionType)}
    rows = [f"{id(code)}\t{sys.getsizeof(code)}\t{code.co_qualname}\n" for code in codes]
    part = Path(os.environ["CODES"] + ".part")
    part.write_text("".join(rows))
    part.rename(os.environ["CODES"])


if __name__ == "__main__":
    LoopWatch.PERIOD = watch.SECONDS = state.SWEEP_SECONDS = 1000.0
    signal.signal(signal.SIGUSR1, _dump)
    main()
