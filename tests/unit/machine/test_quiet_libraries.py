"""Lines that a library prints are left out of standard error; all others go on their way."""

import subprocess
import sys

SCRIPT = """
import os, subprocess, sys
from trivium.machine.quiet_libraries import without_lines
os.write(2, b"I0000 before\\n")
with without_lines((b"I0000 ", b"WARNING: ")):
    os.write(2, b"I0000 noise\\nWARNING: noise\\n")
    print("kept", file=sys.stderr)
    subprocess.run([sys.executable, "-c", "import os; os.write(2, b'child I0000')"])
os.write(2, b"I0000 after\\n")
"""


def test_lines_that_begin_so_are_left_out_while_it_is_wished() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == "I0000 before\nkept\nchild I0000I0000 after\n"
