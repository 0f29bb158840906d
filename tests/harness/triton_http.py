"""Models of the Python backend as text, written to a repository, and v2 requests of any JSON document."""

import json
from pathlib import Path
from typing import Any

from tests.harness.raw_http import post
from tests.harness.server_process import ServerProcess

TEACHER = """
import json
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.factor = float(config["parameters"].get("factor", {"string_value": "1"})["string_value"])

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("y", (x * self.factor).astype(np.float32))]))
        return answers
"""

LABELLED = """
backend: "identity"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" } ]
"""

TEACHER_CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group { count: 1 kind: KIND_CPU }
"""


def write(root: Path, name: str, config: str, code: str = "", **files: str) -> Path:
    folder = root / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    if code:
        (folder / "1" / "model.py").write_text(code)
    for file, text in files.items():
        (folder / file.replace("_txt", ".txt")).write_text(text)
    return folder


def sent(serving: ServerProcess, path: str, document: Any, fields: bytes = b"") -> Any:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return serving.ask(post(path, body, fields))
