"""The baseline on PyTorch: `uvicorn examples.food11.fastapi_torch.app:app`. FOOD11_MODEL names the weights."""

import os

import numpy as np
import torch
from examples.food11.endpoint import endpoint
from examples.food11.network import FoodClassifier

torch.set_num_threads(int(os.environ.get("FOOD11_THREADS", "1")))
network = FoodClassifier().eval()
network.load_state_dict(torch.load(os.environ.get("FOOD11_MODEL", "food11.pth"), weights_only=True))


def scores(pictures: np.ndarray) -> np.ndarray:
    """See `endpoint.Scores`."""
    with torch.inference_mode():
        found: np.ndarray = network(torch.from_numpy(pictures)).numpy()
    return found


app = endpoint("Food classifier (PyTorch)", scores)
