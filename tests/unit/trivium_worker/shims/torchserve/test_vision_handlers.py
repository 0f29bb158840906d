"""TorchServe's own handlers for pictures: numbers of torchvision's transforms, labels, boxes, and no pictures."""

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.harness.torchserve_child import TorchServeChildHarness, body, failures, stage

__all__ = ["stage"]

LABELS = {"0": ["n01", "dark"], "1": ["n02", "light"], "2": ["n03", "odd"]}
CLASSIFIES = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
CLASSIFIES += "        mean = x.mean(dim=(1, 2, 3))\n"
CLASSIFIES += "        return torch.stack([-mean, mean, mean * 0 - 9], dim=1)\n"
SEGMENTS = CLASSIFIES.replace("return ", "logits = ").replace("dim=(1, 2, 3)", "dim=1")
SEGMENTS += '        return {"out": logits}\n'
DETECTS = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return [{\n"
DETECTS += "            'boxes': torch.tensor([[0., 1., 2., 3.], [4., 5., 6., 7.]]),\n"
DETECTS += "            'labels': torch.tensor([1, 2]), 'scores': torch.tensor([0.75, 0.25])} for _ in x]\n"


def picture(level: int, width: int = 30, height: int = 20, mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (level,) * 3).convert(mode).save(file, "PNG")
    return file.getvalue()


def loaded(stage: TorchServeChildHarness, handler: str, net: str, labels: object = LABELS) -> Any:
    (stage.root / "net.py").write_text(net)
    if labels is not None:
        (stage.root / "index_to_name.json").write_text(json.dumps(labels))
    return stage.load(
        entry=handler,
        manifest={"model": {"modelName": "m", "modelFile": "net.py"}},
    )


def test_a_classifier_answers_labels_in_falling_order(stage: TorchServeChildHarness) -> None:
    adapter = loaded(stage, "image_classifier", CLASSIFIES)
    outcomes = adapter.run([stage.item(picture(255)), stage.item(picture(0))])
    light, dark = (json.loads(body(outcome)) for outcome in outcomes)
    assert list(light) == ["light", "dark", "odd"]
    assert list(dark) == ["dark", "light", "odd"]
    assert sum(light.values()) == pytest.approx(1)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_pictures_of_other_kinds_become_rgb(stage: TorchServeChildHarness, mode: str) -> None:
    adapter = loaded(stage, "image_classifier", CLASSIFIES)
    (outcome,) = adapter.run([stage.item(picture(255, mode=mode))])
    assert next(iter(json.loads(body(outcome)))) == "light"


def test_base64_and_lists_of_numbers_are_taken(stage: TorchServeChildHarness) -> None:
    handler = loaded(stage, "image_classifier", CLASSIFIES, None).entry.__self__
    sent = base64.b64encode(picture(9)).decode()
    text, raw = handler.preprocess([{"data": sent}, {"body": bytearray(picture(9))}])
    assert (text.shape, text.tolist() == raw.tolist()) == ((3, 224, 224), True)
    assert handler.preprocess([{"body": [[[1.0, 2.0]]]}]).tolist() == [[[[1.0, 2.0]]]]
    handler.set_max_result_classes(1)
    assert handler.get_max_result_classes() == 1
    assert list(handler.postprocess(handler.inference(raw[None]))[0]) == ["0"]


def test_what_is_no_picture_fails_by_name(stage: TorchServeChildHarness) -> None:
    adapter = loaded(stage, "image_classifier", CLASSIFIES)
    (found,) = failures(adapter.run([stage.item(b"text")]))
    assert found[1].startswith("Prediction failed: ValueError: ")


@pytest.mark.parametrize("size", [(1, 65_000), (65_000, 1)])
def test_a_picture_that_would_grow_beyond_all_bounds_fails_by_name(
    stage: TorchServeChildHarness, size: tuple[int, int]
) -> None:
    adapter = loaded(stage, "image_classifier", CLASSIFIES)
    (found,) = failures(adapter.run([stage.item(picture(9, *size))]))
    assert found[1].startswith("Prediction failed: ValueError: ")


@pytest.mark.parametrize("size", [(224, 224), (1, 1), (5, 400), (400, 5), (257, 255)])
def test_every_size_comes_to_the_same(stage: TorchServeChildHarness, size: tuple[int, int]) -> None:
    handler = loaded(stage, "image_classifier", CLASSIFIES, None).entry.__self__
    (tensor,) = handler.preprocess([{"data": picture(51, *size)}])
    wanted = (0.2 - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
    assert np.allclose(tensor.numpy(), wanted[:, None, None], atol=1e-6)
    assert tensor.shape == (3, 224, 224)


def test_a_smaller_picture_is_cropped_onto_black(stage: TorchServeChildHarness) -> None:
    from ts.torch_handler.picture_steps import center_crop  # type: ignore[import-not-found]

    cropped = np.array(center_crop(4)(Image.new("RGB", (2, 6), (9, 9, 9))))
    assert (cropped[:, :, 0] == [[0, 9, 9, 0]] * 4).all()


def test_a_segmenter_answers_class_and_probability_of_each_pixel(stage: TorchServeChildHarness) -> None:
    adapter = loaded(stage, "image_segmenter", SEGMENTS)
    (outcome,) = adapter.run([stage.item(picture(255))])
    found = np.array(json.loads(body(outcome)))
    assert found.shape == (224, 224, 2)
    assert (found[:, :, 0] == 1).all()
    assert (found[:, :, 1] > 0.5).all()


def test_a_detector_answers_what_is_likely(stage: TorchServeChildHarness) -> None:
    adapter = loaded(stage, "object_detector", DETECTS)
    (outcome,) = adapter.run([stage.item(picture(255))])
    assert json.loads(body(outcome)) == [{"light": [0, 1, 2, 3], "score": 0.75}]


def test_explanations_need_captum(stage: TorchServeChildHarness) -> None:
    pytest.importorskip("torch")
    adapter = loaded(stage, "image_classifier", CLASSIFIES)
    try:
        import captum  # noqa: F401
    except ImportError:
        (found,) = failures(adapter.run([stage.item(picture(9), method="explain")]))
        assert "pip install captum" in found[1]
