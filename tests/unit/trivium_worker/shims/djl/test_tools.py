"""`test_model` and `service_loader` beyond what the record of the original's answers has."""

import sys

import pytest
from tests.harness.djl_child import SHIMS, forget

MODEL = """
from djl_python import Output
def handle(inputs):
    return Output().add(inputs.get_as_string())
"""


@pytest.fixture(autouse=True)
def shim(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(SHIMS))
    monkeypatch.chdir(tmp_path)
    yield
    forget()
    for name in [name for name in sys.modules if name.startswith(("model_", "ns_"))]:
        del sys.modules[name]


def test_a_handler_is_called_in_a_test(tmp_path):
    from djl_python.test_model import TestHandler, create_text_request, extract_output_as_string

    (tmp_path / "model.py").write_text(MODEL)
    output = TestHandler("model.py", str(tmp_path)).inference(create_text_request("hi"))
    assert extract_output_as_string(output) == "hi"


def test_pytest_does_not_collect_the_class():
    from djl_python.test_model import TestHandler

    assert TestHandler.__test__ is False


def test_continuous_batches_are_refused_by_name(tmp_path):
    from djl_python.test_model import TestHandler

    (tmp_path / "model.py").write_text(MODEL)
    with pytest.raises(NotImplementedError, match="inference_rolling_batch is not supported in this version"):
        TestHandler("model.py", str(tmp_path)).inference_rolling_batch([{"inputs": "a"}])


def test_a_torchserve_archive_is_not_loaded(tmp_path):
    from djl_python.service_loader import load_model_service

    (tmp_path / "MAR-INF").mkdir()
    (tmp_path / "MAR-INF" / "MANIFEST.json").write_text("{}")
    with pytest.raises(NotImplementedError, match=f"TorchServe archive.*trivium serve {tmp_path}"):
        load_model_service(str(tmp_path), "model.py", "-1")


def test_a_file_that_raises_is_not_kept(tmp_path):
    from djl_python.service_loader import load_model_service

    (tmp_path / "model.py").write_text("1 / 0")
    with pytest.raises(ZeroDivisionError):
        load_model_service(str(tmp_path), "model.py", "-1", "x")
    assert "ns_x" not in sys.modules


def test_files_of_one_name_are_modules_of_their_own(tmp_path):
    from djl_python.service_loader import load_model_service

    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(f"value = {name!r}")
        found.append(load_model_service(str(tmp_path / name), "model.py", "-1").module)
    assert [module.value for module in found] == ["a", "b"]
    assert all(sys.modules[module.__name__] is module for module in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("! a comment\n# another\n", {}),
        ("  option.a = b c  \n", {"a": "b c"}),
        ("option.model_id=s3://x/y=z:1\n", {"model_id": "s3://x/y=z:1"}),
        ("key\nother value\n", {"key": "", "other": "value"}),
        ("a:b\nc : d\n", {"a": "b", "c": "d"}),
    ],
)
def test_properties_are_read_as_java_reads_them(tmp_path, text, expected):
    from djl_python.test_model import load_properties

    (tmp_path / "serving.properties").write_text(text)
    assert load_properties(str(tmp_path)) == expected


def test_ranks_of_mpirun(tmp_path, monkeypatch):
    from djl_python.test_model import TestHandler

    for name in ("WORLD_SIZE", "LOCAL_RANK", "RANK"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    (tmp_path / "model.py").write_text(
        "import os\nvalues = [os.environ[n] for n in ('WORLD_SIZE', 'RANK', 'LOCAL_RANK')]"
    )
    assert TestHandler("model.py", str(tmp_path)).service.module.values == ["4", "3", ""]
