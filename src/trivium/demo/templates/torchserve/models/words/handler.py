"""A handler of TorchServe: counts the words of texts, a batch at a time."""

from typing import Any

from ts.torch_handler.base_handler import BaseHandler


class WordsHandler(BaseHandler):
    """Answers one element for each request."""

    def initialize(self, context: Any) -> None:
        """Load a model here: its files lie in context.system_properties["model_dir"]."""
        self.initialized = True

    def handle(self, data: list[Any], context: Any) -> list[Any]:
        """Answer a batch."""
        return [{"words": len(row.get("body", row)["text"].split())} for row in data]
