"""What the configuration makes of access, and what it refuses."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.harness.keys import key_file

from trivium.access.settings import access_settings
from trivium.catalogue import CATALOGUE, configured
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL


def test_without_a_word_everybody_is_let_in_but_pages() -> None:
    settings = access_settings(configured())
    assert settings.entrances.keys() == {
        "HTTP",
        "gRPC",
        "metrics",
        "management",
        "console",
        "gRPC management",
    }
    for entrance in settings.entrances.values():
        assert (entrance.authorizer, entrance.tls) == (ALLOW_ALL, None)
        assert entrance.pages is not None
    settings.start()
    settings.close()


@pytest.mark.parametrize(
    ("options", "is_on"),
    [({}, True), ({"profile": "triton"}, False), ({"profile": "triton", "allowed_hosts": "a.b"}, True)],
)
def test_where_pages_are_told_from_programs(options: dict[str, Any], is_on: bool) -> None:
    config = configured(**options)
    found = access_settings(config, takes_any_host=CATALOGUE.server(config).takes_any_host)
    assert (found.entrances["HTTP"].pages is not None) == is_on


def test_keys_are_asked_by_every_listener_and_are_no_secret_where_they_travel_in_the_clear(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = str(key_file(tmp_path / "keys.toml"))
    with caplog.at_level(logging.WARNING):
        settings = access_settings(configured(keys=keys))
        assert not caplog.records
        access_settings(configured(keys=keys, host="0.0.0.0", no_grpc=True, metrics_port=0))
    (said,) = caplog.records
    assert "in the clear over HTTP and metrics, and --host 0.0.0.0" in said.getMessage()
    authorizers = {id(entrance.authorizer) for entrance in settings.entrances.values()}
    assert len(authorizers) == 1
    assert id(ALLOW_ALL) not in authorizers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keys": "/nowhere/keys.toml"}, "/nowhere/keys.toml cannot be read"),
        ({"keys": "x", "open_management": True}, "Leave --open-management out"),
        ({"allowed_hosts": "http://a"}, "--allowed-hosts: 'http://a' is no host name"),
        ({"metrics_tls_key": "x"}, "Give --metrics-port"),
        ({"http_tls_key": "x"}, "Give both --http-tls-certificate and --http-tls-key"),
        ({"grpc_tls_key": "x"}, "Give both --grpc-tls-certificate and --grpc-tls-key"),
        ({"metrics_port": 0, "metrics_tls_key": "x"}, "Give both --metrics-tls-certificate"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ServeError) as caught:
        access_settings(configured(**options))
    assert words in caught.value.message
    assert caught.value.code in (Code.INVALID, Code.NOT_FOUND)
