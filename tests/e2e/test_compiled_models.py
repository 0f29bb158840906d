"""A TorchServe model under `torch.compile`: its batch sizes are warm before requests come, and the next start finds
what the first has compiled.
"""

import json
import shutil
import zipfile
from pathlib import Path

import httpx
import pytest
from tests.harness.server_process import serve_handlers

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")

NET = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x) * 2 + 1
"""
HANDLER = """
import torch
from ts.torch_handler.base_handler import BaseHandler
class Own(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row["body"] for row in data], dtype=torch.float32)
"""
CONFIG = """
minWorkers: 1
batchSize: 4
startupTimeout: 300
pt2: {compile: {enable: true, backend: inductor}}
trivium_warm_up: {shape: [3]}
"""


def archive(folder: Path) -> Path:
    model = {"modelName": "gelu", "modelVersion": "1.0", "handler": "own.py", "modelFile": "net.py"}
    manifest = {"runtime": "python", "model": {**model, "configFile": "model-config.yaml"}}
    members = {
        "MAR-INF/MANIFEST.json": json.dumps(manifest),
        "own.py": HANDLER,
        "net.py": NET,
        "model-config.yaml": CONFIG,
    }
    with zipfile.ZipFile(folder / "gelu.mar", "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return folder / "gelu.mar"


def libraries(cache: Path) -> dict[str, int]:
    """Return the machine code in the cache, by its path, with the time at which it was written."""
    return {str(path): path.stat().st_mtime_ns for path in cache.rglob("*.so")}


def test_what_a_start_has_compiled_the_next_start_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kept = archive(tmp_path), tmp_path / "cache" / "trivium" / "compiled"
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # another test's PyTorch may have set it
    seen: list[dict[str, int]] = []
    for start in ("first", "second"):
        with serve_handlers(tmp_path / start, place, "--log-level", "info", variables=variables) as server:
            answer = httpx.post(f"{server.url}/predictions/gelu", json=[0, 0, 0], timeout=20)
            assert (answer.status_code, answer.json()) == (200, [1, 1, 1]), server.said()
            said = server.said()
        for size in (1, 4):
            assert f"the model is warm for batches of {size} after" in said, said
        seen.append(libraries(kept))
    assert seen[0], list(kept.rglob("*"))
    assert seen[1] == seen[0]
