"""The files of TLS: read and tried before anything listens, and again when they change."""

import os
import shutil
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
