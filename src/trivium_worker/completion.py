"""A configuration completed by the model's own code, in a process of its own: no worker, and no server behind it.

The setup comes as JSON on standard input, the configuration or a failure goes as JSON to standard output; what user
code prints goes to standard error. Which dialect completes how, its own module says.
"""

import importlib
import json
import os
import sys
from typing import Any

from trivium_worker.dialects import make_importable
from trivium_worker.runtime.adapter import Host, Setup
from trivium_worker.wire.values import Failure


class _Alone(Host):
    """There is nobody to ask: log lines are printed, all else is refused."""

    def call(self, *_: Any, **__: Any) -> Any:
        raise _refusal()

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        raise _refusal()

    def log(self, level: str, message: str) -> None:
        sys.stderr.write(message + "\n")

    def measure(self, metric: dict[str, Any]) -> None:
        raise _refusal()


def main() -> None:
    """Answer what stands on standard input."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        out.write(json.dumps(answer(json.load(sys.stdin))).encode())


def answer(told: dict[str, Any]) -> dict[str, Any]:
    """`document`, the configuration as the model left it; or `message` and `code` of a failure. SystemExit passes."""
    make_importable(told["dialect"], told["path"])
    dialect = importlib.import_module(f"trivium_worker.dialects.{told['dialect']}.completion")
    try:
        return {"document": json.dumps(dialect.complete(Setup(told), _Alone()))}
    except Failure as failure:
        return {"message": failure.message, "code": failure.code}
    except (TypeError, ValueError) as error:
        return {"message": f"The configuration that it returned is no JSON: {error}", "code": "load failed"}


def _refusal() -> Failure:
    return Failure("This is not to be had while a model's configuration is completed.", "load failed")
