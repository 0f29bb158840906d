"""NVIDIA's client examples `simple_http_model_control` and `simple_grpc_model_control`, call by call and claim by
claim, in our words. They count the models of the repository, so that each has a server of its own.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.client_examples import models
from tests.e2e.client_examples.wires import Wire, wires
from tests.harness.tritonserver import tritonserver
from tritonclient.utils import InferenceServerException


@pytest.mark.parametrize("name", ["http", "grpc"])
def test_model_control(tmp_path: Path, name: str) -> None:
    names = models.SEVEN if name == "http" else (*models.SEVEN, "repeat_int32")
    repository = models.write_repository(tmp_path / "models", names)
    flags = ("--model-repository", repository, "--model-control-mode=explicit")
    with tritonserver(tmp_path / "log", *flags) as server:
        wire = wires(server.address("http"), server.address("grpc"))[name]
        with wire.client() as client:
            control(wire, client, len(names))


def control(wire: Wire, client: Any, count: int) -> None:
    """Load, load with another configuration, unload, and what cannot be loaded."""
    index = client.get_model_repository_index()
    assert len(index.models if wire.is_grpc else index) == count
    client.load_model("simple")
    assert client.is_model_ready("simple")
    no_json = '"parameters": {"config": {{"max_batch_size": "16"}}}'
    for name, options in (("simple", {"config": no_json}), ("wrong_model_name", {})):
        with pytest.raises(InferenceServerException) as caught:
            client.load_model(name, **options)
        assert "failed to load" in caught.value.message()
    client.load_model("simple", config='{"max_batch_size":"16"}')
    config = wire.document(client.get_model_config("simple"))
    assert (config["config"] if wire.is_grpc else config)["max_batch_size"] == 16
    client.unload_model("simple")
    assert not client.is_model_ready("simple")
    if wire.is_grpc:
        with pytest.raises(InferenceServerException, match="failed to poll from model repository") as caught:
            client.load_model("simple", config="{}", files={f"file:{'A' * 256}": b"a"})
        assert caught.value.status() == "StatusCode.INTERNAL"
    assert client.is_server_live()
