from _typeshed import Incomplete
from abc import ABC
from trivium_worker.pictures import IMAGENET_MEAN as IMAGENET_MEAN, IMAGENET_STD as IMAGENET_STD, MOST_PIXELS as MOST_PIXELS, open_picture as open_picture
from ts.torch_handler.base_handler import BaseHandler
from typing import Any

MEAN: Incomplete
STD: Incomplete

class VisionHandler(BaseHandler, ABC):
    image_processing: Any
    ig: Incomplete
    def initialize(self, context: Any) -> None: ...
    def preprocess(self, data: Any) -> Any: ...
    def get_insights(self, tensor_data: Any, _: Any, target: Any = 0) -> Any: ...
