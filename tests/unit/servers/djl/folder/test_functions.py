"""A folder with functions around the engine becomes two models: a worker that runs them, and the language model."""

from pathlib import Path

import pytest
from tests.harness.djl_folders import make, one
from tests.harness.llm_folders import checkpoint

from trivium.servers.djl.folder.functions import AS_ENGINE
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.sources import ModelSource
from trivium.types.spec import Defaults, ModelSpec

FUNCTIONS = """\
from djl_python.input_parser import input_formatter
from djl_python.output_formatter import output_formatter

@input_formatter
def read(payload: dict, **kwargs) -> dict:
    return payload

@output_formatter
def write(response: dict) -> dict:
    return response
"""
HANDLE = "def handle(inputs):\n    return None\n"
ENGINE = "hf"


def staged(tmp_path: Path, *settings: str, code: str = FUNCTIONS) -> Path:
    weights = checkpoint(tmp_path / "weights")
    return make(tmp_path, "m", f"option.model_id={weights}", *settings, model_py=code)


def engine_of(spec: ModelSpec) -> ModelSpec:
    """Read what the model brings with it."""
    form = DjlFormat()
    (source,) = form.members(spec)
    assert source.name == spec.calls[0]
    (found,) = form.read_source(Path(source.uri), source, Defaults()).specs
    return found


def test_the_folder_is_a_worker_and_brings_the_language_model(tmp_path: Path) -> None:
    spec = one(
        staged(tmp_path, "option.rolling_batch=vllm", "option.max_rolling_batch_size=7", "job_queue_size=9")
    )
    assert (spec.engine, spec.entry, spec.calls, spec.streams) == (
        "python-djl",
        "model.py",
        ("m:engine",),
        True,
    )
    assert spec.handler is not None
    told = spec.handler.settings
    assert told["in_flight"] == 7
    engine = told["engine"]
    assert isinstance(engine, dict)
    assert (engine["name"], engine["named"], engine["asynchronous"]) == ("m:engine", {}, False)
    assert spec.limits.queue_items == 9
    model = engine_of(spec)
    assert (model.engine, model.parameters["slots"], model.root.name) == (ENGINE, "7", "weights")
    assert model.calls == ()


def test_a_model_that_was_given_a_name_brings_its_engine_under_that(tmp_path: Path) -> None:
    place = staged(tmp_path)
    (spec,) = DjlFormat().read_source(place, ModelSource(str(place), "mine"), Defaults()).specs
    assert spec.calls == ("mine:engine",)
    (source,) = DjlFormat().members(spec)
    assert AS_ENGINE in source.over


@pytest.mark.parametrize(
    ("settings", "code", "is_around"),
    [
        ((), FUNCTIONS, True),
        ((), FUNCTIONS + HANDLE, False),
        (("option.entryPoint=djl_python.huggingface", "option.rolling_batch=auto"), FUNCTIONS + HANDLE, True),
        (("option.entryPoint=model.py",), FUNCTIONS + HANDLE, False),
        (("option.output_formatter=plain",), "def plain(a, b, c):\n    return ''\n", True),
        (("option.input_formatter=plain",), "def plain(a):\n    return a\n", True),
        (("option.entryPoint=djl_python.lmi_vllm.vllm_async_service",), HANDLE, False),
    ],
)
def test_which_folders_are_served_so(
    tmp_path: Path, settings: tuple[str, ...], code: str, is_around: bool
) -> None:
    assert bool(one(staged(tmp_path, *settings, code=code)).calls) is is_around


def test_an_option_that_names_no_function_is_refused(tmp_path: Path) -> None:
    for key in ("input_formatter", "output_formatter"):
        place = staged(tmp_path / key, f"option.{key}=other", "option.rolling_batch=auto")
        (broken,) = DjlFormat().read(place, Defaults()).unreadable
        assert any(f"option.{key}" in finding.key for finding in broken.findings)
        assert any("function of" in finding.hint + str(finding.expected) for finding in broken.findings)


def test_a_folder_of_weights_with_functions_needs_no_settings(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "w")
    (folder / "model.py").write_text(FUNCTIONS)
    assert DjlFormat().claims(folder)
    assert one(folder).calls == ("w:engine",)


def test_functions_of_services_without_a_language_model_stay_refused(tmp_path: Path) -> None:
    code = "from djl_python.input_parser import prediction_handler\n@prediction_handler\ndef f(x, m): pass\n"
    (broken,) = DjlFormat().read(staged(tmp_path, code=code), Defaults()).unreadable
    assert any("f is an @prediction_handler" in finding.found for finding in broken.findings)
