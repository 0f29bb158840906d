"""Everything that is asked of one server, in order: what it answered, by the name of the request or of the story."""

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.torchserve_beside.addresses import Addresses
from tests.e2e.torchserve_beside.exchange import CLOSES, LONGER, PATIENCE, Request, over_http
from tests.e2e.torchserve_beside.grpc_exchange import over_grpc
from tests.e2e.torchserve_beside.http_requests import http
from tests.e2e.torchserve_beside.servers import Setting
from tests.e2e.torchserve_beside.stories import Ready, Step, Together
from tests.harness.server_process import until

_WORD = re.compile(rb"(KEY|OLD):(\w+)")


class Player:
    """Asks one server, whose keys are in `folder` if it has any. `known` is what another one has answered: a connection
    that was closed there is waited for longer here than one that was not.
    """

    def __init__(self, addresses: Addresses, folder: Path, known: Mapping[str, Any] | None = None) -> None:
        self._addresses = addresses
        self._known = known
        self._file = folder / "key_file.json"
        self._old = self._keys()

    def play(self, setting: Setting) -> dict[str, Any]:
        """Its requests, then its stories."""
        for model in setting.models:
            self.wait(model)
        found: dict[str, Any] = {}
        for request in setting.requests():
            self.wait("says", is_there=False)  # it may have lost its worker by the request before
            answer = self._ask(request, self._expected(request.name))
            found[request.name] = {"request": request.digest(), "answer": answer}
        for name, steps in setting.stories.items():
            found[f"story: {name}"] = {
                "request": digest(steps),
                "answer": self._story(steps, self._expected(f"story: {name}")),
            }
        return found

    def _expected(self, name: str) -> Any:
        return None if self._known is None else self._known.get(name, {}).get("answer")

    def _ask(self, request: Request, expected: Any) -> dict[str, Any]:
        port = self._addresses.port(request.listener)
        if request.rpc:
            metadata = tuple((name, self._told(value.encode()).decode()) for name, value in request.metadata)
            return over_grpc(request, port, metadata)
        closes = PATIENCE if isinstance(expected, dict) and expected.get("closes") else CLOSES
        patience = LONGER if request.listener == "management" else PATIENCE
        return over_http(self._told(request.data), port, closes, patience)

    def wait(self, model: str, workers: int = 1, is_there: bool = True) -> None:
        """Wait until so many workers of the model are ready; where it need not be there, no longer than that is so."""

        def is_ready() -> bool:
            fields = [f"Authorization: Bearer {self._keys().get('management', '')}"]
            asked = http("GET", f"/models/{model}", fields=fields)
            text = str(over_http(asked, self._addresses.management, 0.0).get("body"))
            return text.count('"READY"') >= workers or not (is_there or '"modelName"' in text)

        until(is_ready, lambda: f"{model} is not ready")

    def _story(self, steps: Sequence[Step], expected: Any) -> list[Any]:
        found: list[Any] = []
        for step in steps:
            known = (
                expected[len(found)] if isinstance(expected, list) and len(found) < len(expected) else None
            )
            if isinstance(step, Ready):
                self.wait(step.model, step.workers)
            elif isinstance(step, Together):
                found.append(self._together(step, known))
            else:
                found.append(self._ask(step, known))
        return found

    def _together(self, step: Together, expected: Any) -> list[Any]:
        start = threading.Barrier(len(step.requests))
        known = expected if isinstance(expected, list) else [None] * len(step.requests)

        def ask(number: int) -> Any:
            start.wait()
            time.sleep(number * step.apart)
            return self._ask(step.requests[number], known[number])

        with ThreadPoolExecutor(len(step.requests)) as threads:
            found = list(threads.map(ask, range(len(step.requests))))
        return sorted(found, key=json.dumps) if step.is_sorted else found

    def _keys(self) -> dict[str, str]:
        if not self._file.exists():
            return {}
        return {name: str(about["key"]) for name, about in json.loads(self._file.read_text()).items()}

    def _told(self, data: bytes) -> bytes:
        def key(match: re.Match[bytes]) -> bytes:
            keys = self._keys() if match[1] == b"KEY" else self._old
            return keys[match[2].decode()].encode()

        return _WORD.sub(key, data)


def digest(steps: Sequence[Step]) -> str:
    """What a story asks, in a few letters."""
    requests = [
        each
        for step in steps
        for each in (
            step.requests if isinstance(step, Together) else [step] if isinstance(step, Request) else []
        )
    ]
    return "-".join(each.digest()[:4] for each in requests)
