"""HTTP and metrics over TLS: the server's certificate, and those of its clients."""

import http.client
import json
import re
import ssl
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures import models
from tests.harness.certificates import pair
from tests.harness.commands import refusal
from tests.harness.raw_http import ask, get, tensor
from tests.harness.server_process import ServerProcess, serve, until


def client_of(port: int, authority: str, own: tuple[str, str] | None) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=authority)
    if own is not None:
        context.load_cert_chain(*own)
    return http.client.HTTPSConnection("localhost", port, context=context, timeout=60)


def test_http_and_metrics_over_tls_with_certificates_of_clients(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "wide", datatype="UINT8", dims="-1")
    certificate, key = pair(tmp_path, "server")
    own = pair(tmp_path, "client")
    words = [
        "--http-tls-certificate",
        certificate,
        "--http-tls-key",
        key,
        "--http-tls-client-authorities",
        own[0],
    ]
    words += ["--metrics-port", "0", "--metrics-tls-certificate", certificate, "--metrics-tls-key", key]
    with serve(tmp_path / "log", *words, tmp_path / "models") as server:
        assert "HTTP on https://" in server.said()
        client = client_of(server.port, certificate, own)
        array = np.random.default_rng(0).integers(0, 256, 5_000_000, np.uint8)
        document = {"inputs": [{"name": "x", "shape": [5_000_000], "datatype": "UINT8"}]}
        document["inputs"][0]["parameters"] = {"binary_data_size": 5_000_000}
        head = json.dumps(document | {"parameters": {"binary_data_output": True}}).encode()
        fields = {"Inference-Header-Content-Length": str(len(head))}
        for _ in range(3):  # on one connection: the second is received in place
            client.request("POST", "/v2/models/wide/infer", head + array.tobytes(), fields)
            answer = client.getresponse()
            assert answer.status == 200
            assert answer.read().endswith(array.tobytes())
        client.request("POST", "/v2/models/no/infer", b"x" * 100_000)
        assert client.getresponse().status in (400, 404)
        client.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            live(server.port, certificate)
        port = int(
            server.await_line(re.compile(r"^Metrics on https://[\d.]+:(\d+)/metrics", re.MULTILINE))[1]
        )
        scraper = client_of(port, certificate, None)
        scraper.request("GET", "/metrics")
        assert scraper.getresponse().status == 200
        scraper.close()
        with pytest.raises(ConnectionError):
            ask(server.port, get("/v2/health/live"))  # without TLS


def live(port: int, certificate: str) -> int:
    """The status of the server's health, asked without a certificate of one's own."""
    client = client_of(port, certificate, None)
    try:
        client.request("GET", "/v2/health/live")
        return client.getresponse().status
    finally:
        client.close()


def test_files_of_tls_that_cannot_be_used(tmp_path: Path) -> None:
    folder = models.identity(tmp_path / "models", "echo").parent
    certificate, _ = pair(tmp_path, "one")
    _, key = pair(tmp_path, "other")
    words = ("--http-port", "0", "--http-tls-certificate", certificate)
    said = refusal("serve", folder, *words, "--http-tls-key", key)
    assert "The files for HTTP's TLS" in said
    assert certificate in said
    assert "Give both --http-tls-certificate and --http-tls-key" in refusal("serve", folder, *words)
    said = refusal("serve", folder, "--http-port", "0", "--metrics-tls-key", key)
    assert "Give --metrics-port" in said


def test_a_drain_over_tls_answers_what_is_in_work(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=3000)
    certificate, key = pair(tmp_path, "server")
    words = ["--http-tls-certificate", certificate, "--http-tls-key", key]
    with serve(tmp_path / "log", *words, tmp_path / "models") as server:
        found: list[int] = []

        def infer() -> None:
            client = client_of(server.port, certificate, None)
            body = json.dumps({"inputs": [tensor("x", [[1, 2, 3, 4]], [1, 4])]})
            client.request("POST", "/v2/models/slow/infer", body)
            found.append(client.getresponse().status)
            client.close()

        thread = threading.Thread(target=infer)
        thread.start()
        until(lambda: is_asked(server, certificate), server.said)
        server.terminate()
        thread.join(60)
        assert server.wait() == 0
        assert found == [200]


def is_asked(server: ServerProcess, certificate: str) -> bool:
    """Whether the request of the thread is in work."""
    client = client_of(server.port, certificate, None)
    client.request("GET", "/metrics")
    text = client.getresponse().read().decode()
    client.close()
    oldest = re.search(r'^trivium_oldest_run_seconds\{model="slow"[^}]*\} (\S+)', text, re.MULTILINE)
    assert oldest, text
    return float(oldest[1]) > 0
