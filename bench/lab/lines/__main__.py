"""`python -m bench.lab.lines`: count, and print. Needs Linux on x86-64, a C compiler and `nm`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from bench import repository, requests
from bench.lab.lines.trace import LINE, PAGE, Trace, by_means
from bench.servers import await_line, started

_HERE = Path(__file__).parent
_WARM = 300
_SLEEPS = 7


def main() -> None:
    """Of a large request to a handler, one connection."""
    folder = repository.CACHE / "lines"
    folder.mkdir(parents=True, exist_ok=True)
    step, steps, codes, log = (folder / name for name in ("step", "steps", "codes", "log"))
    subprocess.run(["cc", "-O2", "-o", step, _HERE / "step.c"], check=True)
    codes.unlink(missing_ok=True)
    os.environ["CODES"] = str(codes)
    folders = map(str, repository.make())
    flags = ("--http-port", "0", "--grpc-port", "0", "--no-shared-processor")
    with started([sys.executable, "-m", "bench.lab.lines.served", "serve", *folders, *flags], log) as process:
        client = _Client(await_line(log, process, r"HTTP on (\S+)"))
        for _ in range(_WARM):
            client.ask()
        words = [str(step), str(process.pid), str(_SLEEPS), str(steps)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as stepper:
            assert stepper.stdout is not None
            stepper.stdout.readline()
            while stepper.poll() is None:
                client.ask()
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        process.send_signal(signal.SIGUSR1)
        while not codes.exists():
            client.ask()
            time.sleep(0.1)
    _print(Trace(steps, maps, codes.read_text()))
    steps.unlink()


class _Client:
    """Sends the same large request over one connection, as wrk does."""

    def __init__(self, url: str) -> None:
        found = re.search(r"([\d.]+):(\d+)", url)
        assert found is not None
        self._socket = socket.create_connection((found[1], int(found[2])))
        asked = requests.picture("python_mobilenet")
        body = asked.body()
        head = {"Host": found[0], "Content-Type": "application/octet-stream", "Content-Length": len(body)}
        head["Inference-Header-Content-Length"] = len(asked.json())
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        self._request = f"POST {asked.path} HTTP/1.1\r\n{lines}\r\n".encode() + body

    def ask(self) -> None:
        self._socket.sendall(self._request)
        answer = self._socket.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer


def _print(trace: Trace) -> None:
    code, data = np.unique(trace.instructions >> LINE), np.unique(trace.where >> LINE)
    pages = len(np.unique(trace.instructions >> PAGE)) + len(np.unique(trace.where >> PAGE))
    counts = {
        "instructions": len(trace.steps),
        "lines of code": len(code),
        "lines of data": len(data),
        "pages": pages,
    }
    print(json.dumps(counts))
    for lines, name, callers in by_means(trace)[:150]:
        print(f"{lines:4} {name:45} {callers}")


if __name__ == "__main__":
    main()
