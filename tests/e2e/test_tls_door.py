"""Handshakes count as connections; certificates are read again when their files change."""

import contextlib
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.certificates import pair
from tests.harness.raw_http import HOST, connect, get, read_answer
from tests.harness.server_process import ServerProcess, serve, until

LISTENERS = ("http", "grpc")
CONNECTIONS = 8


@contextlib.contextmanager
def server_over_tls(folder: Path, *words: str) -> Iterator[tuple[ServerProcess, tuple[str, str]]]:
    """Both listeners speak TLS, by one pair of files."""
    models.identity(folder / "models", "echo", rows=16)
    certificate, key = pair(folder, "server")
    for listener in LISTENERS:
        words += (f"--{listener}-tls-certificate", certificate, f"--{listener}-tls-key", key)
    with serve(folder / "log", *words, folder / "models") as server:
        yield server, (certificate, key)


def port_of(server: ServerProcess, listener: str) -> int:
    return server.port if listener == "http" else int(server.grpc_address.rpartition(":")[2])


def shown(port: int) -> str:
    """The certificate that a client is shown; empty where it is not let in."""
    try:
        return ssl.get_server_certificate((HOST, port), timeout=60)
    except OSError:
        return ""


def test_certificates_are_read_again_and_what_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    with server_over_tls(tmp_path, "--log-level", "info") as (server, files):
        ports = [port_of(server, listener) for listener in LISTENERS]
        old = Path(files[0]).read_text()
        assert [shown(port) for port in ports] == [old, old]
        context = ssl.create_default_context(cafile=files[0])
        with context.wrap_socket(connect(server.port), server_hostname="localhost") as guest:
            new = pair(tmp_path, "new")
            Path(files[0]).write_text("no certificate")
            until(lambda: server.said().count("read before stay in force") == len(LISTENERS), server.said)
            assert [shown(port) for port in ports] == [old, old]
            for source, target in zip(new, files, strict=True):
                shutil.copy(source, target)
            fresh = Path(new[0]).read_text()
            until(lambda: [shown(port) for port in ports] == [fresh, fresh], server.said)
            guest.sendall(get("/v2/health/live"))  # who came before goes on
            assert read_answer(guest).status == 200
        assert server.said().count("were read again") == len(LISTENERS)


@pytest.mark.parametrize("listener", LISTENERS)
def test_handshakes_count_as_connections(tmp_path: Path, listener: str) -> None:
    with server_over_tls(tmp_path, "--max-connections", str(CONNECTIONS)) as (server, _):
        port = port_of(server, listener)
        assert shown(port)
        with contextlib.ExitStack() as plugs:
            for _ in range(CONNECTIONS):
                plugs.enter_context(connect(port)).sendall(b"\x16\x03\x01")
            until(lambda: not shown(port), server.said)
        until(lambda: bool(shown(port)), server.said)
