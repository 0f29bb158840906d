from _typeshed import Incomplete
from ts.torch_handler.vision_handler import VisionHandler
from typing import Any

class ImageClassifier(VisionHandler):
    topk: int
    image_processing: Incomplete
    def set_max_result_classes(self, topk: int) -> None: ...
    def get_max_result_classes(self) -> int: ...
    def postprocess(self, data: Any) -> list[Any]: ...
