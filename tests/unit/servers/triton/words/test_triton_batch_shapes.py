"""What batch_input and batch_output must not say, by backend."""

import pytest

from trivium.servers.triton.words.backends import BACKENDS, Backend
from trivium.servers.triton.words.batch_shapes import check_batch_shapes
from trivium.servers.triton.words.reader import read_config
from trivium.types.findings import Finding, Severity

ONNX = next(backend for backend in BACKENDS if backend.name == "onnxruntime")
PYTHON = next(backend for backend in BACKENDS if backend.name == "python")
TENSORS = (
    'max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: -1 } '
    'output { name: "y" data_type: TYPE_FP32 dims: -1 }\n'
)
TOLD = 'batch_input {{ kind: BATCH_ELEMENT_COUNT target_name: "{}" data_type: {} source_input: {} }}'
FOLLOWS = 'batch_output {{ target_name: "{}" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: {} }}'


def findings(config: str, backend: Backend = ONNX) -> list[Finding]:
    text = read_config("c", config.encode())
    assert not text.has_errors
    return list(check_batch_shapes(text, backend))


@pytest.mark.parametrize(
    ("config", "key", "found"),
    [
        (TENSORS + TOLD.format("n", "TYPE_INT32", '"z"'), "batch_input[0].source_input", "the input z"),
        (
            TENSORS + TOLD.format("n", "TYPE_INT32", '["x", "x"]'),
            "batch_input[0].source_input",
            "2 source inputs",
        ),
        (TENSORS + TOLD.format("n", "TYPE_INT64", '"x"'), "batch_input[0].data_type", "another data type"),
        (
            TENSORS + TOLD.format("x", "TYPE_FP32", '"x"'),
            "batch_input[0].target_name",
            "x, which is an input",
        ),
        (TENSORS + FOLLOWS.format("z", '"x"'), "batch_output[0].target_name", "the output z"),
        (TENSORS + FOLLOWS.format("y", '"z"'), "batch_output[0].source_input", "the input z"),
        (
            TENSORS.replace("4", "0") + TOLD.format("n", "TYPE_INT32", '"x"'),
            "batch_input[0]",
            "without a batch dimension",
        ),
    ],
)
def test_what_cannot_be(config: str, key: str, found: str) -> None:
    (finding,) = findings(config)
    assert (finding.severity, finding.key) == (Severity.ERROR, key)
    assert found in finding.found
    assert finding.expected
    assert finding.hint


def test_what_can_be() -> None:
    assert findings(TENSORS + TOLD.format("n", "TYPE_FP32", '"x"') + FOLLOWS.format("y", '"x"')) == []


def test_another_backend_has_its_requests_one_by_one() -> None:
    told = findings(TENSORS + TOLD.format("n", "TYPE_INT64", '"z"'), PYTHON)
    assert [finding.severity for finding in told] == [Severity.NOTICE]
    assert "no effect" in told[0].found
