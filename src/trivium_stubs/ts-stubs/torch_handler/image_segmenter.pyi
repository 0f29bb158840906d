from _typeshed import Incomplete
from ts.torch_handler.vision_handler import VisionHandler
from typing import Any

class ImageSegmenter(VisionHandler):
    image_processing: Incomplete
    def postprocess(self, data: Any) -> list[Any]: ...
