"""The files of TLS: read and tried before anything listens, and again when they change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.certificates import pair

from trivium.access.tls_files import tls_files
from trivium.types.errors import Code, ServeError


def test_no_tls_without_files():
    assert tls_files("gRPC", "", "", "") is None


def test_tls_takes_a_certificate_and_its_key(tmp_path):
    file = tmp_path / "no.pem"
    file.write_text("no certificate")
    path = str(file)
    file.write_text("-----BEGIN CERTIFICATE-----")
    for paths in ((path, "", ""), ("", path, ""), ("", "", path)):
        with pytest.raises(ServeError, match="Give both --http-tls-certificate and --http-tls-key"):
            tls_files("HTTP", *paths)
    for key in (path, "/nowhere/key.pem"):
        with pytest.raises(ServeError, match="cannot be used") as caught:
            tls_files("metrics", path, key, "")
        assert caught.value.code is Code.INVALID
        assert path in caught.value.message


def test_a_change_counts_once_two_looks_have_seen_a_pair(tmp_path, caplog):
    first, second = pair(tmp_path, "first"), pair(tmp_path, "second")
    place = [tmp_path / "certificate.pem", tmp_path / "key.pem"]

    def put(*sources):
        for source, target in zip(sources, place, strict=True):
            shutil.copy(source, target)

    put(*first)
    files = tls_files("HTTP", *map(str, place), "")
    before = files.in_force()
    assert before.certificate == place[0].read_bytes()
    put(second[0], first[1])  # half written
    for _ in range(5):
        files.look()
    assert files.in_force() is before
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("The certificates for HTTP read before stay in force.")
    put(*second)
    files.look()
    assert files.in_force() is before
    files.look()
    assert files.in_force().certificate == Path(second[0]).read_bytes()
    place[1].unlink()
    os.mkfifo(place[1])
    for _ in range(3):
        files.look()
    assert files.in_force().key == Path(second[1]).read_bytes()


def key_store(folder: Path, password: str) -> str:
    certificate, key = pair(folder, "first")
    store = str(folder / "store")
    command = ["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", store]
    subprocess.run([*command, "-passout", f"pass:{password}"], check=True, capture_output=True)
    return store


def test_a_key_store_stands_for_a_certificate_and_its_key(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    store = key_store(tmp_path, "changeit")
    files = tls_files("HTTP", store, "", "", "changeit")
    assert files is not None
    assert files.in_force().certificate == Path(tmp_path, "first.crt").read_bytes()
    with pytest.raises(ServeError, match="and its password"):
        tls_files("HTTP", store, "", "", "other")
    Path(store).write_bytes(b"none")
    with pytest.raises(ServeError, match=r"The key store .* cannot be used"):
        tls_files("HTTP", store, "", "", "changeit")


def test_a_key_store_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    store = tmp_path / "store"
    store.write_bytes(b"x")
    with pytest.raises(ServeError, match="-m pip install 'cryptography>="):
        tls_files("HTTP", str(store), "", "")
