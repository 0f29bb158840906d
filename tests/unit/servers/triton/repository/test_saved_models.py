"""Models of TensorFlow by Triton's words: which file is opened, what parameters become, and what is refused where."""

from pathlib import Path

import pytest

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, ModelSpec

TENSORS = """input [{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
"""


def read(
    root: Path, text: str | None, entry: str = "model.savedmodel"
) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    version = root / "m" / "1"
    (version / entry).mkdir(parents=True)
    if text is not None:
        (root / "m" / "config.pbtxt").write_text(text)
    found = FORMAT.read(root / "m", Defaults())
    return (found.specs[0], found.specs[0].reports) if found.specs else (None, found.unreadable[0].findings)


def parameter(name: str, value: str) -> str:
    return f'parameters {{\n  key: "{name}"\n  value {{ string_value: "{value}" }}\n}}\n'


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ('platform: "tensorflow_savedmodel"\n', "model.savedmodel"),
        ('platform: "tensorflow_graphdef"\n', "model.graphdef"),
        ('backend: "tensorflow"\n', "model.savedmodel"),
        ('backend: "tensorflow"\n', "model.graphdef"),
        (None, "model.savedmodel"),
        (None, "model.graphdef"),
        ('backend: "tensorflow"\ndefault_model_filename: "other.pb"\n', "other.pb"),
    ],
)
def test_each_way_to_name_the_backend_opens_its_file(tmp_path: Path, text: str | None, entry: str) -> None:
    spec, said = read(tmp_path, text, entry)
    assert spec is not None, said
    assert (spec.engine, spec.entry, spec.groups[0].minimum) == ("tensorflow", entry, 2)


def test_parameters_become_the_engine_s_each_at_its_line(tmp_path: Path) -> None:
    text = 'platform: "tensorflow_savedmodel"\n' + TENSORS
    text += parameter("TF_NUM_INTRA_THREADS", "2") + parameter("TF_NUM_INTER_THREADS", "0")
    text += parameter("TF_GRAPH_TAG", "serve1") + parameter("TF_SIGNATURE_DEF", "two")
    text += parameter("TF_INIT_OPS_FILE", "init_ops.json") + parameter("TF_USE_PER_SESSION_THREADS", "On")
    spec, said = read(tmp_path, text)
    assert spec is not None, said
    assert spec.parameters == {
        "threads": "2",
        "tags": "serve1",
        "signature": "two",
        "init_ops_file": "init_ops.json",
    }
    origin = spec.origin["parameters[signature]"]
    assert text.splitlines()[(origin.line or 0) - 1].strip() == 'value { string_value: "two" }'
    assert not said


@pytest.mark.parametrize(
    ("name", "value"), [("MAX_SESSION_SHARE_COUNT", "2"), ("TF_USE_PER_SESSION_THREADS", "false")]
)
def test_who_shares_a_session_is_reported(tmp_path: Path, name: str, value: str) -> None:
    spec, said = read(tmp_path, 'platform: "tensorflow_savedmodel"\n' + TENSORS + parameter(name, value))
    assert spec is not None
    assert name not in spec.parameters
    (notice,) = said
    assert notice.severity is Severity.NOTICE
    assert name in notice.found


@pytest.mark.parametrize("value", ["two", "-1", "99999", ""])
@pytest.mark.parametrize("name", ["TF_NUM_INTRA_THREADS", "TF_NUM_INTER_THREADS"])
def test_a_number_of_threads_that_is_none_is_refused(tmp_path: Path, name: str, value: str) -> None:
    spec, said = read(tmp_path, 'platform: "tensorflow_savedmodel"\n' + TENSORS + parameter(name, value))
    assert spec is None
    (fault,) = said
    assert name in fault.found
    assert fault.line is not None
