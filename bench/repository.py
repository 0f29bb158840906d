"""The models of the bench, in a Triton repository made anew in `bench/.cache`."""

import shutil
from pathlib import Path

from bench import mobilenet

CACHE = Path(__file__).parent / ".cache"

ECHO = """
backend: "identity"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""

SLEEPER = """
parameters { key: "execute_delay_ms" value { string_value: "8" } }
parameters { key: "execute_delay_ms_per_row" value { string_value: "0.5" } }
"""

MOBILENET = """
platform: "onnxruntime_onnx"
max_batch_size: 16
input [ { name: "input" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 11 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
"""

BATCHED = "dynamic_batching { }\n"

MODELS = {
    "echo": ECHO,
    "echo_batched": ECHO + BATCHED,
    "sleeper": ECHO + SLEEPER,
    "sleeper_batched": ECHO + SLEEPER + BATCHED,
    "mobilenet": MOBILENET,
}


def make() -> Path:
    """The repository, written anew; the large model is built once."""
    model = CACHE / "mobilenet.onnx"
    if not model.exists():
        mobilenet.build(model)
    repository = CACHE / "repository"
    shutil.rmtree(repository, ignore_errors=True)
    for name, config in MODELS.items():
        version = repository / name / "1"
        version.mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
    shutil.copy(model, repository / "mobilenet" / "1" / "model.onnx")
    return repository
