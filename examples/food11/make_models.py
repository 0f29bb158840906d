"""Writes the example's model in all its forms: `python -m examples.food11.make_models FOLDER`.

FOLDER/food11.pth      the weights, for the FastAPI endpoint on PyTorch
FOLDER/food11.onnx     the network, for the one on ONNX Runtime
FOLDER/repository      a Triton model repository: food_classifier (Python backend) and food_classifier_onnx
"""

import shutil
import sys
import warnings
from pathlib import Path

import torch
from examples.food11.network import LABELS, FoodClassifier, seeded
from examples.food11.pictures import prepare, sample

HERE = Path(__file__).parent


def make(folder: Path) -> None:
    """Everything, anew."""
    folder.mkdir(parents=True, exist_ok=True)
    network = balanced(seeded())
    torch.save(network.state_dict(), folder / "food11.pth")
    export(network, folder / "food11.onnx")
    repository = folder / "repository"
    shutil.rmtree(repository, ignore_errors=True)
    shutil.copytree(HERE / "models", repository, ignore=shutil.ignore_patterns("__pycache__"))
    python = repository / "food_classifier" / "1"
    (repository / "food_classifier_onnx" / "1").mkdir()
    shutil.copy(HERE / "network.py", python)
    shutil.copy(folder / "food11.pth", python)
    onnx = repository / "food_classifier_onnx"
    shutil.copy(folder / "food11.onnx", onnx / "1" / "model.onnx")
    (onnx / "labels.txt").write_text("\n".join(LABELS) + "\n")


def balanced(network: FoodClassifier, pictures: int = 32) -> FoodClassifier:
    """With every label equally likely over made-up pictures: untrained, one would win them all."""
    with torch.no_grad():
        features = network.layers(
            torch.stack([torch.from_numpy(prepare(sample(n))) for n in range(pictures)])
        )
        spread = ((features - features.mean(0)) @ network.scores.weight.T).std()
        network.scores.weight *= 2 / spread
        network.scores.bias.copy_(-network.scores.weight @ features.mean(0))
    return network


def export(network: torch.nn.Module, path: Path) -> None:
    """To ONNX, for any number of pictures at a time."""
    axes = {"input": {0: "pictures"}, "output": {0: "pictures"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the newer exporter needs a package that nothing else here does
        torch.onnx.export(
            network,
            (torch.zeros(1, 3, 224, 224),),
            str(path),
            input_names=["input"],
            output_names=["output"],
            dynamic_axes=axes,
            dynamo=False,
        )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
