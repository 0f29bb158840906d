"""A configuration's faults in Triton's words, as a client that asks for a load is told of them."""

from pathlib import Path

import pytest
from tests.harness.triton_folders import make

from trivium.codecs.grpc_status import INTERNAL, INVALID_ARGUMENT
from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.texts import error_text
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.spec import Defaults

IN = 'input { name: "x" data_type: TYPE_FP32 dims: 4 %s }'
LATE = [
    ('input { name: "x" data_type: TYPE_FP32 }', "model input 'x' must specify 'dims' for m"),
    ('output { name: "x" dims: 1 }', "model output 'x' must specify 'data_type' for m"),
    ("input { data_type: TYPE_FP32 dims: 1 }", "model input must specify 'name' for m"),
    (
        IN.replace("4", "0") % "",
        "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    (IN % "reshape { shape: [ 2, 3 ] }", "model input 'x' has different size for dims and reshape for m"),
    (
        IN % "reshape { shape: 0 }",
        "model input 'x' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    (IN % "format: FORMAT_NCHW", "model input NHWC/NCHW require 3 dims for m"),
    (IN % "is_shape_tensor: true", "shape tensors are only supported for TensorRT platform for m"),
    (
        "instance_group { kind: KIND_GPU }",
        "instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
    ),
    (
        'instance_group { name: "g" kind: KIND_CPU gpus: 0 }',
        "instance group g of model m has kind KIND_CPU but specifies one or more GPUs",
    ),
    (
        "response_cache { enable: true } model_transaction_policy { decoupled: true }",
        "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the "
        "response cache.",
    ),
]
EARLY = [
    "max_batch_size: -1",
    "dynamic_batching { priority_levels: 2 }",
    "max_batch_size: 2 dynamic_batching { preferred_batch_size: 4 }",
    'name: "other"',
    'platform: "odd"',
    "odd: 1",
    "input {",
    "input [ text, { } ]",  # its second block is the first of the message
]


def refusal(tmp_path: Path, config: str, backend: str = 'backend: "python" ') -> ConfigError:
    folder = make(tmp_path, "m", backend + config, "3/model.py", "2/model.py")
    (broken,) = FORMAT.read(folder, Defaults()).unreadable
    return ConfigError(broken.findings)


@pytest.mark.parametrize(("config", "words"), LATE)
def test_what_a_load_is_told(tmp_path: Path, config: str, words: str) -> None:
    answer = error_text(refusal(tmp_path, config), {"model": "m"})
    assert answer is not None
    told = f"load failed for model 'm': version 3 is at UNAVAILABLE state: Invalid argument: {words};\n"
    assert (answer.status, answer.text) == (INVALID_ARGUMENT, told)


@pytest.mark.parametrize("config", EARLY)
def test_what_is_met_before_a_load(tmp_path: Path, config: str) -> None:
    backend = "" if "platform" in config else 'backend: "python" '
    answer = error_text(refusal(tmp_path, config, backend), {"model": "m"})
    assert answer is not None
    assert answer.status == INTERNAL
    assert answer.text == "failed to load 'm', failed to poll from model repository"


@pytest.mark.parametrize(
    ("config", "detail"),
    [
        ("max_batch_size: -1", "'max_batch_size' must be non-negative value for m"),
        ("dynamic_batching { priority_levels: 2 }", "default priority level must be in range [1, 2] for m"),
        (
            "max_batch_size: 2 dynamic_batching { preferred_batch_size: 4 }",
            "dynamic batching preferred size must be <= max batch size for m",
        ),
        (
            "max_batch_size: 2 dynamic_batching { preferred_batch_size: 0 }",
            "dynamic batching preferred size must be positive for m",
        ),
        (
            'name: "other"',
            "unexpected directory name 'm' for model 'other', directory name must equal model name",
        ),
    ],
)
def test_what_the_log_is_told_then(tmp_path: Path, config: str, detail: str) -> None:
    error = refusal(tmp_path, config)
    assert error.info is not None
    assert error.info.metadata["text"] == detail


def test_what_is_wrong_with_files(tmp_path: Path) -> None:
    config = 'output { name: "y" data_type: TYPE_FP32 dims: 1 label_filename: "x.txt" }'
    path = tmp_path / "m" / "x.txt"
    answer = error_text(refusal(tmp_path, config), {"model": "m"})
    assert answer is not None
    assert answer.text.endswith(
        f"state: Internal: failed to open text file for read {path}: No such file or directory;\n"
    )


def test_an_environment_that_is_not_there(tmp_path: Path) -> None:
    config = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/x.tar.gz" } }'
    answer = error_text(refusal(tmp_path, config), {"model": "m"})
    assert answer is not None
    assert "state: Internal: Failed to get the canonical path for /x.tar.gz.;\n" in answer.text


@pytest.mark.parametrize("versions", ["specific { versions: 7 }", "specific { versions: [ 2, 7 ] }"])
def test_a_version_that_is_not_there(tmp_path: Path, versions: str) -> None:
    answer = error_text(refusal(tmp_path, f"version_policy {{ {versions} }}"), {})
    text = "at least one version must be available under the version policy of model 'm'\n"
    assert answer is not None
    assert answer.text == f"load failed for model 'm': {text}"


def test_a_backend_that_is_not_there() -> None:
    error = ServeError(
        Code.UNSUPPORTED, "no", info=ErrorInfo.of(reasons.NO_ENGINE, model="m", version="1", engine="foo")
    )
    answer = error_text(error, {})
    text = (
        "unable to find backend library for backend 'foo', try specifying runtime on the model configuration."
    )
    assert answer is not None
    assert answer.text == (
        f"load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: {text};\n"
    )


def test_what_has_no_words_there_keeps_its_own(tmp_path: Path) -> None:
    answer = error_text(refusal(tmp_path, "instance_group { count: 5000 }"), {"model": "m"})
    assert answer is not None
    assert "state: Invalid argument: " in answer.text
    assert "the count 5000" in answer.text
