"""The environment that Kubernetes injects for Services that bear our own name: the server starts as it was configured.

Each Service gives every container of its namespace the variables below, some of them named like options of ours.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.server_process import COMMAND, SECONDS, environment, until

SERVICES = {
    "TRIVIUM_SERVICE_HOST": "10.0.0.1",
    "TRIVIUM_SERVICE_PORT": "80",
    "TRIVIUM_SERVICE_PORT_HTTP": "80",
    "TRIVIUM_PORT": "tcp://10.0.0.1:80",
    "TRIVIUM_PORT_80_TCP": "tcp://10.0.0.1:80",
    "TRIVIUM_PORT_80_TCP_PROTO": "tcp",
    "TRIVIUM_PORT_80_TCP_PORT": "80",
    "TRIVIUM_PORT_80_TCP_ADDR": "10.0.0.1",
    "TRIVIUM_HTTP_SERVICE_HOST": "10.0.0.2",
    "TRIVIUM_HTTP_SERVICE_PORT": "80",
    "TRIVIUM_HTTP_SERVICE_PORT_WEB": "80",
    "TRIVIUM_HTTP_PORT": "tcp://10.0.0.2:80",
    "TRIVIUM_HTTP_PORT_80_TCP": "tcp://10.0.0.2:80",
    "TRIVIUM_HTTP_PORT_80_TCP_PROTO": "tcp",
    "TRIVIUM_HTTP_PORT_80_TCP_PORT": "80",
    "TRIVIUM_HTTP_PORT_80_TCP_ADDR": "10.0.0.2",
    "TRIVIUM_GRPC_SERVICE_HOST": "10.0.0.3",
    "TRIVIUM_GRPC_SERVICE_PORT": "8001",
    "TRIVIUM_GRPC_SERVICE_PORT_GRPC": "8001",
    "TRIVIUM_GRPC_PORT": "tcp://10.0.0.3:8001",
    "TRIVIUM_GRPC_PORT_8001_TCP": "tcp://10.0.0.3:8001",
    "TRIVIUM_GRPC_PORT_8001_TCP_PROTO": "tcp",
    "TRIVIUM_GRPC_PORT_8001_TCP_PORT": "8001",
    "TRIVIUM_GRPC_PORT_8001_TCP_ADDR": "10.0.0.3",
    "TRIVIUM_METRICS_SERVICE_HOST": "10.0.0.4",
    "TRIVIUM_METRICS_SERVICE_PORT": "8002",
    "TRIVIUM_METRICS_PORT": "tcp://10.0.0.4:8002",
    "TRIVIUM_METRICS_PORT_8002_TCP": "tcp://10.0.0.4:8002",
    "TRIVIUM_METRICS_PORT_8002_TCP_PROTO": "tcp",
    "TRIVIUM_METRICS_PORT_8002_TCP_PORT": "8002",
    "TRIVIUM_METRICS_PORT_8002_TCP_ADDR": "10.0.0.4",
}
"""Of the Services `trivium`, `trivium-http`, `trivium-grpc` and `trivium-metrics`."""

# Each test listens on an address of loopback of its own, where nobody else does, so that its ports are free.
READY = re.compile(r"^Next: ", re.MULTILINE)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    models.identity(tmp_path / "models", "echo")
    return tmp_path / "models"


def said(log: Path, *words: str | Path, **variables: str) -> str:
    """What `trivium serve WORDS` prints in that environment until it serves; it must, and it must end well."""
    env: Mapping[str, str] = {**environment(), **SERVICES, **variables}
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*COMMAND, "serve", *map(str, words)], stdout=output, stderr=subprocess.STDOUT, env=env
        )
    try:
        until(lambda: READY.search(log.read_text()) is not None or server.poll() is not None, log.read_text)
        assert server.poll() is None, log.read_text()
        server.terminate()
        assert server.wait(SECONDS) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
    text = log.read_text()
    assert (
        text.count(
            "Skipped variables that Kubernetes sets for Services: TRIVIUM_GRPC_PORT, TRIVIUM_HTTP_PORT,"
        )
        == 1
    )
    assert f" and {len(SERVICES) - 6} more" in text
    return text


def test_ports_by_flags(model: Path, tmp_path: Path) -> None:
    ports = ("--http-port", "8880", "--grpc-port", "8881", "--metrics-port", "8882")
    text = said(tmp_path / "log", model, "--host", "127.18.0.1", *ports)
    assert "HTTP on http://127.18.0.1:8880 " in text
    assert "gRPC on 127.18.0.1:8881\n" in text
    assert "Metrics on http://127.18.0.1:8882/metrics" in text


def test_ports_by_the_file(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "trivium.toml"
    file.write_text("[server]\nhost = '127.18.0.2'\n[http]\nport = 8888\n[grpc]\nport = 8889\n")
    text = said(tmp_path / "log", model, "--config", file)
    assert "HTTP on http://127.18.0.2:8888 " in text
    assert "gRPC on 127.18.0.2:8889\n" in text


def test_ports_by_default(model: Path, tmp_path: Path) -> None:
    text = said(tmp_path / "log", model, TRIVIUM_HOST="127.18.0.3")
    assert "HTTP on http://127.18.0.3:8080 " in text
    assert "gRPC on 127.18.0.3:8001\n" in text
    assert "Metrics on" not in text
