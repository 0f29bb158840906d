"""A typed handler in this process: an adapter over a file written for the test, and items that record their parts."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from tests.harness.outlet import CallingOutlet

from trivium_worker.dialects.typed import ADAPTER
from trivium_worker.dialects.typed.handler import load_class, signature_of
from trivium_worker.runtime.adapter import Setup
from trivium_worker.wire.values import Item, Part, Raw

HEAD = """
from dataclasses import dataclass, field
from typing import Annotated, Any, AsyncIterator, Iterator, Literal, Optional, TypedDict
import numpy as np
from trivium_handler import Context, Refusal, batched, concurrent, tensor
"""


class TypedChild:
    """Makes adapters and items; `sent` are the parts that items sent by themselves."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sent: list[Any] = []

    def write(self, code: str) -> None:
        """Write the file behind the imports that handlers use; what was compiled of another of its size in the same
        second would be taken for it.
        """
        file = self.root / "typed_app.py"
        file.write_text(HEAD + code)
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def document(self, code: str, name: str = "") -> dict[str, Any]:
        """Return what the server is given of a file."""
        self.write(code)
        with loaded():
            return json.loads(
                json.dumps(signature_of(load_class(str(self.root), "typed_app.py", name)).document())
            )

    def adapter(self, code: str, name: str = "", **settings: Any) -> Any:
        """Return the adapter of a file."""
        self.write(code)
        told = {
            **{
                "dialect": "typed",
                "model": "m",
                "version": "1",
                "instance": "m_0",
                "device": "cpu",
                "device_id": 0,
            },
            **{"root": str(self.root), "entry": "typed_app.py", "function": name, "max_rows": 8},
            **{"settings": settings, "parameters": {}},
        }
        with loaded():
            return ADAPTER(Setup(told), None)  # type: ignore[arg-type] - nothing asks the host

    def item(self, payload: Any, **about: Any) -> Item:
        """Return a request."""
        number = next(_NUMBERS)
        return Item(
            number, "r", 1, payload, about, CallingOutlet(lambda item, outcome, *_: self.sent.append(outcome))
        )

    def ask(self, adapter: Any, *payloads: Any) -> list[Any]:
        """Run requests together, and return their outcomes."""
        outcomes: list[Any] = adapter.run([self.item(each) for each in payloads])
        return outcomes


@contextmanager
def loaded() -> Iterator[None]:
    """Forget the file among the modules behind the block."""
    sys.modules.pop("typed_app", None)
    yield
    sys.modules.pop("typed_app", None)


def body(data: Any, content_type: str = "application/json", name: str = "", **about: Any) -> Raw:
    """Return a body: bytes as they are, all else as JSON."""
    return Raw(
        [Part(data if isinstance(data, bytes) else json.dumps(data).encode(), content_type, name)], **about
    )


def answered(outcome: Any) -> Any:
    """Return what a body holds in JSON."""
    assert isinstance(outcome, Raw), outcome
    return json.loads(bytes(outcome.parts[0].data))


def _count() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


_NUMBERS = _count()
