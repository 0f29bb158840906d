"""Reads what a typed handler's hints say, before any instance: its file is run, and no object of its class made."""

from typing import Any

from trivium_worker.dialects.typed.handler import load_class, signature_of
from trivium_worker.runtime.adapter import Host, Setup
from trivium_worker.runtime.life import words_of
from trivium_worker.wire.values import Failure


def complete(setup: Setup, host: Host) -> dict[str, Any]:
    """Return the signature as the server takes it. Failure ("load failed") with file and line."""
    try:
        return signature_of(load_class(setup.root, setup.entry, setup.function)).document()
    except Failure:
        raise
    except Exception as error:
        raise Failure(words_of(error), "load failed") from error
