"""The models of the bench, made anew in `bench/.cache`: Triton repositories, a DJL folder, a TorchServe archive."""

import shutil
import zipfile
from pathlib import Path

from bench import echo_handler, mobilenet

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

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
ensemble_scheduling { step [
  { model_name: "echo" model_version: -1
    input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } },
  { model_name: "echo_batched" model_version: -1
    input_map { key: "x" value: "between" } output_map { key: "y" value: "y" } } ] }
"""

PYTHON = ECHO.replace('"identity"', '"python"')
PYTHON_MOBILENET = MOBILENET.replace('platform: "onnxruntime_onnx"', 'backend: "python"')

BATCHED = "dynamic_batching { }\n"
BOUNDED = "dynamic_batching { default_queue_policy { max_queue_size: 64 } }\n"

MODELS = {
    "echo": ECHO,
    "echo_batched": ECHO + BATCHED,
    "sleeper": ECHO + SLEEPER,
    "sleeper_batched": ECHO + SLEEPER + BATCHED,
    "overloaded": ECHO.replace("max_batch_size: 16", "max_batch_size: 1") + SLEEPER + BOUNDED,
    "overloaded_batched": ECHO + SLEEPER + BOUNDED,
    "mobilenet": MOBILENET,
    "ensemble": ENSEMBLE,
}

HANDLERS = {
    "python_echo": (PYTHON, echo_handler.ECHO),
    "python_echo_batched": (PYTHON + BATCHED, echo_handler.ECHO),
    "python_busy": (PYTHON, echo_handler.BUSY),
    "python_mobilenet": (PYTHON_MOBILENET, echo_handler.MOBILENET),
}
"""Configuration and `model.py`. These alone make a repository for the real tritonserver."""


DJL_SETTINGS = "engine=Python\nbatch_size=1\nminWorkers=1\nmaxWorkers=1\n"
MANIFEST = """{"runtime": "python", "model": {
"modelName": "NAME", "handler": "handler.py", "modelVersion": "1.0", "configFile": "model-config.yaml"}}"""
TORCHSERVE_SETTINGS = "batchSize: 1\nminWorkers: 1\nmaxWorkers: 1\n"


def make() -> tuple[Path, Path]:
    """Two repositories, written anew: of engines and of handlers. The large model is built once."""
    model = CACHE / "mobilenet.onnx"
    if not model.exists():
        mobilenet.build(model)
    repository, handlers = CACHE / "repository", CACHE / "handlers"
    for folder in (repository, handlers):
        shutil.rmtree(folder, ignore_errors=True)
    for name, config in MODELS.items():
        _model(repository, name, config)
    for name, (config, code) in HANDLERS.items():
        (_model(handlers, name, config) / "model.py").write_text(code)
    shutil.copy(model, repository / "mobilenet" / "1" / "model.onnx")
    shutil.copy(model, handlers / "python_mobilenet" / "1" / "model.onnx")
    return repository, handlers


def make_foreign() -> dict[str, Path]:
    """Write the handlers of the other dialects anew; the folder or archive by the profile that serves it."""
    folder, archive = CACHE / "djl" / "djl_echo", CACHE / "torchserve_echo.mar"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "serving.properties").write_text(DJL_SETTINGS)
    (folder / "model.py").write_text(echo_handler.DJL_ECHO)
    write_archive(archive, echo_handler.TORCHSERVE_ECHO, TORCHSERVE_SETTINGS)
    return {"djl": folder, "torchserve": archive}


def write_archive(path: Path, handler: str, settings: str) -> None:
    """Write a TorchServe archive of a handler; the model is named as the file."""
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("MAR-INF/MANIFEST.json", MANIFEST.replace("NAME", path.stem))
        opened.writestr("handler.py", handler)
        opened.writestr("model-config.yaml", settings)


def _model(repository: Path, name: str, config: str) -> Path:
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(config)
    return version
