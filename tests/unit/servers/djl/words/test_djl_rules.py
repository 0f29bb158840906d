"""Names, engines, handlers, keys and devices: the tables of DJL's dialect."""

from pathlib import Path

import pytest

from trivium.codecs.java_properties import read
from trivium.servers.djl.words.detection import detect
from trivium.servers.djl.words.engines import ENGINES, LANGUAGE_MODEL, ONNX, PYTHON, PYTORCH, row_of
from trivium.servers.djl.words.handlers import LONGEST, HandlerKind, is_asynchronous, kind_of, names_of
from trivium.servers.djl.words.judging import judge
from trivium.servers.djl.words.naming import archive_suffix, inferred_name, inner_folder, stem, top_names
from trivium.servers.djl.words.settings import DjlSettings
from trivium.settings.setting import Support
from trivium.types.findings import Severity
from trivium.types.spec import Device, Origin


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert-base-cased-squad2.zip", "bert_base_cased_squad2"),
        ("resnet18.TAR.GZ", "resnet18"),
        ("_hidden", "_hidden"),
        ("a.b c", "a_b_c"),
        ("größe", "gr__e"),
        (".zip", "_zip"),
        ("m.mar", "m_mar"),
    ],
)
def test_inferred_names(name, expected):
    assert inferred_name(name) == expected


def test_suffixes():
    assert [archive_suffix(name) for name in ("a.zip", "a.tgz", "a.tar.z", "a.mar", "zip")] == [
        ".zip",
        ".tgz",
        ".tar.z",
        "",
        "",
    ]
    assert (stem("a.b.tar.gz"), stem("a.b")) == ("a.b", "a.b")


@pytest.mark.parametrize(
    ("members", "inner", "tops"),
    [
        (["m/model.py", "m/a/b"], "m", {"model.py", "a"}),
        (["m/", "m/model.py"], "m", {"model.py"}),
        (["model.py"], "", {"model.py"}),
        (["model.py", "m/x"], "", {"model.py", "m"}),
        ([".hidden", "m/x"], "m", {"x"}),
        ([], "", set()),
        (["/"], "", set()),
    ],
)
def test_what_lies_in_an_archive(members, inner, tops):
    assert inner_folder(members) == inner
    assert top_names(members) == tops


@pytest.mark.parametrize(
    ("names", "engine", "entry"),
    [
        (["model.py", "model.pt"], "Python", "model.py"),
        (["m.py", "model.onnx"], "Python", "m.py"),
        (["m.pt", "model.pt"], "PyTorch", "m.pt"),
        (["model.onnx", "config.json"], "OnnxRuntime", "model.onnx"),
        (["model.json"], "XGBoost", "model.json"),
        (["m.json", "other.pdiparams"], "XGBoost", "m.json"),
        (["m.json", "m.pdiparams"], "PaddlePaddle", "m.json"),
        (["model.pdmodel", "model.pdiparams"], "PaddlePaddle", "model.pdmodel"),
        (["inference.json", "inference.pdiparams"], "PaddlePaddle", "inference.json"),
        (["inference.pdmodel", "inference.json", "inference.pdiparams"], "PaddlePaddle", "inference.pdmodel"),
        (["__model__", "__params__"], "PaddlePaddle", "__model__"),
        (["m.engine"], "TensorRT", "m.engine"),
        (["m.prototxt", "m.caffemodel"], "Caffe", "m.caffemodel"),
        (["saved_model.pb"], "TensorFlow", "saved_model.pb"),
        (["m-0001.params"], "MXNet", "m-0001.params"),
        (["m.tflite"], "TFLite", "m.tflite"),
    ],
)
def test_engines_by_file(names, engine, entry):
    found = detect(names, ("m",))
    assert (found.engine.name, found.entry) == (engine, entry)


@pytest.mark.parametrize(
    ("names", "has_id", "built_in"),
    [
        (["config.json"], False, "djl_python.huggingface"),
        ([], True, "djl_python.huggingface"),
        (["model.joblib"], False, "djl_python.sklearn_handler"),
    ],
)
def test_models_of_djls_own_handlers(names, has_id, built_in):
    assert detect(names, ("m",), has_id).built_in == built_in


def test_nothing_is_detected_in_other_folders():
    assert detect(["readme.md", "m-001.params", "other.onnx", "inference.json"], ("m",)) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def handle(inputs): pass", HandlerKind.DJL),
        ("async def handle(inputs): pass", HandlerKind.DJL),
        ("if True:\n    def handle(inputs): pass", HandlerKind.DJL),
        ("try:\n    pass\nexcept OSError:\n    handle = None", HandlerKind.DJL),
        ("from lib import run as handle", HandlerKind.DJL),
        ("handle = Service().handle", HandlerKind.DJL),
        ("def handle(data, context): pass", HandlerKind.TORCHSERVE),
        ("class H:\n    def handle(self, data, context): pass", HandlerKind.TORCHSERVE),
        ("class H(BaseHandler):\n    pass", HandlerKind.TORCHSERVE),
        ("class H(ts.torch_handler.base_handler.BaseHandler):\n    pass", HandlerKind.TORCHSERVE),
        ("class Service:\n    def handle(self, inputs): pass\ndef handle(inputs): pass", HandlerKind.DJL),
        ("class TritonPythonModel:\n    pass", HandlerKind.TRITON),
        ("class Service:\n    def handle(self, inputs): pass", HandlerKind.UNKNOWN),
        ("def other(): pass", HandlerKind.UNKNOWN),
        ("def handle(", HandlerKind.UNKNOWN),
        ("\0", HandlerKind.UNKNOWN),
        ("(" * 5000, HandlerKind.UNKNOWN),
        ("x = '\\d'\ndef handle(inputs): pass", HandlerKind.DJL),
        ("#" * (LONGEST + 1), HandlerKind.UNKNOWN),
    ],
)
def test_whose_handler_a_file_holds(text, kind):
    assert kind_of(text) is kind


def test_another_function_and_async():
    assert kind_of("def serve(inputs): pass", "serve") is HandlerKind.DJL
    assert is_asynchronous("async def serve(inputs): pass", "serve")
    assert not is_asynchronous("def serve(inputs): pass", "serve")
    assert not is_asynchronous("def (", "serve")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b\nfrom c import d as e\ndef f(): g = 1\nasync def h(): pass\nclass I: pass", "a e f h I"),
        ("x: int = 1\ny, (z, *w) = v\nfor i in x: pass", "x y z w i"),
        ("if a:\n    def b(): pass\nelse:\n    c = 1", "b c a"),
        ("for i in x:\n    def f(): pass\nwhile y:\n    from z import g", "i f g"),
        ("match x:\n    case 1:\n        def f(): pass", "f"),
        ("from x import *", None),
        ("for i in x:\n    from y import *", None),
        ("vars()['handle'] = 1", None),
        ("globals()['handle'] = 1", None),
        ("def __getattr__(name): pass", None),
        ("def (", None),
    ],
)
def test_names_of_a_module(text, names):
    found = names_of(text)
    assert found is None if names is None else found <= frozenset(names.split())
    assert names is None or found >= frozenset(names.split()) - {"a"}


# -- keys -------------------------------------------------------------------------------------------------


def settings_of(*lines):
    return DjlSettings(read("serving.properties", "\n".join(lines).encode()))


def test_every_row_says_what_happens_instead():
    for rows in (engine.keys for engine in ENGINES):
        for key, row in rows.items():
            is_said = row.support in (Support.REPORTED, Support.REFUSED)
            assert bool(row.how) == is_said, key


def test_unknown_keys_are_the_handlers_or_reported():
    assert row_of(PYTHON, "topK").support is Support.PASSED_ON
    assert row_of(ONNX, "topK").support is Support.REPORTED


@pytest.mark.parametrize(
    ("line", "engine", "severity"),
    [
        ("option.tensor_parallel_degree=2", PYTHON, None),
        ("option.tensor_parallel_degree=1", PYTHON, None),
        ("option.rolling_batch=Disable", PYTHON, None),
        ("option.async_mode=true", PYTHON, None),
        ("trivium_in_flight=9", PYTHON, None),
        ("option.enable_venv=true", PYTHON, None),
        ("option.mpi_mode=true", PYTHON, None),
        ("translatorFactory=a.b.C", PYTHON, None),
        ("translatorFactory=a.b.C", ONNX, None),
        ("translatorFactory=ai.djl.translate.NoopServingTranslatorFactory", PYTORCH, None),
        ("option.disablePerSessionThreads=true", ONNX, Severity.NOTICE),
        ("option.extraFiles=a.txt", PYTORCH, None),
        ("required_memory_mb=7", PYTHON, None),
        ("width=224", PYTORCH, Severity.NOTICE),
        ("batch_size=2", ONNX, None),
    ],
)
def test_what_becomes_of_a_key(line, engine, severity):
    findings = judge(read("f", line.encode()), engine)
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all(finding.line == 1 and finding.key == line.partition("=")[0] for finding in findings)


def test_the_manual_has_every_key():
    page = (Path(__file__).parents[5] / "docs" / "djl.md").read_text()
    missing = {key for engine in (*ENGINES, LANGUAGE_MODEL) for key in engine.keys if f"`{key}`" not in page}
    assert missing == set()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_the_manual_has_every_engine(engine):
    page = (Path(__file__).parents[5] / "docs" / "djl.md").read_text()
    names = ", ".join(f"`{name}`" for name in (engine.name, *engine.spellings))
    files = ", ".join(f"`{name}`" for name in (*engine.suffixes, *engine.files))
    assert f"\n| {names} | {files} | {engine.engine or f'no: {engine.way_out}'} |\n" in page


def test_an_engine_that_is_served_has_keys_and_a_file():
    assert {engine.name for engine in ENGINES if engine.engine} == {e.name for e in ENGINES if e.keys}
    assert all(engine.suffixes or engine.files for engine in ENGINES if engine.engine)


# -- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [("4", 4), (" 4 ", 4), ("+4", 4), ("0", 7), ("-1", 7), ("", 7)],
)
def test_numbers(written, value):
    settings = settings_of(f"n={written}")
    assert settings.number(["n"], 7).value == value
    assert settings.findings == []


@pytest.mark.parametrize("written", ["x", "1.5", "4,", "٤", "99999999999", "3000000000", "- 1"])
def test_what_is_no_number_is_an_error(written):
    key = "job_queue_size"
    settings = settings_of("a=1", f"{key}={written}")
    assert settings.number([key], 7).value == 7
    (finding,) = judge(settings.properties, PYTHON)
    assert (finding.severity, finding.line) == (Severity.ERROR, 2)


def test_origins_name_the_key_and_the_line():
    settings = settings_of("a=1", "b=2")
    assert settings.number(["z", "b"], 7).origin == Origin("serving.properties", "b", 2)
    assert settings.number(["z"], 7, why="a rule").origin == Origin("a rule", "")


@pytest.mark.parametrize(
    ("written", "gpus", "devices"),
    [
        ("*", 0, [(Device.CPU, -1)]),
        ("*", 2, [(Device.GPU, 0), (Device.GPU, 1)]),
        ("cpu", 2, [(Device.CPU, -1)]),
        ("-1;gpu1;0", 2, [(Device.CPU, -1), (Device.GPU, 1), (Device.GPU, 0)]),
        ("gpu;0", 1, [(Device.GPU, 0)]),
    ],
)
def test_devices(written, gpus, devices):
    found = settings_of(f"load_on_devices={written}").devices(gpus)
    assert [device.value for device in found] == devices


@pytest.mark.parametrize("written", ["nc0", "0+1", "tpu", ";", "gpu0"])
def test_devices_that_are_not_there(written):
    settings = settings_of(f"load_on_devices={written}")
    settings.devices(0)
    assert settings.findings[0].severity is Severity.ERROR


def test_variables():
    settings = settings_of("option.env=A=1, B=x=y,")
    assert settings.environment("option.env") == {"A": "1", "B": "x=y"}
    for bad in ("A", "1A=2", "A B=2", r"A=\u0000"):
        settings = settings_of(f"option.env={bad}")
        settings.environment("option.env")
        assert settings.findings[0].severity is Severity.ERROR


def test_what_the_handler_is_told():
    told = settings_of(
        "option.model_id=x", "option.env=A=1", "batch_size=2", "env=mine", "option.topK=1", "topK=2"
    )
    assert told.options() == {"model_id": "x", "batch_size": "2", "env": "mine", "topK": "2"}
