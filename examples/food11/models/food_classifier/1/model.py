"""Pictures as base64 text in, a label and its probability out: a Triton Python backend model."""

import base64
import io
import os
import sys
from typing import Any

import numpy as np
import torch
import triton_python_backend_utils as pb_utils
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        folder = os.path.join(args["model_repository"], args["model_version"])
        sys.path.insert(0, folder)
        from network import LABELS, FoodClassifier

        self.labels = LABELS
        torch.set_num_threads(1)
        self.device = torch.device("cuda" if args["model_instance_kind"] == "GPU" else "cpu")
        self.network = FoodClassifier().eval().to(self.device)
        weights = torch.load(os.path.join(folder, "food11.pth"), map_location=self.device, weights_only=True)
        self.network.load_state_dict(weights)

    def execute(self, requests: list[Any]) -> list[Any]:
        pictures, counts = [], []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "INPUT_IMAGE").as_numpy().ravel()
            pictures += [self.prepare(base64.b64decode(text)) for text in texts]
            counts.append(len(texts))
        with torch.inference_mode():
            scores = self.network(torch.from_numpy(np.stack(pictures)).to(self.device))
            chances, kinds = torch.softmax(scores, 1).max(1)
        responses, at = [], 0
        for count in counts:
            labels = [[self.labels[kind]] for kind in kinds[at : at + count].tolist()]
            chance = chances[at : at + count].cpu().numpy().reshape(count, 1)
            at += count
            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("FOOD_LABEL", np.array(labels, dtype=object)),
                        pb_utils.Tensor("PROBABILITY", chance),
                    ]
                )
            )
        return responses

    def prepare(self, data: bytes) -> Any:
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        scale = 256 / min(picture.size)
        size = (round(picture.width * scale), round(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.BILINEAR)
        left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
        middle = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / 255
        return ((middle - MEAN) / DEVIATION).transpose(2, 0, 1)
