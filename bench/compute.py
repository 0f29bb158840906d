"""The floor of the large model: the same session on the same input, in a process with nothing else in it.

Run as a child, it prints CPU-microseconds per run.
"""

import subprocess
import sys
import time
from pathlib import Path

import onnxruntime
from bench.requests import picture


def measure(model: Path, seconds: float) -> float:
    """CPU-microseconds per run, in a child process."""
    command = [sys.executable, "-m", "bench.compute", str(model), str(seconds)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """As served: one thread, every graph optimisation."""
    model, seconds = sys.argv[1], float(sys.argv[2])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {"input": picture().data}
    for _ in range(20):
        session.run(["output"], feeds)
    runs, began, spent = 0, time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        session.run(["output"], feeds)
        runs += 1
    print((time.process_time() - spent) / runs * 1e6)


if __name__ == "__main__":
    main()
