"""The least Python that handlers run under, on the path or among those of pyenv.

Run by itself, as `.ci/run` does, it prints where that is, or says what to do where there is none.
"""

import glob
import os
import shutil
import subprocess
import sys

LEAST = "3.10"
HOW = (
    f"There is no Python {LEAST}, the least under which handlers run. Install one, for example by "
    f"`pyenv install {LEAST}`, or put a python{LEAST} on PATH."
)


def interpreter(version: str = LEAST) -> str | None:
    """Return the path of an interpreter of that version, if there is one that runs."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for path in (shutil.which(f"python{version}"), *glob.glob(f"{root}/versions/{version}.*/bin/python")):
        if path is not None:
            text = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
            done = subprocess.run([path, "-c", text], capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.startswith(f"{version} "):
                return done.stdout.split(maxsplit=1)[1].strip()
    return None


if __name__ == "__main__":
    sys.exit(HOW) if (found := interpreter()) is None else print(found)
