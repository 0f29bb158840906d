"""What people test of their handlers, without a server: one of each kind, with a MockContext. It passes under the
original's `ts` and under ours; `test_torchserve_users` runs it.
"""

import io
import json
import logging
import sys

import pytest
import torch
from PIL import Image
from ts.context import Context, RequestProcessor
from ts.metrics.dimension import Dimension
from ts.torch_handler.base_handler import BaseHandler
from ts.torch_handler.unit_tests.test_utils.mock_context import MockContext
from ts.utils.util import PredictionException, list_classes_from_module, map_class_to_label

NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x).argmax(dim=1)
"""
COLOURS = """
import torch


class Colours(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = torch.nn.Linear(3, 3)

    def forward(self, pictures):
        return self.classifier(pictures.mean(dim=(2, 3)))
"""
TOPICS = """
import torch


class Topics(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(4, 2)

    def forward(self, text, offsets):
        return self.embedding(text, offsets)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def written(folder, name, code, weights):
    (folder / f"{name}.py").write_text(code)
    torch.save(weights, folder / "model.pt")
    return MockContext(model_name=name, model_dir=folder.as_posix(), model_file=f"{name}.py")


def test_a_base_handler_with_an_eager_model(folder):
    weights = {"layer.weight": torch.eye(2), "layer.bias": torch.zeros(2)}
    context = written(folder, "users_net", NET, weights)
    handler = BaseHandler()
    handler.initialize(context)
    assert handler.initialized
    assert handler.handle([[1.0, 2.0], [4.0, 3.0]], context) == [1, 0]


def test_an_image_classifier(folder):
    from ts.torch_handler.image_classifier import ImageClassifier

    (folder / "index_to_name.json").write_text(json.dumps({"0": "red", "1": "green", "2": "blue"}))
    weights = {"classifier.weight": torch.eye(3), "classifier.bias": torch.zeros(3)}
    context = written(folder, "users_colours", COLOURS, weights)
    handler = ImageClassifier()
    handler.initialize(context)
    handler.set_max_result_classes(2)
    buffer = io.BytesIO()
    Image.new("RGB", (300, 260), (10, 200, 10)).save(buffer, "PNG")
    (first, second) = handler.handle([{"data": buffer.getvalue()}, {"body": buffer.getvalue()}], context)
    assert first == second
    assert next(iter(first)) == "green"
    assert len(first) == 2


def test_a_text_classifier(folder):
    from ts.torch_handler.text_classifier import TextClassifier

    torch.save({"good": 0, "bad": 1, "good bad": 2, "bad good": 3}, folder / "source_vocab.pt")
    (folder / "index_to_name.json").write_text(json.dumps({"0": "praise", "1": "blame"}))
    weights = {"embedding.weight": torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]])}
    context = written(folder, "users_topics", TOPICS, weights)
    handler = TextClassifier()
    handler.initialize(context)
    (answer,) = handler.handle([{"data": b"<b>Good</b> bad"}], context)
    assert set(answer) == {"praise", "blame"}
    assert answer["praise"] > answer["blame"]


class Own(BaseHandler):
    """What people write: a handler of their own, over the steps of the base."""

    def initialize(self, context):
        self.context = context
        self.device = torch.device("cpu")
        self.scale = (context.model_yaml_config or {}).get("handler", {}).get("scale", 1)
        self.initialized = True

    def preprocess(self, data):
        rows = [row.get("data") or row.get("body") for row in data]
        if any(row is None for row in rows):
            raise PredictionException("neither data nor body", 400)
        return torch.tensor([[float(value) for value in row] for row in rows])

    def inference(self, data):
        self.context.metrics.add_counter("Rows", len(data), None, [Dimension("Kind", "own")])
        return data * self.scale

    def postprocess(self, data):
        return [{"sum": sum(row)} for row in data.tolist()]


def test_a_handler_of_ones_own(folder):
    (folder / "model-config.yaml").write_text("handler:\n  scale: 3\n")
    context = MockContext(
        model_pt_file=None, model_file=None, model_dir=str(folder), model_yaml_config_file="model-config.yaml"
    )
    assert context.manifest == {"model": {}}
    handler = Own()
    handler.initialize(context)
    assert handler.handle([{"data": [1, 2]}, {"body": [4, 5]}], context) == [{"sum": 9.0}, {"sum": 27.0}]
    with pytest.raises(PredictionException) as raised:
        handler.handle([{}], context)
    assert raised.value.error_code == 400


def test_what_it_measures_is_kept_and_logged(caplog):
    context = MockContext()
    handler = Own()
    handler.initialize(context)
    with caplog.at_level(logging.INFO):
        handler.handle([{"data": [1, 2]}], context)
        handler.handle([{"data": [1, 2]}], context)
    names = [metric.name for metric in context.metrics.store]
    assert "Rows" in names
    assert "HandlerTime" in names
    (rows,) = (metric for metric in context.metrics.store if metric.name == "Rows")
    assert [str(each) for each in rows.dimensions] == ["Kind:own", "ModelName:mnist", "Level:Model"]
    lines = [each.getMessage() for each in caplog.records if "[METRICS]Rows" in each.getMessage()]
    assert lines
    assert "|#Kind:own,ModelName:mnist,Level:Model|#type:COUNTER|#hostname:" in lines[-1]


def test_a_context_of_the_server_and_its_headers():
    context = Context("m", "/nowhere", {"model": {}}, 1, None, "0.12.0")
    context.request_processor = [RequestProcessor({"X-Who": "me"})]
    assert context.get_request_header(0, "X-Who") == "me"
    context.set_response_content_type(0, "text/plain")
    assert context.get_response_headers(0) == {"content-type": "text/plain"}
    context.set_response_status(404, "Not Found", 0)
    assert context.get_response_status(0) == (404, "Not Found")


def test_helpers_and_the_launcher():
    from ts import launcher

    assert callable(launcher.start)
    assert callable(launcher.stop)
    assert callable(launcher.register_model)
    assert map_class_to_label([[0.75, 0.25]], {"0": "a", "1": "b"}) == [{"a": 0.75, "b": 0.25}]
    assert Own in list_classes_from_module(sys.modules[__name__], BaseHandler)
