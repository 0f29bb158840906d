"""Logs a model's life as `tritonserver` does: changes of its state in the original's words.

Pure. Source: spec sheet `triton`, sections 1.2 and 2.5.
"""

import logging
from collections.abc import Iterator

from trivium.servers.triton.command.tables import with_code
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState


def narrate(status: VersionStatus) -> Iterator[tuple[int, str]]:
    """Levels and texts of what a change of state is worth."""
    model, version = status.model, status.version
    match status.state:
        case VersionState.LOADING if version:
            yield logging.INFO, f"loading: {model}:{version}"
        case VersionState.READY:
            yield logging.INFO, f"successfully loaded '{model}'"
        case VersionState.FAILED if version:
            yield logging.ERROR, f"failed to load '{model}' version {version}: {with_code(status.reason)}"
            yield logging.INFO, f"failed to load '{model}'"
        case VersionState.FAILED:
            yield logging.ERROR, f"Poll failed for model directory '{model}': {status.reason}"
        case VersionState.UNLOADED if version:
            yield logging.INFO, f"successfully unloaded '{model}' version {version}"
        case _:
            pass
