"""Finds a port for a server that cannot be told to find one itself."""

import os
import random
import socket

_PORTS = range(15_000, 30_000)
"""Below those that the system gives to whoever asks for any, so that nobody else is given it meanwhile."""

_DICE = random.Random(os.getpid())


def free_port() -> int:
    """One that nobody listens on. Processes that test beside this one look elsewhere."""
    for port in _DICE.sample(_PORTS, 100):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise AssertionError(f"no port of {_PORTS} is free")
