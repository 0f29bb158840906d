"""The files of TLS: read and tried before anything listens."""

import pytest

from trivium.tls import read_tls
from trivium.types.errors import Code, ServeError


def test_no_tls_without_files():
    assert read_tls("gRPC", "", "", "") is None


def test_tls_takes_a_certificate_and_its_key(tmp_path):
    file = tmp_path / "no.pem"
    file.write_text("no certificate")
    path = str(file)
    for paths in ((path, "", ""), ("", path, ""), ("", "", path)):
        with pytest.raises(ServeError, match="Give both --http-tls-certificate and --http-tls-key"):
            read_tls("HTTP", *paths)
    for key in (path, "/nowhere/key.pem"):
        with pytest.raises(ServeError, match="cannot be used") as caught:
            read_tls("metrics", path, key, "")
        assert caught.value.code is Code.INVALID
        assert path in caught.value.message
