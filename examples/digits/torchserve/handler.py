"""Which digit a picture shows: a TorchServe handler over the shipped network."""

import base64
import io
import os
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

BASE64_PNG = b"iVBORw0KGgo"


class DigitHandler:
    """Answers {"digit", "probability"} for each request of a batch."""

    def initialize(self, context: Any) -> None:
        """Open the network, which the archive holds."""
        properties = context.system_properties
        network = os.path.join(properties.get("model_dir"), context.manifest["model"]["serializedFile"])
        self.session: Any = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])

    def handle(self, data: list[Any], context: Any) -> list[Any]:
        """One run of the network for the whole batch."""
        tensor = np.concatenate([to_tensor(row.get("data") or row.get("body")) for row in data])
        (scores,) = self.session.run(["probabilities"], {"image": tensor})
        return [{"digit": int(row.argmax()), "probability": float(row.max())} for row in scores]


def to_tensor(body: Any) -> Any:
    """[1, 1, 8, 8], 0 (paper) to 1 (ink): of a picture or its base64 text, of JSON with the tensor in `image`, or of
    a v2 request.
    """
    if isinstance(body, (bytes, bytearray)):
        if body.startswith(BASE64_PNG):
            body = base64.b64decode(body)
        with Image.open(io.BytesIO(body)) as picture:
            grey = picture.convert("L").resize((8, 8), Image.Resampling.BOX)
        levels = np.asarray(grey, np.float32) / 255
        levels = 1 - levels if np.median(levels) > 0.5 else levels
    elif "inputs" in body:
        levels = np.asarray(body["inputs"][0]["data"], np.float32)
    else:
        levels = np.asarray(body["image"], np.float32)
    return levels.reshape(1, 1, 8, 8)
