"""`BaseEnvelope`: what is around the data of a batch and around its results; to be extended.

Source: spec sheet `torchserve`, section 4.7.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class BaseEnvelope(ABC):
    """Wraps a handler: `parse_input` takes the data out, `format_output` puts the results into a document."""

    def __init__(self, handle_fn: Callable[[Any, Any], Any]) -> None:
        self._handle_fn = handle_fn
        self.context: Any = None

    def handle(self, data: Any, context: Any) -> Any:
        """Call the handler with what was taken out. Empty data and results pass as they are."""
        self.context = context
        if data:
            data = self.parse_input(data)
        results = self._handle_fn(data, context)
        return self.format_output(results) if results else results

    @abstractmethod
    def parse_input(self, data: Any) -> Any:
        """Return what the handler gets of a batch."""

    @abstractmethod
    def format_output(self, data: Any) -> Any:
        """Return what the requests of the batch get of the results."""
