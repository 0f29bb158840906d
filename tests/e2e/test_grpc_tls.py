"""gRPC over TLS: the server's certificate, and those of its clients."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.fixtures import models
from tests.harness.certificates import pair
from tests.harness.commands import refusal
from tests.harness.server_process import serve
from tests.harness.triton_grpc import ONE_ROW, given
from tritonclient.utils import InferenceServerException


def test_tls_both_ways(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    models.identity(tmp_path / "models", "wide", datatype="UINT8", dims="-1")
    certificate, key = pair(tmp_path, "server")
    own_certificate, own_key = pair(tmp_path, "client")
    words = ["--grpc-tls-certificate", certificate, "--grpc-tls-key", key]
    words += ["--grpc-tls-client-authorities", own_certificate]
    with serve(tmp_path / "log", *words, tmp_path / "models") as server:
        client = triton.InferenceServerClient(
            server.grpc_address,
            ssl=True,
            root_certificates=certificate,
            private_key=own_key,
            certificate_chain=own_certificate,
        )
        np.testing.assert_array_equal(client.infer("echo", [given("x", ONE_ROW)]).as_numpy("y"), ONE_ROW)
        array = np.random.default_rng(0).integers(0, 256, 5_000_000, np.uint8)
        result = client.infer("wide", [given("x", array, "UINT8")])
        np.testing.assert_array_equal(result.as_numpy("y"), array)
        client.close()
        for options in ({"ssl": True, "root_certificates": certificate}, {}):
            stranger = triton.InferenceServerClient(server.grpc_address, **options)
            with pytest.raises(InferenceServerException) as caught:
                stranger.is_server_live(client_timeout=5)
            assert caught.value.status() in ("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED")
            stranger.close()


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    certificate, _ = pair(tmp_path, "one")
    _, key = pair(tmp_path, "other")
    words = ("--http-port", "0", "--grpc-port", "0", "--grpc-tls-certificate", certificate)
    said = refusal("serve", tmp_path / "models", *words, "--grpc-tls-key", key)
    assert "cannot be used" in said
    assert "Give both" in refusal("serve", tmp_path / "models", *words)


def test_a_drain_over_tls_answers_what_is_in_work(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=500)
    certificate, key = pair(tmp_path, "server")
    words = ["--grpc-tls-certificate", certificate, "--grpc-tls-key", key]
    with serve(tmp_path / "log", *words, tmp_path / "models") as server:
        client = triton.InferenceServerClient(server.grpc_address, ssl=True, root_certificates=certificate)
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(client.infer, "slow", [given("x", ONE_ROW)])
            time.sleep(0.2)
            server.terminate()
            np.testing.assert_array_equal(asked.result(120).as_numpy("y"), ONE_ROW)
        assert server.wait() == 0
        client.close()
    assert " none cut off" in server.said()
