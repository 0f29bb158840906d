"""A TorchServe handler in this process: its adapter, a host that notes metrics, items that note what is sent."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.outlet import CallingOutlet

import trivium_worker
from trivium_worker.runtime.adapter import Host, Setup
from trivium_worker.wire.values import Failure, Item, Part, Raw, Tensor

SEES = """
SEEN = []
def handle(data, context):
    SEEN.append((data, context))
    return ["ok"] * len(data or [])
"""
"""A handler that notes what it gets."""

SHIMS = Path(trivium_worker.__file__).parent / "shims" / "torchserve"


class FakeHost(Host):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.measured: list[dict[str, Any]] = []

    def measure(self, metric: dict[str, Any]) -> None:
        self.measured.append(metric)


class TorchServeChildHarness:
    """One handler's folder. `parts` has what items sent before their outcome, by number."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = FakeHost()
        self.parts: dict[int, list[Any]] = {}
        self._number = 0

    def load(self, text: str = "", entry: str = "handler.py", **told: Any) -> Any:
        """The adapter of a handler with this text; `manifest`, `config`, `metrics` and fields of the setup by name."""
        from trivium_worker.dialects.torchserve import ADAPTER

        if text:
            (self.root / entry).parent.mkdir(parents=True, exist_ok=True)
            (self.root / entry).write_text(text)
        settings = {
            "manifest": told.pop("manifest", {"model": {"modelName": "m"}}),
            "model_yaml_config": told.pop("config", {}),
            "server_version": "0.12.0",
            "limit_max_image_pixels": True,
            "decode_input_request": told.pop("decodes", True),
            "slots": told.pop("slots", 0),
            **({"metrics": told.pop("metrics")} if "metrics" in told else {}),
            "service_envelope": told.pop("envelope", ""),
            "in_flight": told.pop("in_flight", 0),
        }
        setup = {
            "dialect": "torchserve",
            "model": "m",
            "version": "1.0",
            "instance": "m_0",
            "device": "cpu",
            "device_id": 0,
            "root": str(self.root),
            "entry": entry,
            "function": "",
            "max_rows": 4,
            "settings": settings,
            "parameters": {},
            **told,
        }
        return ADAPTER(Setup(setup), self.host)

    def item(self, payload: Any = b"", content_type: str = "", **about: Any) -> Item:
        """A request: a whole body, parts, or tensors. `properties` and `query` go into the raw body."""
        properties, query = about.pop("properties", {}), about.pop("query", ())
        path = about.pop("path", "")
        request_id = about.pop("request_id", "")
        if isinstance(payload, bytes):
            payload = [Part(memoryview(payload), content_type)]
        if not payload or isinstance(payload[0], Part):
            payload = Raw(payload, properties, query, path=path)
        self._number += 1
        return Item(self._number, request_id, 1, payload, about, CallingOutlet(self._send))

    def _send(self, item: Item, outcome: Any, final: bool, parameters: Any) -> None:
        self.parts.setdefault(item.number, []).append(outcome)


def returning(text: str) -> str:
    """A handler that returns what an expression of `data` and `context` comes to."""
    return f"def handle(data, context):\n    if data is None:\n        return None\n    return {text}\n"


def body(outcome: Any) -> bytes:
    assert isinstance(outcome, Raw), getattr(outcome, "message", outcome)
    (part,) = outcome.parts
    assert part.content_type == ""
    return bytes(part.data)


def failures(outcomes: Any) -> list[tuple[str, str, int | None]]:
    assert all(isinstance(outcome, Failure) for outcome in outcomes), outcomes
    return [(outcome.code, outcome.message, outcome.status) for outcome in outcomes]


def bytes_tensor(name: str, *elements: bytes) -> Tensor:
    return Tensor.of_elements(name, elements)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[TorchServeChildHarness]:
    """One handler's folder; what user code and the shims loaded is forgotten afterwards."""
    modules, path = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(tmp_path), str(SHIMS)]
    yield TorchServeChildHarness(tmp_path)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = str(getattr(sys.modules[name], "__file__", None))
        if file.startswith((str(SHIMS), str(tmp_path))):
            del sys.modules[name]
