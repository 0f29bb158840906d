"""Which front ends a serving process opens, and what it says of the one that it cannot have."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from trivium import app
from trivium.cli.listeners import Listeners
from trivium.config import ServerConfig
from trivium.types.errors import Code, ServeError


def made(look: Callable[[Listeners], Any], **options: Any) -> Any:
    """`look` at the listeners of these options, which never listen."""

    async def scene() -> Any:
        async with app.build(config := ServerConfig(**options)) as server:
            return look(Listeners(server, config))

    return asyncio.run(scene())


def test_grpc_is_served_by_default() -> None:
    assert made(lambda listeners: listeners.serves_grpc)


def test_grpc_can_be_switched_off() -> None:
    assert not made(lambda listeners: listeners.serves_grpc, no_grpc=True)


def test_without_grpcio_http_is_served_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "trivium.frontends.grpc_server", raising=False)

    def look(listeners: Listeners) -> None:
        assert not listeners.serves_grpc
        assert listeners.why_no_grpc.startswith("gRPC is not served: grpcio cannot be imported")
        assert "pip install" in listeners.why_no_grpc

    made(look)


def test_the_import_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)
    before = dict(app.os.environ)
    made(lambda listeners: None)
    assert dict(app.os.environ) == before


def test_what_lacks_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "trivium.frontends.grpc_server", raising=False)

    async def scene() -> None:
        async with app.build(config := ServerConfig()) as server:
            app.grpc_frontend(server, config)

    with pytest.raises(ServeError) as caught:
        asyncio.run(scene())
    assert caught.value.code is Code.UNSUPPORTED
