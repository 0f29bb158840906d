"""Which front ends a serving process opens, and what it says of the one that it cannot have."""

import asyncio
import errno
import os
from dataclasses import replace
from typing import Any

import click
import pytest

from trivium import app
from trivium.app import Site
from trivium.catalogue import CATALOGUE, configured
from trivium.cli.serve import serve
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.listeners import Listeners
from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.http.frontend import HttpFrontend
from trivium.types.listeners import BindAddress

ANY_PORTS: dict[str, Any] = {"http_port": 0, "grpc_port": 0, "metrics_port": 0}


@pytest.mark.parametrize(
    ("options", "served"),
    [
        ({}, {"HTTP", "gRPC", "metrics"}),
        ({"no_grpc": True}, {"HTTP", "metrics"}),
        ({"no_http": True}, {"gRPC", "metrics"}),
        ({"metrics_port": -1}, {"HTTP", "gRPC"}),
    ],
)
def test_each_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], served: set[str]
) -> None:
    async def start(front: object, bind: BindAddress) -> BindAddress:
        return bind

    for front in (HttpFrontend, H2Frontend):
        monkeypatch.setattr(front, "start", start)

    async def scene() -> set[str]:
        async with app.build(CATALOGUE, config := configured(**{**ANY_PORTS, **options})) as server:
            listeners = Listeners(server, Site(CATALOGUE, config))
            await listeners.start()
            await listeners.close()
            return set(listeners.places)

    assert asyncio.run(scene()) == served


def test_each_listens_where_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> Listeners:
        async with app.build(CATALOGUE, config := configured(grpc_host="127.0.0.2", **ANY_PORTS)) as server:
            listeners = Listeners(server, Site(CATALOGUE, config))
            started: list[tuple[str, str, int]] = []

            async def start(front: object, bind: BindAddress) -> BindAddress:
                started.append((type(front).__name__, bind.host, bind.port))
                return replace(bind, port=80 + len(started))

            for front in (HttpFrontend, H2Frontend):
                monkeypatch.setattr(front, "start", start)
            await listeners.start()
            assert [host for _, host, _ in started] == ["127.0.0.1", "127.0.0.2", "127.0.0.1"]
            await listeners.close()
            return listeners

    listeners = asyncio.run(scene())
    assert listeners.places == {"HTTP": "127.0.0.1:81", "gRPC": "127.0.0.2:82", "metrics": "127.0.0.1:83"}
    assert listeners.url == "http://127.0.0.1:81"


def test_an_address_that_cannot_be_had_is_named_and_what_was_opened_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []

    async def scene() -> None:
        async with app.build(CATALOGUE, config := configured()) as server:
            listeners = Listeners(server, Site(CATALOGUE, config))

            async def start(front: object, bind: BindAddress) -> BindAddress:
                if isinstance(front, H2Frontend):
                    raise OSError(errno.EADDRINUSE, "error while attempting to bind on address ('h', 1)")
                return bind

            async def close(front: object) -> None:
                closed.append(type(front).__name__)

            for front in (HttpFrontend, H2Frontend):
                monkeypatch.setattr(front, "start", start)
                monkeypatch.setattr(front, "close", close)
            await listeners.start()

    with pytest.raises(CannotListen) as caught:
        asyncio.run(scene())
    assert (caught.value.service, caught.value.address) == ("gRPC", "127.0.0.1:8001")
    assert "--grpc-port" in caught.value.message
    assert "--no-grpc" in caught.value.message
    assert f"port 8001: {os.strerror(errno.EADDRINUSE)}. Choose" in caught.value.message
    assert closed == ["HttpFrontend", "H2Frontend"]


def test_not_everything_can_be_switched_off() -> None:
    with pytest.raises(click.ClickException) as caught:
        serve([], configured(no_http=True, no_grpc=True), lambda *_: None)
    assert "Nothing would be served" in caught.value.message


def test_an_address_of_grpc_alone_beyond_loopback_needs_to_be_allowed() -> None:
    config = configured(grpc_host="0.0.0.0")
    assert not config.is_loopback
    assert configured(host="::1", grpc_host="localhost").is_loopback
    with pytest.raises(click.ClickException) as caught:
        serve([], config, lambda *_: None)
    assert caught.value.message.startswith("--grpc-host 0.0.0.0 listens beyond this machine")
    assert "--open" in caught.value.message
