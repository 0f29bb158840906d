"""A DJL handler in this process: an adapter over a model.py written for the test, and items that record their parts."""

import sys
from pathlib import Path

from tests.harness.outlet import CallingOutlet

import trivium_worker
from trivium_worker.dialects.djl import ADAPTER
from trivium_worker.runtime.adapter import Setup
from trivium_worker.wire.values import END, Failure, Item, Part, Raw

SHIMS = Path(trivium_worker.__file__).parent / "shims" / "djl"
NAMES = ("model", "djl_python", "djl_entry_model")


def forget():
    """What user code and the shim left among the modules."""
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        del sys.modules[name]


class DjlChildHarness:
    """Makes adapters and items; `sent` is what items sent by themselves: (number, outcome, final)."""

    def __init__(self, root):
        self.root = root
        self.sent = []
        self.cancel_after = None

    def adapter(self, code="", entry="model.py", function="handle", properties=None, **told):
        if code:
            (self.root / entry).write_text(code)
        setup = {
            "dialect": "djl",
            "model": "m",
            "version": "1",
            "instance": "m_0",
            "device": "cpu",
            "device_id": 0,
            "root": str(self.root),
            "entry": entry,
            "function": function,
            "max_rows": 4,
            "settings": {"properties": properties or {}},
            "parameters": {},
        }
        return ADAPTER(Setup(setup | told), None)

    def item(self, payload, request_id="r", **about):
        return Item(len(self.sent), request_id, 1, payload, about, CallingOutlet(self._take))

    def _take(self, item, outcome, final, parameters):
        final = final or outcome is END or isinstance(outcome, Failure)
        self.sent.append((item, outcome, final))
        if self.cancel_after is not None and len(self.sent) >= self.cancel_after:
            item.is_cancelled = True


def raw(body=b"", properties=None, query=(), name="", content_type=""):
    return Raw([Part(body, content_type, name)], properties, query)


def text(outcome):
    """The body of an answer."""
    return bytes(outcome.parts[0].data).decode()
