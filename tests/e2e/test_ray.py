"""`trivium.ray:app` on a local Ray cluster: run by `make ray`, in an environment that has Ray Serve."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.ports import free_port

ray = pytest.importorskip("ray", reason="Ray is not in this environment; `make ray` makes one that has it.")

from ray import serve  # noqa: E402 -- only where there is Ray
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary as built  # noqa: E402

import trivium.ray  # noqa: E402
from trivium import demo  # noqa: E402
from trivium.types.errors import ServeError  # noqa: E402

_MODELS = str(Path(demo.__file__).parent / "models")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Have a cluster of this process whose proxy listens on all addresses; give its port."""
    chosen = free_port()
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    try:
        serve.start(http_options={"host": "0.0.0.0", "port": chosen})
        serve.run(built(trivium.ray.app, {"paths": [_MODELS]}), name="guarded", route_prefix="/guarded")
        serve.run(trivium.ray.app(_MODELS, open=True), name="open", route_prefix="/open")
        yield chosen
    finally:
        serve.shutdown()
        ray.shutdown()


def _asked(url: str, body: object = None) -> tuple[int, bytes]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_replica_answers_v2(port: int) -> None:
    base = f"http://127.0.0.1:{port}/open/v2/models/digits"
    status, said = _asked(base)
    assert status == 200, said
    given = json.loads(said)["inputs"][0]
    shape = [1 if size < 0 else size for size in given["shape"]]
    count = 1
    for size in shape:
        count *= size
    row = {"name": given["name"], "datatype": given["datatype"], "shape": shape, "data": [0] * count}
    status, said = _asked(f"{base}/infer", {"id": "a", "inputs": [row]})
    assert status == 200, said
    assert json.loads(said)["id"] == "a"
    assert json.loads(said)["outputs"]


def test_without_keys_only_this_machine_is_served(port: int) -> None:
    address = ray.util.get_node_ip_address()
    assert _asked(f"http://{address}:{port}/open/v2/health/ready")[0] == 200
    assert _asked(f"http://{address}:{port}/guarded/v2/health/ready")[0] == 403


def test_what_cannot_be_served_is_refused_before_anything_starts() -> None:
    with pytest.raises(ServeError, match="was given no models"):
        trivium.ray.app({})
    with pytest.raises(ServeError):
        trivium.ray.app(_MODELS, port=1)
