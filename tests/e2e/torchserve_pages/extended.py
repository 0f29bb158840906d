"""The built-in handler for pictures with a step of its own before its own."""

import base64

from ts.torch_handler.image_classifier import ImageClassifier


class CustomImageClassifier(ImageClassifier):
    topk = 2

    def preprocess(self, data):
        return super().preprocess([{"data": base64.b64decode(row["body"]["picture"])} for row in data])
