"""The demo's classifier of handwritten digits as TorchScript: the shipped ONNX file's weights in a module of torch.

python -m tests.models.digits writes it to `shipped/digits`, with its class names; training is that of examples/digits.
"""

import warnings

import onnx
import torch
from examples.digits.shipped import BARE_MODEL
from onnx import numpy_helper
from tests.models import script_file
from tests.models.places import DIGIT_NAMES, DIGITS
from torch import nn


def module() -> nn.Module:
    """Return the network, `[rows, 1, 8, 8]` to probabilities `[rows, 10]`."""
    weights = {
        tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy())
        for tensor in onnx.load(BARE_MODEL).graph.initializer
    }
    layers: list[nn.Module] = []
    for place, stride in enumerate((1, 2, 2)):
        kernel = weights[f"kernel{place}"]
        layer = nn.Conv2d(kernel.shape[1], kernel.shape[0], 3, stride, 1)
        layer.load_state_dict({"weight": kernel, "bias": weights[f"bias{place}"]})
        layers += [layer, nn.ReLU()]
    last = nn.Linear(weights["dense"].shape[1], weights["dense"].shape[0])
    last.load_state_dict({"weight": weights["dense"], "bias": weights["offset"]})
    return nn.Sequential(*layers, nn.Flatten(), last, nn.Softmax(1)).eval()


def main() -> None:
    """Write the module and its class names."""
    warnings.simplefilter("ignore")  # of the exporter
    DIGITS.mkdir(parents=True, exist_ok=True)
    script_file.save(torch.jit.trace(module(), torch.zeros(1, 1, 8, 8)), DIGITS / "digits.pt")
    (DIGITS / "synset.txt").write_text("\n".join(DIGIT_NAMES) + "\n")


if __name__ == "__main__":
    main()
