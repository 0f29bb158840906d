"""Listens to a server's events in a thread, as a page does, and keeps them with the time at which they came."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Heard:
    """An event by its name, with its document; `at` by the monotonic clock."""

    name: str
    document: Any
    at: float


class EventStream:
    """Use as a context. `events` are those that came so far; `is_over` once the server has ended the stream."""

    def __init__(self, port: int, fields: Mapping[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._connection.request("GET", "/api/v1/events", headers=dict(fields or {}))
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.events: list[Heard] = []
        self.is_over = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._connection.sock is not None:  # a thread reads from it: closing alone would wait for that
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._answer.close()
        self._connection.close()

    def of(self, name: str) -> list[Heard]:
        """The events of one name."""
        return [event for event in self.events if event.name == name]

    def _listen(self) -> None:
        name = ""
        try:
            while line := self._answer.readline():
                kind, _, text = line.decode().rstrip("\n").partition(": ")
                if kind == "event":
                    name = text
                elif kind == "data":
                    self.events.append(Heard(name, json.loads(text), time.monotonic()))
        except (OSError, ValueError, AttributeError):
            return  # closed here
        self.is_over = True
