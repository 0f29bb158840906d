"""`DenseNetHandler`: the oldest built-in handler, which takes tensors that `torch.save` has written.

Source: `densenet_handler.py` of TorchServe 0.12. This module defines exactly one class. Tensors are read with
`weights_only`: what a client sends runs no code.
"""

import io
import time
from typing import Any

from ts.torch_handler.base_handler import BaseHandler


class DenseNetHandler(BaseHandler):
    """Answers with one tensor for the whole batch, as the original does."""

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what the model makes of a batch."""
        import torch

        with torch.no_grad():
            return self.model(data.to(self.device), *args, **kwargs)

    def handle(self, data: Any, context: Any) -> Any:
        """Load the tensors of a batch and run the model on them."""
        import torch

        began = time.perf_counter()
        self.context = context
        sent = (row.get("data") or row.get("body") for row in data)
        tensors = [torch.load(io.BytesIO(bytes(one)), weights_only=True) for one in sent]
        output = [self.inference(torch.stack(tensors))]
        spent = (time.perf_counter() - began) * 1000
        context.metrics.add_time("HandlerTime", round(spent, 2), None, "ms")
        return output
