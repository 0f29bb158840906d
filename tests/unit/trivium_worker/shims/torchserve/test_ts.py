"""The `ts` package that handlers import: BaseHandler, labels, metrics, and the names that are not supported."""

import copy
import importlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, body, failures, returning, stage

from trivium_worker.wire.values import Failure

__all__ = ["stage"]

NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0]))
    def forward(self, x):
        return x * self.scale
"""
OWN = """
import torch
from ts.torch_handler.base_handler import BaseHandler
class Own(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row["body"] for row in data])
    def get_insights(self, tensor, raw, target):
        return [{"tensor": tensor.tolist(), "raw": raw, "target": target}]
    def describe_handle(self):
        return {"about": "me"}
"""
JSON = "application/json"


def manifest(**model: str) -> dict[str, Any]:
    return {"model": {"modelName": "m", **model}}


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def eager(stage: TorchServeChildHarness, torch: Any, **more: Any) -> Any:
    (stage.root / "net.py").write_text(NET)
    torch.save({"scale": torch.tensor([3.0])}, stage.root / "w.pt")
    told = {"manifest": manifest(modelFile="net.py", serializedFile="w.pt"), **more}
    return stage.load(OWN, **told)


# -- BaseHandler -------------------------------------------------------------------------------------------


def test_an_eager_model(stage: TorchServeChildHarness, torch: Any) -> None:
    adapter = eager(stage, torch)
    outcomes = adapter.run([stage.item(b"[1, 2]", JSON), stage.item(b"[3, 4]", JSON)])
    assert [json.loads(body(outcome)) for outcome in outcomes] == [[3.0, 6.0], [9.0, 12.0]]
    (time,) = stage.host.measured
    assert (time["name"], time["kind"], time["labels"]) == (
        "HandlerTime",
        "gauge",
        {"ModelName": "m", "Level": "Model"},
    )
    handler = adapter.entry.__self__
    assert (handler.initialized, handler.device.type, handler.mapping) == (True, "cpu", None)


def test_explanations_and_descriptions(stage: TorchServeChildHarness, torch: Any) -> None:
    adapter = eager(stage, torch)
    explained = adapter.run([stage.item(b"[1.0]", JSON, method="explain")])
    assert json.loads(body(explained[0])) == {"tensor": [[1.0]], "raw": [1.0], "target": 0}
    described = adapter.run([stage.item(b"[1.0]", JSON, properties={"describe": "True"})])
    assert json.loads(body(described[0])) == {"about": "me"}
    plain = adapter.run([stage.item(b"[1.0]", JSON)])
    assert json.loads(body(plain[0])) == [3.0]


def test_a_script_by_the_handler_that_no_archive_holds(stage: TorchServeChildHarness, torch: Any) -> None:
    class Double(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x * 2

    torch.jit.save(torch.jit.trace(Double(), torch.ones(1)), str(stage.root / "net.pt"))
    adapter = stage.load(entry="base_handler", manifest=manifest(serializedFile="net.pt"))
    # BaseHandler itself makes a tensor of what comes: a list of rows is none.
    assert failures(adapter.run([stage.item(b"[1]", JSON)]))[0][1].startswith("Prediction failed")
    adapter.context.stopping_criteria = None
    handler = adapter.entry.__self__
    assert handler.postprocess(handler.inference(handler.preprocess([[1.0, 2.0]]))) == [[2.0, 4.0]]


def test_an_onnx_model(stage: TorchServeChildHarness, torch: Any) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [info("x", onnx.TensorProto.FLOAT, ["n", 1])],
        [info("y", onnx.TensorProto.FLOAT, ["n", 1])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(stage.root / "net.onnx"))
    text = OWN.replace('row["body"] for row in data]', '[float(row["body"])] for row in data]')
    adapter = stage.load(text, manifest=manifest(serializedFile="net.onnx"))
    assert json.loads(body(adapter.run([stage.item(b"4", JSON)])[0])) == [8.0]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({}, "No model weights could be loaded"),
        ({"serializedFile": "w.bin"}, "w.bin"),
        ({"serializedFile": "w.so"}, "w.so"),
        ({"modelFile": "none.py"}, "none.py"),
        ({"modelFile": "two.py"}, "exactly one class"),
    ],
)
def test_what_cannot_be_loaded(
    stage: TorchServeChildHarness, torch: Any, named: dict[str, str], words: str
) -> None:
    (stage.root / "two.py").write_text("class A:\n    pass\nclass B:\n    pass\n")
    with pytest.raises((RuntimeError, ValueError), match=words):
        stage.load(OWN, manifest=manifest(**named))


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("a pickle that does what it likes",))


def test_pickles_are_not_trusted_unless_the_model_says_so(
    stage: TorchServeChildHarness, torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (stage.root / "net.py").write_text(NET)
    torch.save({"scale": torch.tensor([3.0]), "evil": Evil()}, stage.root / "w.pt")
    told = manifest(modelFile="net.py", serializedFile="w.pt")
    with pytest.raises(Exception, match=r"[Ww]eights"):
        stage.load(OWN, manifest=told)
    assert "likes" not in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="evil"):  # not a weight of this model
        stage.load(OWN, "trusting.py", manifest=told, config={"handler": {"weights_only": False}})
    assert "likes" in capsys.readouterr().out


def test_compilation_by_configuration(
    stage: TorchServeChildHarness, torch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    eager(stage, torch)
    compiling = importlib.import_module("ts.torch_handler.compiling")
    assert compiling.compile_options("eager") == {"backend": "eager"}
    assert compiling.compile_options({"backend": "inductor", "mode": "m"}) == {
        "backend": "inductor",
        "mode": "m",
    }
    assert compiling.compile_options({"compile": {"enable": True, "mode": "m"}}) == {"mode": "m"}
    assert compiling.compile_options({"compile": {"enable": False, "backend": "eager"}}) is None
    assert compiling.compile_options({"export": {"aot_compile": True}}) is None
    loading = importlib.import_module("ts.torch_handler.loading")
    assert loading.is_compiled_ahead({"pt2": {"export": {"aot_compile": True}}})
    assert compiling.compile_options("magic") is None
    assert "magic" in caplog.text
    assert compiling.compiled(5, {"pt2": "eager"}, "cpu") == 5
    assert "is not compiled" in caplog.text


def test_what_runs_an_onnx_model(
    stage: TorchServeChildHarness, torch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cuda, cpu, tensorrt = "CUDAExecutionProvider", "CPUExecutionProvider", "TensorrtExecutionProvider"
    eager(stage, torch)
    loading = importlib.import_module("ts.torch_handler.loading")
    assert loading.onnx_providers("cpu", [tensorrt, cuda, cpu]) == [cpu]
    assert loading.onnx_providers("cuda", [cpu, cuda, tensorrt]) == [tensorrt, cuda, cpu]
    assert loading.onnx_providers("cuda", [cuda, cpu]) == [cuda, cpu]
    assert not caplog.text
    assert loading.onnx_providers("cuda", [cpu]) == [cpu]
    assert "Install onnxruntime-gpu in the handler's environment" in caplog.text


# -- labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"0": "cat", "1": "dog"}', {"0": "cat", "1": "dog"}),
        ('{"0": ["n01", "tench"]}', {"0": "tench"}),
        ('{"object_type_names": ["a", "b"]}', {"0": "a", "1": "b"}),
    ],
)
def test_label_files(stage: TorchServeChildHarness, text: str, expected: dict[str, str]) -> None:
    util = importlib.import_module("ts.utils.util")
    (stage.root / "i.json").write_text(text)
    assert util.load_label_mapping(str(stage.root / "i.json")) == expected
    assert util.load_label_mapping(str(stage.root / "none.json")) is None


@pytest.mark.parametrize("text", ["[]", '{"0": 5}', '{"0": []}', '{"object_type_names": {}}', "{"])
def test_label_files_of_another_shape(stage: TorchServeChildHarness, text: str) -> None:
    util = importlib.import_module("ts.utils.util")
    (stage.root / "i.json").write_text(text)
    with pytest.raises(ValueError):
        util.load_label_mapping(str(stage.root / "i.json"))


def test_labels_of_classes(stage: TorchServeChildHarness) -> None:
    label = importlib.import_module("ts.utils.util").map_class_to_label
    assert label([[0.1, 0.9]]) == [{"0": 0.1, "1": 0.9}]
    assert label([[0.9, 0.1]], {"0": "a", "3": "b"}, [[3, 0]]) == [{"b": 0.9, "a": 0.1}]
    for wrong in ((("x",),), ([[1]], ["a"])):
        with pytest.raises(TypeError):
            label(*wrong)


def test_other_names_of_util(stage: TorchServeChildHarness) -> None:
    util = importlib.import_module("ts.utils.util")
    (stage.root / "c.yaml").write_text("a: 1\n")
    assert util.get_yaml_config(str(stage.root / "c.yaml")) == {"a": 1}
    assert [util.check_valid_pt2_backend(name) for name in ("eager", "magic")] == [True, False]
    assert issubclass(util.PredictionException, Exception)
    (found,) = util.list_classes_from_module(util)
    assert found is util.PredictionException
    assert util.list_classes_from_module(util, dict) == []
    find = importlib.import_module("ts.handler_utils.utils").import_class
    assert (
        find("ts.context.Context").__name__
        == find("some/where/context.py:Context", "ts").__name__
        == "Context"
    )


# -- metrics -----------------------------------------------------------------------------------------------


def measured(stage: TorchServeChildHarness, text: str) -> list[tuple[str, str, str, float]]:
    """Kind, name, labels and number of what an expression of `context.metrics` tells."""
    head = (
        "from ts.metrics.metric_type_enum import MetricTypes\nfrom ts.metrics.dimension import Dimension\n"
        "from ts.metrics.metric import Metric\nfrom ts.service import emit_metrics\n"
    )
    adapter = stage.load(head + returning(f"[{text}]").replace("context.metrics", "context.metrics"))
    (outcome,) = adapter.run([stage.item()])
    assert not isinstance(outcome, Failure), outcome.message
    return [
        (
            step["kind"],
            step["name"],
            ",".join(f"{name}={value}" for name, value in step["labels"].items()),
            next(step[verb] for verb in ("add", "set", "observe") if verb in step),
        )
        for step in stage.host.measured
    ]


MODEL = "ModelName=m,Level=Model"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("context.metrics.add_counter('c', 2)", ("counter", "c", MODEL, 2.0)),
        (
            "context.metrics.add_metric('c', 2, 'count', 0, [Dimension('D', 1)])",
            ("counter", "c", f"D=1,{MODEL}", 2.0),
        ),
        ("context.metrics.add_time('t', 1.5, None, 's')", ("gauge", "t", MODEL, 1.5)),
        ("context.metrics.add_size('s', 3)", ("gauge", "s", MODEL, 3.0)),
        (
            "context.metrics.add_percent('p', 50, metric_type=MetricTypes.HISTOGRAM)",
            ("histogram", "p", MODEL, 50.0),
        ),
        ("context.metrics.add_error('e', 1)", ("counter", "e", "Level=Error", 1.0)),
        (
            "context.metrics.add_metric_to_cache('x', 'count', ['A', 'B']).add_or_update(4, ['1', '2'])",
            ("counter", "x", "A=1,B=2", 4.0),
        ),
        (
            "(context.metrics.add_metric_to_cache('x', 'ms', [], MetricTypes.GAUGE), "
            "context.metrics.get_metric('x', MetricTypes.GAUGE).update(4))[1]",
            ("gauge", "x", "", 4.0),
        ),
        (
            "context.metrics.add_metric_to_cache('x', 'ms', ['A']).update(4, 'id', [Dimension('B', 'b')])",
            ("counter", "x", "B=b", 4.0),
        ),
        (
            "context.metrics.get_metric('PredictionTime', MetricTypes.GAUGE).add_or_update(1, ['m', 'l'])",
            ("gauge", "PredictionTime", "ModelName=m,Level=l", 1.0),
        ),
        ("context.metrics.add_time('t', __import__('numpy').float32(1.5))", ("gauge", "t", MODEL, 1.5)),
        ("context.metrics.add_counter('c', __import__('numpy').int64(3))", ("counter", "c", MODEL, 3.0)),
        ("context.metrics.add_counter('c', True)", ("counter", "c", MODEL, 1.0)),
        ("emit_metrics([Metric('old', 5, 'ms', [Dimension('D', 'd')])])", ("gauge", "old", "D=d", 5.0)),
    ],
)
def test_metrics(stage: TorchServeChildHarness, text: str, expected: tuple[str, str, str, float]) -> None:
    assert measured(stage, text) == [expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("context.metrics.add_error('e', 'text')", "expected a number"),
        ("context.metrics.add_time('t', 1, None, 'h')", "expected one of ms, s"),
        ("context.metrics.add_size('t', 1, None, 'mb')", "expected one of MB"),
        ("context.metrics.get_metric('none')", "MetricsCacheKeyError"),
        ("context.metrics.get_metric('none')", "there are: HandlerTime, PredictionTime"),
        ("context.metrics.get_metric('x', 'gauge')", "metric_type: found 'gauge', expected MetricTypes"),
        ("context.metrics.add_counter(None, 1)", "metric_name: found None, expected str"),
        ("context.metrics.add_metric('m', 1, 'ms', metric_type='gauge')", "expected MetricTypes"),
        ("context.metrics.add_metric_to_cache('m', 5)", "unit: found 5, expected str"),
        ("context.metrics.add_metric_to_cache('m', 'u', 'd')", "expected list or tuple"),
    ],
)
def test_metrics_that_are_none(stage: TorchServeChildHarness, text: str, words: str) -> None:
    (outcome,) = stage.load(returning(f"[{text}]")).run([stage.item()])
    assert words in outcome.message
    assert stage.host.measured == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("context.metrics.add_counter('c', -1)", "only grows"),
        ("context.metrics.add_time('t', 'long')", "found 'long', expected a number"),
        (
            "context.metrics.add_metric_to_cache('x', 'u', ['A']).add_or_update(1)",
            "one for each dimension: A",
        ),
    ],
)
def test_what_the_original_logs_and_drops_fails_no_handler(
    stage: TorchServeChildHarness, caplog: pytest.LogCaptureFixture, text: str, words: str
) -> None:
    assert measured(stage, text) == []
    assert words in caplog.text


@pytest.mark.parametrize(
    ("text", "unit", "request_id"),
    [
        ("context.metrics.add_counter('c', 1)", "Count", "one,two"),
        ("context.metrics.add_counter('c', 1, 1)", "Count", "two"),
        ("context.metrics.add_counter('c', 1, 7)", "Count", "one,two"),
        ("context.metrics.add_time('t', 1, 0, 's')", "Seconds", "one"),
        ("context.metrics.add_size('t', 1, 0, 'kB')", "Kilobytes", "one"),
        ("context.metrics.add_percent('t', 1, 0)", "Percent", "one"),
        ("context.metrics.add_metric('t', 1, 'furlongs', 0)", "furlongs", "one"),
        ("context.metrics.add_error('t', 1)", "unit", ""),
        (
            "context.metrics.add_metric_to_cache('x', 'ms').add_or_update(1, [], 'mine')",
            "Milliseconds",
            "mine",
        ),
        ("emit_metrics([Metric('old', 5, 'GB', [], 'two')])", "Gigabytes", "two"),
        ("context.metrics.add_metric('t', 1, 'ms', 0, [Dimension('Level', 'L')])", "Milliseconds", "one"),
    ],
)
def test_units_are_spelled_out_and_requests_named(
    stage: TorchServeChildHarness, text: str, unit: str, request_id: str
) -> None:
    head = (
        "from ts.metrics.metric import Metric\nfrom ts.service import emit_metrics\n"
        "from ts.metrics.dimension import Dimension\n"
    )
    adapter = stage.load(head + returning(f"[{text}, 0]"))
    adapter.run([stage.item(request_id="one"), stage.item(request_id="two")])
    (step,) = stage.host.measured
    assert (step["unit"], step["request"]) == (unit, request_id)
    assert step["labels"].get("Level", "Model") in ("Model", "Error", "L")


def test_a_handler_that_the_server_times(
    stage: TorchServeChildHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    code = "def handle(data, context):\n    return data and ['a'] * len(data)\n"
    stage.load(code).run([stage.item()])
    assert stage.host.measured == []
    assert "Torch worker started." not in caplog.messages
    declared = [["counter", "Mine", "Count", ["Level"]]]
    adapter = stage.load(
        "def handle(data, context):\n    if data: context.metrics.get_metric('Mine').add_or_update(1, ['L'])\n"
        "    return data and ['a'] * len(data)\n",
        entry="other.py",
        metrics=declared,
    )
    adapter.run([stage.item(request_id="one"), stage.item(request_id="two")])
    assert caplog.messages[0] == "Torch worker started."
    assert caplog.messages[2] == "model_name: m, batchSize: 4"
    mine, time = stage.host.measured
    assert (mine["name"], mine["labels"], mine["unit"]) == ("Mine", {"Level": "L"}, "Count")
    assert (time["name"], time["unit"], time["request"]) == ("PredictionTime", "Milliseconds", "one,two")
    assert time["labels"] == {"ModelName": "m", "Level": "Model"}
    assert time["set"] >= 0


def test_metrics_at_load_and_the_older_class(stage: TorchServeChildHarness) -> None:
    stage.load("def handle(data, context):\n    context.metrics.add_counter('loads', 1)\n")
    assert [step["name"] for step in stage.host.measured] == ["loads"]
    store = importlib.import_module("ts.metrics.metrics_store").MetricsStore("id", "other")
    store.add_counter("c", 1)
    assert stage.host.measured[-1]["labels"]["ModelName"] == "other"


def test_timed_steps(stage: TorchServeChildHarness) -> None:
    text = """
from ts.handler_utils.timer import timed
class H:
    def initialize(self, context):
        self.context = context
    @timed
    def preprocess(self, data):
        return data
    def handle(self, data, context):
        return [len(self.preprocess(data))]
"""
    stage.load(text).run([stage.item()])
    assert stage.host.measured == []
    stage.load(text, "second.py", config={"handler": {"profile": True}}).run([stage.item()])
    assert [step["name"] for step in stage.host.measured] == ["ts_handler_preprocess"]


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ts.torch_handler.vllm_handler", "VLLMHandler"),
        ("ts.torch_handler.trt_llm_handler", "TRTLLMHandler"),
        ("ts.torch_handler.dali_image_classifier", "DALIImageClassifier"),
        ("ts.torch_handler.distributed.base_pippy_handler", "BasePippyHandler"),
        ("ts.torch_handler.distributed.base_deepspeed_handler", "BaseDeepSpeedHandler"),
        ("ts.handler_utils.utils", "create_predict_response"),
        ("ts.handler_utils.distributed.pt_pippy", "get_pipeline_driver"),
        ("ts.handler_utils.distributed.deepspeed", "get_ds_engine"),
    ],
)
def test_names_that_are_not_supported(stage: TorchServeChildHarness, module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    kinds = (found, type("Own", (found,), {})) if isinstance(found, type) else (found,)
    for kind in kinds:
        with pytest.raises(
            NotImplementedError, match=rf"{name} of TorchServe is not supported in this version"
        ):
            kind(1, two=2)


def test_versions(stage: TorchServeChildHarness) -> None:
    assert (
        importlib.import_module("ts").__version__
        == importlib.import_module("ts.version").__version__
        == "0.12.0"
    )


def test_nothing_but_the_standard_library_is_loaded_with_the_adapter(stage: TorchServeChildHarness) -> None:
    import subprocess
    import sys

    text = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import trivium_worker.dialects.torchserve, ts.context, ts.torch_handler.base_handler, ts.utils.util\n"
        "print([name for name in ('torch', 'numpy', 'yaml', 'trivium') if name in sys.modules])\n"
    )
    shims = Path(importlib.import_module("ts").__file__ or "").parents[1]
    command = [sys.executable, "-S", "-I", "-c", text, str(shims.parents[2]), str(shims)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


HEADERS = {"X-Own": "1", "accept": "a", "X-OTHER": "2"}


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (dict, HEADERS),
        (lambda h: {**h}, HEADERS),
        (lambda h: dict(h.copy()), HEADERS),
        (lambda h: json.loads(json.dumps(h)), HEADERS),
        (lambda h: dict(copy.deepcopy(h)), HEADERS),
        (lambda h: (list(h), list(h.values())), (list(HEADERS), ["1", "a", "2"])),
        (lambda h: (h["x-own"], h["X-Own"], h.get("X-other"), h.get("none", 3)), ("1", "1", "2", 3)),
        (lambda h: (h.copy()["ACCEPT"], "X-own" in h, "none" in h, len(h)), ("a", True, False, 3)),
        (lambda h: (h.pop("x-OWN"), dict(h), "X-Own" in h), ("1", {"accept": "a", "X-OTHER": "2"}, False)),
        (lambda h: (h.pop("none", 4), h.popitem(), "x-other" in h), (4, ("X-OTHER", "2"), False)),
        (lambda h: (h.__setitem__("ACCEPT", "b"), dict(h)), (None, {**HEADERS, "accept": "b"})),
        (lambda h: (h.update({"New": "3"}, ACCEPT="c"), h["new"], h["accept"]), (None, "3", "c")),
        (lambda h: (h.setdefault("NEW", "3"), h.setdefault("x-own", "9"), h["new"]), ("3", "1", "3")),
        (lambda h: (h.__delitem__("ACCEPT"), dict(h)), (None, {"X-Own": "1", "X-OTHER": "2"})),
        (lambda h: (h.clear(), dict(h), "accept" in h), (None, {}, False)),
    ],
)
def test_names_of_headers_are_as_the_client_spelt_them_and_found_in_any_capitals(
    stage: TorchServeChildHarness, look: Callable[[Any], Any], expected: Any
) -> None:
    stage.load(returning("[1]"))
    headers = importlib.import_module("ts.context").Headers(HEADERS)
    assert look(headers) == expected
    for name in ("none", "NONE"):
        with pytest.raises(KeyError):
            headers.pop(name)
    with pytest.raises(KeyError):
        headers["none"]
