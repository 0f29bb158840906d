"""Recognises the digit in a picture: a DJL handler over the shipped network."""

import base64
import io
import os
from typing import Any

import numpy as np
import onnxruntime
from djl_python import Input, Output
from PIL import Image

PNG = b"\x89PNG"
BASE64_PNG = b"iVBORw0KGgo"
session: Any = None


def handle(inputs: Input) -> Output | None:
    """Answers {"digit", "probability"}; the first call, without content, opens the network."""
    global session
    if session is None:
        network = os.path.join(inputs.get_property("model_dir"), "network.onnx")
        session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    if inputs.is_empty():
        return None
    output = Output()
    for index, item in enumerate(inputs.get_batches()):
        (scores,) = session.run(["probabilities"], {"image": to_tensor(item)})
        digit = int(scores[0].argmax())
        answer = {"digit": digit, "probability": float(scores[0][digit])}
        output.add_as_json(answer, batch_index=index if inputs.is_batch() else None)
    output.add_property("content-type", "application/json")
    return output


def to_tensor(item: Any) -> Any:
    """[1, 1, 8, 8], 0 (paper) to 1 (ink): of a picture or its base64 text, of a tensor, or of JSON with the tensor
    in `image`.
    """
    data = bytes(item.get_as_bytes())
    if data.startswith(BASE64_PNG):
        data = base64.b64decode(data)
    if data.startswith(PNG):
        with Image.open(io.BytesIO(data)) as picture:
            grey = picture.convert("L").resize((8, 8), Image.Resampling.BOX)
        levels = np.asarray(grey, np.float32) / 255
        levels = 1 - levels if np.median(levels) > 0.5 else levels
    elif (item.get_property("content-type") or "").startswith("application/json"):
        levels = np.asarray(item.get_as_json()["image"], np.float32)
    else:
        levels = item.get_as_numpy()[0]
    return levels.reshape(1, 1, 8, 8)
