"""Load over gRPC by the real `perf_analyzer`, which the client library's wheel carries: a closed loop of requests.

What a request costs is the server's CPU time divided by the requests that the server itself says it answered.
"""

import json
import math
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from bench import tritonserver
from bench.requests import Request
from bench.servers import Measured, Server

PER_SECOND = 4000
"""Requests that stand for a second of load: the program ends by itself only after a number of them."""

PATIENCE = 90.0
"""Seconds for one run. Beside the real tritonserver it was seen to wait for ever, both of them asleep."""
TRIES = 3


def load(server: Server, request: Request, at_a_time: int, seconds: float) -> Measured:
    """As `Server.load`, with that many requests in flight on one channel. A run that does not end is made again."""
    for _ in range(TRIES):
        try:
            return _load_once(server, request, at_a_time, seconds)
        except subprocess.TimeoutExpired as error:
            print(f"tried again: {request.model} over gRPC: {error}", file=sys.stderr)
    raise RuntimeError(f"perf_analyzer did not end, {TRIES} times, on {request.model} at {server.grpc}.")


def _load_once(server: Server, request: Request, at_a_time: int, seconds: float) -> Measured:
    command = [
        str(Path(sys.executable).with_name("perf_analyzer")),
        *("-m", request.model, "-i", "grpc", "-u", server.grpc, "--async"),
        *("--concurrency-range", str(at_a_time), "--request-count", str(round(PER_SECOND * seconds))),
    ]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tritonserver.libraries_for_clients())}
    answered, spent = _answered(server, request), server.cpu_seconds()
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    spent = server.cpu_seconds() - spent
    answered = _answered(server, request) - answered
    if ran.returncode or not answered:
        raise RuntimeError(f"perf_analyzer ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    found = re.search(r"p50 latency: (\d+) usec", ran.stdout)
    return Measured(answered, spent / answered * 1e6, float(found[1]) if found else math.nan)


def _answered(server: Server, request: Request) -> int:
    with urllib.request.urlopen(f"{server.url}/v2/models/{request.model}/stats", timeout=10) as response:
        (stats,) = json.load(response)["model_stats"]
    count: int = stats["inference_stats"]["success"]["count"]
    return count
