"""A Triton model in this process: its adapter, a host that notes what it is asked, items that note what is sent."""

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from tests.harness.outlet import CallingOutlet

import trivium_worker
from trivium_worker.runtime.adapter import Adapter, Answer, Call, Host, Setup
from trivium_worker.wire.values import END, Failure, Item, Tensor

SHIMS = Path(trivium_worker.__file__).parent / "shims" / "triton"
WAIT = 60.0
HEAD = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n"
ECHO = HEAD + (
    "class TritonPythonModel:\n"
    "    def execute(self, requests):\n"
    "        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT',\n"
    "            pb_utils.get_input_tensor_by_name(request, 'IN').as_numpy())]) for request in requests]\n"
)
PREFIX = "Failed to process the request(s) for model 'm_0_0', message: "
CONFIG = {
    "name": "m",
    "backend": "python",
    "max_batch_size": 8,
    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [2]}],
}


class FakeHost(Host):
    """Answers calls from `answers`: model -> parts, or a Failure, or a function of the parent."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.calls: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.replies: dict[str, Any] = {}
        self.lines: list[tuple[str, str]] = []
        self.measured: list[dict[str, Any]] = []
        self.closed = 0

    def call(self, parent: Item | None, call: Call) -> Iterator[Answer]:
        self.calls.append({"parent": parent, **call._asdict()})
        answer = self.answers[call.model]
        return self._parts(answer(parent) if callable(answer) else answer)

    def _parts(self, answer: Any) -> Iterator[Answer]:
        try:
            if isinstance(answer, Failure):
                raise answer
            yield from answer
        finally:
            self.closed += 1

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        self.asked.append((verb, fields))
        reply = self.replies.get(verb, {})
        if isinstance(reply, Failure):
            raise reply
        return dict(reply)

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))

    def measure(self, metric: dict[str, Any]) -> None:
        self.measured.append(metric)


class Sent:
    """What came of the items: parts as (outcome, final, parameters), by number."""

    def __init__(self) -> None:
        self.parts: dict[int, list[tuple[Any, bool, Any]]] = {}
        self._changed = threading.Condition()

    def note(self, item: Item, outcome: Any, final: bool, parameters: Any) -> None:
        final = final or outcome is END or isinstance(outcome, Failure)
        with self._changed:
            self.parts.setdefault(item.number, []).append((outcome, final, parameters))
            self._changed.notify_all()

    def ended(self, number: int) -> list[tuple[Any, bool, Any]]:
        """The parts of an item, once it has its final one."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.is_over(number), WAIT), "the item did not end"
        return self.parts[number]

    def is_over(self, number: int) -> bool:
        return any(final for _, final, _ in self.parts.get(number, ()))


class TritonChildHarness:
    """One model, loaded. `adapter` serves it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "m" / "1"
        self.folder.mkdir(parents=True)
        self.host = FakeHost()
        self.sent = Sent()
        self.adapters: list[Adapter] = []

    def load(self, text: str, config: Mapping[str, Any] | None = None, **told: Any) -> Adapter:
        (self.folder / "model.py").write_text(text)
        return self.open(config, **told)

    def open(self, config: Mapping[str, Any] | None = None, **told: Any) -> Adapter:
        from trivium_worker.dialects.triton import ADAPTER

        adapter = ADAPTER(Setup({**self.told(config), **told}), self.host)
        self.adapters.append(adapter)
        return adapter

    def told(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        whole = {**CONFIG, **(config or {})}
        return {
            "dialect": "triton",
            "model": "m",
            "version": "1",
            "instance": "m_0_0",
            "device": "cpu",
            "device_id": 0,
            "root": str(self.folder),
            "entry": "model.py",
            "function": "",
            "max_rows": 8,
            "settings": {"model_config": msgspec.json.encode(whole).decode()},
            "parameters": {},
        }

    def item(self, number: int = 1, *tensors: Tensor, **about: Any) -> Item:
        payload = list(tensors) or [fp32("IN", [float(number), 2.0])]
        return Item(number, about.pop("request_id", ""), 1, payload, about, CallingOutlet(self.sent.note))

    def close(self) -> None:
        for adapter in self.adapters:
            adapter.close()


def model(execute: str, rest: str = "") -> str:
    """A model whose `execute` has that body."""
    body = "".join(f"        {line}\n" for line in execute.splitlines())
    return f"{HEAD}class TritonPythonModel:\n    def execute(self, requests):\n{body}{rest}"


def failures(outcomes: Any) -> list[str]:
    assert all(isinstance(outcome, Failure) for outcome in outcomes), outcomes
    return [outcome.message for outcome in outcomes]


def fp32(name: str, row: list[float]) -> Tensor:
    import numpy as np

    return Tensor.of_array(name, np.array([row], "f4"))


def rows(outcome: Any, name: str = "OUT") -> Any:
    """What one tensor of an outcome holds."""
    assert isinstance(outcome, list), outcome
    (tensor,) = [tensor for tensor in outcome if tensor.name == name]
    return tensor.array().tolist()


def loaded_modules() -> dict[str, ModuleType]:
    return dict(sys.modules)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TritonChildHarness]:
    """One model's folder; what user code and the shims loaded is forgotten afterwards."""
    modules, path = loaded_modules(), list(sys.path)
    sys.path.insert(0, str(SHIMS))
    made = TritonChildHarness(tmp_path)
    yield made
    made.close()
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        module = sys.modules[name]
        if (
            getattr(module, "__file__", None) is None
            or str(SHIMS) in str(module.__file__)
            or str(tmp_path) in str(module.__file__)
        ):
            del sys.modules[name]
