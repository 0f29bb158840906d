"""Models of Triton's Python backend: their worker, their environment, and what is reported of model.py."""

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest
from tests.harness.triton_folders import TENSORS, faults, make, one

from trivium.servers.triton.repository import environments
from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.findings import Severity
from trivium.types.spec import Defaults, Origin

PYTHON = 'backend: "python"\n' + TENSORS


def environment(value: str) -> str:
    return f'{PYTHON}parameters {{ key: "EXECUTION_ENV_PATH"\nvalue {{ string_value: "{value}" }} }}'


def interpreter(folder: Path, name: str = "python") -> Path:
    """An environment's folder with an interpreter in it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / name).symlink_to(sys.executable)
    return folder / "bin" / name


def notices(folder: Path) -> list[str]:
    return [report.found for report in one(folder).reports if report.severity is Severity.NOTICE]


# -- the worker --------------------------------------------------------------------------------------------


def test_what_the_worker_is_told(tmp_path: Path) -> None:
    config = PYTHON + "max_batch_size: 4 dynamic_batching { } model_transaction_policy { decoupled: true }"
    spec = one(make(tmp_path, "m", config, "1/model.py"))
    assert (spec.engine, spec.entry, spec.root) == ("python-triton", "model.py", tmp_path / "m" / "1")
    assert spec.handler is not None
    assert (spec.handler.python, spec.handler.path, spec.handler.directory) == ("", (), None)
    text = spec.handler.settings["model_config"]
    assert isinstance(text, str)
    told = json.loads(text)
    assert (told["name"], told["backend"], told["max_batch_size"]) == ("m", "python", 4)
    assert told["model_transaction_policy"] == {"decoupled": True}
    assert told["instance_group"][0]["name"] == "m"
    assert spec.origin["handler.python"] == Origin("the server's own interpreter", "")


def test_other_backends_have_no_handler(tmp_path: Path) -> None:
    assert one(make(tmp_path, "m", TENSORS, "1/model.onnx")).handler is None


def test_a_python_model_may_have_another_file(tmp_path: Path) -> None:
    config = PYTHON + 'default_model_filename: "net.py"'
    assert one(make(tmp_path, "m", config, "1/net.py")).entry == "net.py"


@pytest.mark.parametrize("backend", ["onnxruntime", "identity", "pytorch"])
def test_only_the_python_backend_is_decoupled(tmp_path: Path, backend: str) -> None:
    config = f'backend: "{backend}"{TENSORS}model_transaction_policy {{\ndecoupled: true }}'
    (fault,) = faults(make(tmp_path, "m", config, "1/model.onnx", "1/model.pt"))
    assert (fault.line, fault.key) == (5, "model_transaction_policy.decoupled")
    assert fault.expected == "the backend python"


# -- its interpreter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["python", "python3"])
def test_an_environment_s_folder(tmp_path: Path, name: str) -> None:
    python = interpreter(tmp_path / "env", name)
    spec = one(make(tmp_path, "m", environment(str(tmp_path / "env")), "1/model.py"))
    assert spec.handler is not None
    assert spec.handler.python == str(python)
    config = str(tmp_path / "m" / "config.pbtxt")
    assert spec.origin["handler.python"] == Origin(config, "parameters[0].value.string_value", 6)


def test_an_environment_in_the_model_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path, "m", environment("$$TRITON_MODEL_DIRECTORY/env"), "1/model.py")
    python = interpreter(folder / "env")
    monkeypatch.chdir(tmp_path)
    for path in (folder, Path("m")):
        spec = one(path)
        assert spec.handler is not None
        assert spec.handler.python == str(python)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("{root}/gone", "which is not there"),
        ("env", "which is no absolute path"),
        ("", "an empty path"),
        ("{root}/m", "has no bin/python"),
        ("{root}/env.tar.gz", "which is neither archive nor bin/activate"),
    ],
)
def test_environments_that_cannot_be_used(tmp_path: Path, value: str, found: str) -> None:
    (tmp_path / "env.tar.gz").touch()
    folder = make(tmp_path, "m", environment(value.format(root=tmp_path)), "1/model.py")
    (fault,) = faults(folder)
    assert found in fault.found
    assert (fault.key, fault.line) == ("parameters[0].value.string_value", 6)
    assert fault.expected
    assert fault.hint


def test_an_interpreter_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").write_text("text")
    (fault,) = faults(make(tmp_path, "m", environment(str(tmp_path / "env")), "1/model.py"))
    assert "has no bin/python that may be run" in fault.found


# -- what is reported --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c): ...\n", True),
        ("class TritonPythonModel:\n    def is_ready(self): ...\n    def execute(self): ...\n", False),
        ("def auto_complete_config(): ...\nclass Other:\n    def auto_complete_config(self): ...\n", False),
        ("class TritonPythonModel:\n    x = '\\d'\n", False),
        ("class TritonPythonModel(:\n    def auto_complete_config(c): ...\n", False),
        ("\0", False),
        ("(" * 100_000, False),
        ("-" * 100_000 + "1", False),
    ],
)
def test_a_method_that_nobody_calls_is_named(tmp_path: Path, text: str, is_named: bool) -> None:
    folder = make(tmp_path, "m", 'name: "m"' + PYTHON, "1/model.py")
    (folder / "1" / "model.py").write_text(text)
    (spec,) = FORMAT.read(folder, Defaults(completes=False)).specs
    found = [
        report.found for report in spec.reports if "1/model.py defines auto_complete_config" in report.found
    ]
    assert len(found) == is_named
    assert notices(folder) == []


def test_what_has_no_effect_is_told(tmp_path: Path) -> None:
    config = PYTHON + 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
    first, second = notices(make(tmp_path, "m", config, "1/model.py", "triton_python_backend_stub"))
    assert first == "inputs come in the CPU's memory all the same"
    assert "triton_python_backend_stub is not used" in second


@pytest.mark.parametrize("completes", [True, False])
def test_a_model_may_have_neither_inputs_nor_outputs(tmp_path: Path, completes: bool) -> None:
    """So it is in the original, whether configurations are completed or not."""
    make(tmp_path, "m", 'name: "m" backend: "python"', "1/model.py")
    (spec,) = FORMAT.read(tmp_path, Defaults(completes=completes)).specs
    assert (spec.inputs, spec.outputs) == ((), ())


def test_a_model_file_that_is_a_folder(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", PYTHON, "1/model.py/x")
    (broken,) = FORMAT.read(folder, Defaults()).unreadable
    assert "directory" in broken.findings[0].found


# -- a configuration that the model completes -----------------------------------------------------------------


OWN = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n        return c\n"


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        (OWN, True),
        ("class TritonPythonModel:\n    def execute(self): ...\n", False),
        ("class TritonPythonModel(object):\n    def execute(self): ...\n", False),
        ("from base import Base\nclass TritonPythonModel(Base):\n    def execute(self): ...\n", True),
        ("from base import TritonPythonModel\n", True),
        ("@decorated\nclass TritonPythonModel:\n    def execute(self): ...\n", True),
        ("", False),
        ("class TritonPythonModel(:\n", False),
        ("class TritonPythonModel(:\n  def auto_complete_config(c): match\n", True),
    ],
)
def test_whether_a_model_is_asked(tmp_path: Path, text: str, asks: bool) -> None:
    folder = make(tmp_path, "m", PYTHON, "1/model.py")
    (folder / "1" / "model.py").write_text(text)
    handler = one(folder).handler
    assert handler is not None
    assert handler.completes is asks


def test_nobody_is_asked_where_nothing_is_completed(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", 'name: "m"' + PYTHON, "1/model.py")
    (folder / "1" / "model.py").write_text(OWN)
    (spec,) = FORMAT.read(folder, Defaults(completes=False)).specs
    assert spec.handler is not None
    assert not spec.handler.completes
    (report,) = spec.reports
    assert "defines auto_complete_config: it is not called" in report.found


# -- packed environments --------------------------------------------------------------------------------------


def test_a_packed_environment_is_unpacked_once(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "env")
    (tmp_path / "env" / "bin" / "activate").write_text("#!/bin/sh\n")
    (tmp_path / "env" / "bin" / "activate").chmod(0o755)
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "env" / "bin", "bin", filter=_with_script)
    python.unlink()
    folder = make(tmp_path, "m", environment(f"{tmp_path}/env.tar.gz"), "1/model.py")
    scratch = tmp_path / "scratch"
    found = set()
    for _ in range(2):
        (spec,) = FORMAT.read(folder, Defaults(scratch=scratch)).specs
        assert spec.handler is not None
        found.add(spec.handler.python)
    (place,) = found
    assert Path(place).parent.parent.parent == scratch
    assert Path(place).read_text() == "#!/bin/sh\n"
    assert len(list(scratch.iterdir())) == 1
    (broken,) = FORMAT.read(folder, Defaults()).unreadable
    assert "no scratch folder" in broken.findings[0].found


def _with_script(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Its interpreter is a link to a script beside it, as those of conda are links."""
    if member.name == "bin/python":
        member.linkname = "activate"
    return member


def test_a_packed_environment_stays_in_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "env.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../out"))
    folder = make(tmp_path, "m", environment(f"{tmp_path}/env.tar"), "1/model.py")
    (broken,) = FORMAT.read(folder, Defaults(scratch=tmp_path / "scratch")).unreadable
    assert "which cannot be unpacked" in broken.findings[0].found
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("bound", ["MOST_BYTES", "MOST_MEMBERS"])
def test_a_packed_environment_that_is_a_bomb_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        for number in range(30):
            member = tarfile.TarInfo(f"bin/{number}")
            member.size = 2**16
            archive.addfile(member, io.BytesIO(bytes(2**16)))
    monkeypatch.setattr(environments, bound, {"MOST_BYTES": 2**20, "MOST_MEMBERS": 20}[bound])
    folder = make(tmp_path, "m", environment(f"{tmp_path}/env.tar.gz"), "1/model.py")
    (broken,) = FORMAT.read(folder, Defaults(scratch=tmp_path / "scratch")).unreadable
    assert "it holds more than" in broken.findings[0].found
    assert not list((tmp_path / "scratch").iterdir())


def test_the_script_that_activates_an_environment(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "env")
    (tmp_path / "env" / "bin" / "activate").write_text("export X=1\n")
    spec = one(make(tmp_path, "m", environment(f"{tmp_path}/env/bin/activate"), "1/model.py"))
    assert spec.handler is not None
    assert spec.handler.python == str(python)
