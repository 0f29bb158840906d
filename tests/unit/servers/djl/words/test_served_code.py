"""What belongs to DJL's own services in a model.py is found by its text, and refused with the class and the way out."""

import ast
from pathlib import Path

import pytest
from tests.harness.djl_folders import make

import trivium_worker
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.served_code import SERVICES, formatters_of, services_of
from trivium.types.findings import Finding
from trivium.types.spec import Defaults

SUBCLASS = """\
from djl_python.huggingface import HuggingFaceService
from djl_python import Input, Output

class Mine(HuggingFaceService):
    def inference(self, inputs, batch, more):
        return Output()

_service = Mine()

def handle(inputs):
    return _service.inference(inputs, 1, 2)
"""
NOTEBOOK = """\
from djl_python.huggingface import HuggingFaceService
from djl_python.output_formatter import TextGenerationOutput, output_formatter
from djl_python.input_parser import input_formatter

_service = HuggingFaceService()

@output_formatter
def custom_output_formatter(request_output: TextGenerationOutput) -> str:
    return ""

@input_formatter
def custom_input_formatter(self, input_item, **kwargs):
    return None

def handle(inputs):
    return _service.inference(inputs)
"""
FORMATTER = """\
from djl_python.output_formatter import output_formatter

@output_formatter
def shout(response_data: dict) -> dict:
    return response_data
"""


def errors(tmp_path: Path, text: str, *settings: str) -> tuple[Finding, ...]:
    (broken,) = DjlFormat().read(make(tmp_path, "m", *settings, model_py=text), Defaults()).unreadable
    return broken.findings


def test_the_modules_are_those_that_the_worker_stands_in_for() -> None:
    (package,) = trivium_worker.__path__
    text = (Path(package) / "shims/djl/djl_python/unsupported.py").read_text()
    (modules,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MODULES"
    )
    assert set(SERVICES) == set(modules)


def test_a_subclass_is_refused_by_its_name_and_line(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, SUBCLASS)
    assert (Path(finding.file).name, finding.line) == ("model.py", 4)
    assert "the class Mine builds on djl_python.huggingface.HuggingFaceService" in finding.found
    assert "option.rolling_batch=auto serves the weights with them" in finding.hint


def test_a_posted_notebook_of_customised_processing_is_refused_with_its_service(tmp_path: Path) -> None:
    findings = errors(tmp_path, NOTEBOOK, "engine=Python", "option.rolling_batch=vllm")
    (finding,) = [each for each in findings if each.file.endswith("model.py")]
    assert finding.line == 5
    assert "the module calls djl_python.huggingface.HuggingFaceService" in finding.found


def test_formatters_without_a_language_model_are_refused_by_their_names(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, FORMATTER)
    assert finding.line == 4
    assert "shout is an @output_formatter" in finding.found
    assert "option.model_id" in finding.hint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from djl_python import huggingface\nclass A(huggingface.HuggingFaceService): pass", "A"),
        ("import djl_python.deepspeed as d\nclass B(d.DeepSpeedService): pass", "B"),
        ("import djl_python.deepspeed\nclass B(djl_python.deepspeed.DeepSpeedService): pass", "B"),
        ("from djl_python.huggingface import HuggingFaceService as H\nclass C(H): pass", "C"),
        ("from djl_python.rolling_batch.rolling_batch import RollingBatch\nclass D(RollingBatch): pass", ""),
        ("from mine.huggingface import HuggingFaceService\nclass E(HuggingFaceService): pass", ""),
        ("from djl_python.huggingface import X\ndef handle(inputs):\n    return X()", ""),
        ("def (", ""),
    ],
)
def test_which_classes_build_on_a_service(text: str, found: str) -> None:
    assert [use.subclass for use in services_of(text)] == ([found] if found else [])


def test_a_decorator_by_its_module_is_one_too() -> None:
    text = (
        "from djl_python import input_parser as p\n@p.input_formatter\ndef f(a): pass\n@other\ndef g(): pass"
    )
    assert formatters_of(text) == {"f": ("input_formatter", 3)}


def test_a_handler_of_ones_own_with_a_rolling_batch_is_left_alone(tmp_path: Path) -> None:
    text = "from djl_python.rolling_batch.rolling_batch import RollingBatch\nclass A(RollingBatch): pass\n"
    text += "def handle(inputs): return None\n"
    assert DjlFormat().read(make(tmp_path, "m", model_py=text), Defaults()).specs


def test_a_handler_of_djls_that_is_misspelt_is_named_with_the_right_one(tmp_path: Path) -> None:
    (broken,) = (
        DjlFormat()
        .read(
            make(tmp_path, "m", "option.entryPoint=djl_python.lmi_vllm.vllm_asinc_service"),
            Defaults(),
        )
        .unreadable
    )
    (finding,) = broken.findings
    assert finding.line == 1
    assert finding.hint == "Did you mean djl_python.lmi_vllm.vllm_async_service?"
