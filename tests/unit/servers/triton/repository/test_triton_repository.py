"""Which folders are Triton's, what serves them, and what cannot be served."""

from pathlib import Path

import pytest
from tests.harness.triton_folders import TENSORS, TWO, faults, make, one

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.spec import Defaults

# -- which folders -----------------------------------------------------------------------------------------


def test_claims_repositories_and_models_by_names(tmp_path: Path) -> None:
    make(tmp_path, "by_config", "")
    make(tmp_path, "by_file", None, "1/model.onnx")
    make(tmp_path, "other", None, "a/model.onnx", "1/weights.bin")
    (tmp_path / "file").touch()
    names = ("", "by_config", "by_file", "other", "file", "none")
    assert [name for name in names if FORMAT.claims(tmp_path / name)] == ["", "by_config", "by_file"]


def test_a_broken_model_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    make(tmp_path, "good", TENSORS, "1/model.onnx")
    make(tmp_path, "bad", "nam: 5", "1/model.onnx")
    make(tmp_path, "stray", None, "config.pbtx")
    make(tmp_path, ".hidden")
    (tmp_path / "README").touch()
    reading = FORMAT.read(tmp_path, Defaults())
    assert [spec.name for spec in reading.specs] == ["good"]
    assert [model.name for model in reading.unreadable] == ["bad", "stray"]
    assert reading.unreadable[1].findings[0].hint == "Rename config.pbtx to config.pbtxt."


def test_a_spec_per_version_by_number(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", TENSORS, "10/model.onnx", "9/model.onnx", "0/model.onnx", "01/x", "warmup/y")
    specs = FORMAT.read(folder, Defaults()).specs
    assert [(spec.version, spec.root) for spec in specs] == [(v, folder / v) for v in ("0", "9", "10")]
    assert [report.found for report in specs[0].reports] == [
        "the folder 01 is no version: a version's number has no leading zero"
    ]


def test_an_unserved_version_may_lack_its_file(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", 'backend: "onnxruntime"' + TENSORS, "1/other", "2/model.onnx")
    reading = FORMAT.read(folder, Defaults())
    assert [spec.version for spec in reading.specs] == ["2"]
    assert "The version is not served" in reading.specs[0].reports[0].found


def test_the_folder_that_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "m", TENSORS, "1/model.onnx")
    monkeypatch.chdir(tmp_path / "m")
    assert FORMAT.claims(Path("."))
    assert one(Path(".")).name == "m"
    monkeypatch.chdir(tmp_path / "m" / "1")
    assert one(Path("..")).name == "m"


# -- backend, engine, entry --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "config", "file", "engine", "entry"),
    [
        ("m", "", "1/model.onnx", "onnx", "model.onnx"),
        ("m", 'platform: "onnxruntime_onnx"', "1/model.onnx", "onnx", "model.onnx"),
        ("m", 'backend: "onnxruntime" default_model_filename: "a.onnx"', "1/a.onnx", "onnx", "a.onnx"),
        ("m", 'default_model_filename: "model.py"' + TENSORS, "1/model.py", "python-triton", "model.py"),
        ("m", 'platform: "libtorch"' + TENSORS, "1/model.pt", "torch", "model.pt"),
        ("m", 'backend: "pytorch"' + TENSORS, "1/model.pt2", "torch", "model.pt2"),
        ("m", 'platform: "torch_aoti"' + TENSORS, "1/model.pt2", "torch", "model.pt2"),
        ("m", 'backend: "identity"' + TENSORS, "1/nothing", "identity", ""),
        ("m.square", TENSORS, "1/model.square", "square", "model.square"),
        ("m", 'platform: "own" backend: "square"' + TENSORS, "1/nothing", "square", ""),
    ],
)
def test_backend(tmp_path: Path, name: str, config: str, file: str, engine: str, entry: str) -> None:
    spec = one(make(tmp_path, name, config, file))
    assert (spec.engine, spec.entry) == (engine, entry)


# -- what cannot be served ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "files", "line", "key", "found"),
    [
        ('\nname: "n"', TWO, 2, "name", "the name n in the folder m"),
        ("", (), 1, "", "no version folder; the folder has config.pbtxt"),
        (
            "version_policy { specific {\nversions: [ 1, 5 ] } }",
            TWO,
            2,
            "specific.versions[1]",
            "the version 5",
        ),
        ("", ("1/model.onnx", "2/other.onnx"), 1, "default_model_filename", "it has other.onnx"),
        ('\nplatform: "onnxruntime_onxx"', TWO, 2, "platform", "onnxruntime_onxx"),
        ('\nplatform: "onnxruntime_onnx" backend: "python"', TWO, 2, "platform", "with the backend python"),
        ("", ("1/weights",), 1, "backend", "neither backend nor platform"),
        (
            'backend: "pytorch" ' + TENSORS.replace("output", "input"),
            ("1/model.pt",),
            1,
            "output",
            "no output",
        ),
        (TENSORS.replace("dims: 2", 'dims: 2\nlabel_filename: "no.txt"'), TWO, 4, "label_filename", "no.txt"),
        (
            'model_warmup {\ninputs { key: "x" value { data_type: TYPE_FP32 dims: 1\ninput_data_file: "f" } } }',
            TWO,
            3,
            "input_data_file",
            "which is no file",
        ),
    ],
)
def test_faults_of_a_folder(
    tmp_path: Path, config: str, files: tuple[str, ...], line: int, key: str, found: str
) -> None:
    folder = make(tmp_path, "m", config, *files)
    (fault,) = [fault for fault in faults(folder) if fault.key.endswith(key) and found in fault.found]
    assert (fault.file, fault.line) == (str(folder / "config.pbtxt"), line)
    assert fault.expected
    assert fault.hint


def test_all_faults_at_once(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", 'name: "n"\nmax_batch: 4\ninput { }\nbatch_input { }')
    keys = [fault.key for fault in faults(folder)]
    assert keys == [
        "max_batch",
        "input[0].name",
        "input[0].data_type",
        "input[0].dims",
        "batch_input[0].target_name",
        "batch_input[0].data_type",
        "batch_input[0].source_input",
        "name",
        "",
    ]


def test_labels_that_are_no_text(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", TENSORS.replace("dims: 2", 'dims: 2 label_filename: "l"'), "1/model.onnx")
    (folder / "l").write_bytes(b"\xff")
    assert [fault.key for fault in faults(folder)] == ["output[0].label_filename"]


def test_a_configuration_that_cannot_be_opened(tmp_path: Path) -> None:
    (make(tmp_path, "m", None, "1/model.onnx") / "config.pbtxt").mkdir()
    assert "directory" in faults(tmp_path / "m")[0].found
    (gone,) = FORMAT.read(tmp_path / "gone", Defaults()).unreadable
    assert "No such file" in gone.findings[0].found


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ('default_model_filename: "../../other/1/model.onnx"', "default_model_filename"),
        ('default_model_filename: "/etc/hostname"', "default_model_filename"),
        ("instance_group { count: 2147483647 }", "instance_group[0].count"),
    ],
)
def test_what_no_model_may_ask_for(tmp_path: Path, config: str, key: str) -> None:
    make(tmp_path, "m", config, "1/model.onnx")
    (broken,) = FORMAT.read(tmp_path, Defaults()).unreadable
    assert (broken.findings[0].key, broken.findings[0].line) == (key, 1)
