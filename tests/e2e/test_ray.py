"""`trivium.ray:app` on a local Ray cluster: what clients get through Ray Serve, and what its configuration changes."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.asked_requests import OPTIONS, VOLATILE, recorded
from tests.e2e.test_asgi import Answered, answered, difference
from tests.fixtures import models
from tests.harness import language_models
from tests.harness.keys import KEYS, key_file
from tests.harness.raw_http import ask, connect, get, post, reset
from tests.harness.server_process import serve, until

ray = pytest.importorskip("ray", reason="Ray is not in this environment; `make ray` makes one that has it.")

from tests.harness.ray_cluster import RayCluster, proxies, ray_cluster, replicas  # noqa: E402

import trivium.ray  # noqa: E402
from trivium import demo  # noqa: E402
from trivium.demo import places  # noqa: E402
from trivium.ray.application import app  # noqa: E402
from trivium.types.errors import ServeError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

_MODELS = str(Path(demo.__file__).parent / "models")
_RAYS = {"x-request-id", "x-content-type-options"}
"""Header lines that Ray Serve writes, too."""

HANDLER = """
import os
import time
from collections.abc import Iterator


class {name}:
    def predict(self, text: str, pause: float = 0.0) -> Iterator[str]:
        open({log!r}, "a").write("begun " + text + "\\n")
        try:
            for number in range(200):
                yield text + " " + str(os.getppid()) + ";"
                if not pause:
                    return
                time.sleep(pause)
        finally:
            open({log!r}, "a").write("ended " + text + "\\n")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """A head, and two nodes for a replica each."""
    with ray_cluster(2) as made:
        yield made


def application(path: Path | str, *more: Path | str, name: str = "models", **facts: Any) -> dict[str, Any]:
    """A configuration of one application at the root."""
    return {
        "name": name,
        "route_prefix": f"/{name}",
        "import_path": "trivium.ray:app",
        "args": {"paths": [str(path), *map(str, more)], **facts.pop("args", {})},
        "deployments": [{"name": "trivium", **facts}],
    }


def handler(folder: Path, name: str = "Slow") -> str:
    """One that streams, and writes down what it does."""
    folder.mkdir(exist_ok=True)
    (folder / "log").touch()
    (folder / "app.py").write_text(HANDLER.format(name=name, log=str(folder / "log")))
    return f"{folder}/app.py:{name}"


def test_it_answers_as_the_server_alone_does(cluster: RayCluster, repository: Path, tmp_path: Path) -> None:
    paths = (repository, *places.handlers())
    requests = recorded()
    flags = [word for name, value in OPTIONS.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    cluster.deploy(application(*paths, args=OPTIONS))
    with serve(tmp_path / "log", *paths, *flags) as front:
        cluster.await_running("models", 1)
        wrong = {}
        for name, request in requests.items():
            wanted = without_rays(answered(front.port, request))
            found = without_rays(answered(cluster.port, request.replace(b" /", b" /models/", 1)))
            if any(name.endswith(path) for path in VOLATILE):
                found = Answered(found.status, found.fields, wanted.body)
            if found != wanted:
                wrong[name] = (found, wanted)
    assert not wrong, "\n".join(difference(name, *pair) for name, pair in wrong.items())


def without_rays(found: Answered) -> Answered:
    """What of it is the application's alone."""
    return Answered(found.status, tuple(each for each in found.fields if each[0] not in _RAYS), found.body)


def test_without_keys_only_this_machine_is_served(cluster: RayCluster, tmp_path: Path) -> None:
    models.add(tmp_path / "models", "add")
    keys = key_file(tmp_path / "keys.toml")
    path = tmp_path / "models"
    cluster.deploy(application(path), application(path, name="keyed", args={"keys": str(keys)}))
    for name in ("models", "keyed"):
        cluster.await_running(name, 1)
    far = ray.util.get_node_ip_address()
    assert status(far, cluster.port, "/models/v2/health/ready") == 403
    assert status("127.0.0.1", cluster.port, "/models/v2/health/ready") == 200
    assert status(far, cluster.port, "/keyed/v2/models/add") == 401
    assert (
        status(far, cluster.port, "/keyed/v2/models/add", {"Authorization": f"Bearer {KEYS['infer'].text}"})
        == 200
    )
    cluster.deploy(application(path, args={"open": True}))
    until(lambda: status(far, cluster.port, "/models/v2/health/ready") == 200, lambda: "not open")
    cluster.await_running("models", 1)


def status(host: str, port: int, path: str, fields: Mapping[str, str] | None = None) -> int:
    """With which status this is answered there."""
    with contextlib.closing(HTTPConnection(host, port, timeout=60)) as connection:
        connection.request("GET", path, headers=dict(fields or {}))
        return connection.getresponse().status


def test_what_cannot_be_served_is_refused_before_anything_starts() -> None:
    with pytest.raises(ServeError, match="was given no models"):
        app({})
    with pytest.raises(ServeError, match="no effect"):
        app(_MODELS, grpc_port=1)
    for wrong in ("0", "3-1", "many", "1-"):
        with pytest.raises(ServeError, match="like 1-8"):
            app(_MODELS, replicas=wrong)
    assert trivium.ray.app is app


def test_a_stream_arrives_as_it_is_made_and_ends_with_its_client(cluster: RayCluster, tmp_path: Path) -> None:
    path = handler(tmp_path / "made")
    log = tmp_path / "made/log"
    cluster.deploy(application(path))
    cluster.await_running("models", 1)
    plug = connect(cluster.port)
    plug.sendall(post("/models/predictions/Slow", b'{"text": "a", "pause": 0.5}'))
    got = b""
    while got.count(b";") < 2:
        got += plug.recv(4096)
    assert "ended a" not in log.read_text(), "it came while it was made"
    reset(plug)
    until(lambda: "ended a" in log.read_text(), log.read_text)
    assert ask(cluster.port, get("/models/v2/health/ready")).status == 200


def test_a_killed_proxy_cuts_what_it_carried_and_comes_back(cluster: RayCluster, tmp_path: Path) -> None:
    path = handler(tmp_path / "made")
    log = tmp_path / "made/log"
    cluster.deploy(application(path))
    cluster.await_running("models", 1)
    plug = connect(cluster.port)
    plug.sendall(post("/models/predictions/Slow", b'{"text": "a", "pause": 0.2}'))
    assert plug.recv(4096)
    (proxy,) = proxies()
    proxy.kill()
    with contextlib.closing(plug), contextlib.suppress(ConnectionError):
        while plug.recv(4096):
            pass
    until(lambda: "ended a" in log.read_text(), log.read_text)

    def answers() -> bool:
        with contextlib.suppress(OSError, HTTPException):
            return status("127.0.0.1", cluster.port, "/models/v2/health/ready") == 200
        return False

    until(answers, lambda: "no proxy", 120)
    assert log.read_text().count("begun a") == 1, "nobody asks again for who was cut"


def test_a_language_model_writes_whole_and_streamed_and_ends_with_its_client(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """With one slot: a stream whose client has gone would keep the next request waiting for all of its tokens."""
    for library in ("torch", "transformers"):
        pytest.importorskip(library, reason="`make ray` installs what language models need.")
    path = language_models.write(tmp_path / "words", "llama")
    parameters = {"engine_parameters": "hf.threads=1,hf.slots=1"}
    cluster.deploy(application(path, args=parameters))
    with serve(tmp_path / "log", path, "--engine-parameters", parameters["engine_parameters"]) as front:
        cluster.await_running("models", 1)
        for route, fields in (
            ("/v1/completions", {"prompt": [5, 6, 7]}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ):
            body = {"model": "words", "max_tokens": 8, "temperature": 0, "ignore_eos": True, **fields}
            places = ((front.port, ""), (cluster.port, "/models"))
            wanted, found = (choice(port, prefix + route, body) for port, prefix in places)
            assert wanted["finish_reason"] == "length"
            assert found == wanted
            streams = [
                [delta_of(event) for event in events(port, prefix + route, body)] for port, prefix in places
            ]
            assert streams[0] == streams[1]
            assert len(streams[0]) > 2
            said = wanted["text"] if "text" in wanted else wanted["message"]["content"]
            assert "".join(streams[1]) == said
    long = {"model": "words", "prompt": [5, 6, 7], "max_tokens": 240, "ignore_eos": True, "stream": True}
    for _ in range(3):
        plug = connect(cluster.port)
        plug.sendall(post("/models/v1/completions", json.dumps(long).encode()))
        assert b"data: {" in plug.recv(2**16) + plug.recv(2**16)
        reset(plug)
    assert choice(cluster.port, "/models/v1/completions", {**long, "max_tokens": 2, "stream": False})
    text = ask(cluster.port, get("/models/metrics")).body.decode()
    (made,) = re.findall(r"^trivium_generated_tokens_total\{.*\} (\S+)$", text, re.MULTILINE)
    assert float(made) < 3 * long["max_tokens"], "they ended with their clients"


def choice(port: int, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The one choice of an answer."""
    answer = httpx.post(f"http://127.0.0.1:{port}{path}", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["choices"]
    return dict(found)


def events(port: int, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events of a streamed answer."""
    answer = httpx.post(f"http://127.0.0.1:{port}{path}", json={**body, "stream": True}, timeout=120)
    assert answer.status_code == 200, answer.text
    lines = answer.text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line[6:]) for line in lines[:-2]]


def delta_of(event: Mapping[str, Any]) -> str:
    """The text that an event adds."""
    (found,) = event["choices"]
    return str(found["text"] if "text" in found else found["delta"].get("content") or "")


def test_a_user_config_is_applied_while_it_serves(cluster: RayCluster, tmp_path: Path) -> None:
    first, second = models.write_repository(tmp_path / "first"), tmp_path / "second"
    models.add(second, "add")
    models.identity(second, "newer", rows=16)
    cluster.deploy(application(first))
    cluster.await_running("models", 1)
    (replica,) = replicas()
    statuses: set[int] = set()
    with asking(cluster.port, "/models/v2/models/add", statuses):
        cluster.deploy(application(first, user_config={"paths": [str(second)]}))
        until(lambda: ask(cluster.port, get("/models/v2/models/newer")).status == 200, lambda: "not loaded")
        until(lambda: ask(cluster.port, get("/models/v2/models/text")).status == 404, lambda: "not unloaded")
        cluster.await_running("models", 1)
    assert statuses == {200}
    assert replicas() == [replica], "a replica was replaced"


def test_a_user_config_that_cannot_be_leaves_what_serves(cluster: RayCluster, tmp_path: Path) -> None:
    first = tmp_path / "first"
    models.add(first, "add")
    cluster.deploy(application(first))
    cluster.await_running("models", 1)
    for wrong in ({"path": "x"}, {"paths": [str(tmp_path / "nowhere")]}):
        cluster.deploy(application(first, user_config=wrong))
        until(lambda: not cluster.is_running("models", 1), lambda: "Ray says that all is well")
    cluster.deploy(application(first))
    cluster.await_running("models", 1)
    assert ask(cluster.port, get("/models/v2/models/add")).status == 200


@contextlib.contextmanager
def asking(port: int, path: str, statuses: set[int]) -> Iterator[None]:
    """Somebody asks again and again until the end of the block."""
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            statuses.add(ask(port, get(path)).status)

    with ThreadPoolExecutor(2) as threads:
        asks = [threads.submit(again) for _ in range(2)]
        try:
            yield
        finally:
            stop.set()
            for each in asks:
                each.result(60)


def test_saturation_adds_a_replica(cluster: RayCluster, tmp_path: Path) -> None:
    path = handler(tmp_path / "made")
    policy = {"policy_function": "trivium.ray.scaling_policy:by_saturation"}
    scaling = {
        "min_replicas": 1,
        "max_replicas": 2,
        "upscale_delay_s": 0.1,
        "look_back_period_s": 2,
        "policy": policy,
    }
    cluster.deploy(application(path, autoscaling_config=scaling))
    cluster.await_running("models", 1)
    pids: set[str] = set()
    stop = threading.Event()

    def again(number: int) -> None:
        while not stop.is_set():
            connection = HTTPConnection("127.0.0.1", cluster.port, timeout=120)
            with contextlib.closing(connection):
                connection.request(
                    "POST", "/models/predictions/Slow", f'{{"text": "t{number}", "pause": 0.002}}'
                )
                answer = connection.getresponse()
                assert answer.status == 200
                pids.add(answer.read().decode().partition(";")[0].split()[1])

    with ThreadPoolExecutor(6) as threads:
        asks = [threads.submit(again, number) for number in range(6)]
        try:
            cluster.await_running("models", 2)
            until(lambda: len(pids) == 2, lambda: str(pids))
        finally:
            stop.set()
        for each in asks:
            each.result(120)
