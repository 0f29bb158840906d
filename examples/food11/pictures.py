"""From a picture file to what the network takes: the shorter side to 256, the middle 224 x 224, normalised."""

import base64
import io

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def prepare(data: bytes) -> np.ndarray:
    """FP32 [3, 224, 224] of the bytes of a picture file. Raises OSError for what is no picture."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    scale = 256 / min(picture.size)
    picture = picture.resize(
        (round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BILINEAR
    )
    left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
    middle = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / 255
    return np.ascontiguousarray(((middle - MEAN) / DEVIATION).transpose(2, 0, 1))


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Softmax over the last axis of FP32 [..., 11]."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True), np.float32)


def sample(seed: int = 0, size: tuple[int, int] = (320, 240)) -> bytes:
    """A JPEG file of coloured patches, the same for the same seed."""
    random = np.random.default_rng(seed)
    patches = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(patches).resize(size, Image.Resampling.NEAREST)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=90)
    return file.getvalue()


def as_text(data: bytes) -> str:
    """Base64, as the endpoints take it."""
    return base64.b64encode(data).decode()
