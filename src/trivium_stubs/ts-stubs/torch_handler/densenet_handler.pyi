from _typeshed import Incomplete
from ts.torch_handler.base_handler import BaseHandler
from typing import Any

class DenseNetHandler(BaseHandler):
    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any: ...
    context: Incomplete
    def handle(self, data: Any, context: Any) -> Any: ...
