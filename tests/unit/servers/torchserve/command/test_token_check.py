"""Who gets in by which port of a TorchServe, and the file that the keys are in."""

import itertools
import json
import stat
from pathlib import Path

import pytest

from trivium.servers.torchserve.command.token_check import KeyFileWriter, authorizers, make_tokens
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Listener, Role, Route, Transport
from trivium.types.wire import Head, RpcCall

LISTENERS = {
    "HTTP": "inference",
    "management": "management",
    "gRPC": "inference",
    "gRPC management": "management",
}


@pytest.fixture
def writer(tmp_path: Path) -> KeyFileWriter:
    return KeyFileWriter(tmp_path / "key_file.json")


def head(path: str, key: str = "", method: str = "GET") -> Head:
    return Head(method, path, "", {b"authorization": f"Bearer {key}".encode()} if key else {})


def test_every_port_takes_its_own_key_alone(writer: KeyFileWriter) -> None:
    found = authorizers(make_tokens(60, writer))
    keys = {name: row["key"] for name, row in json.loads(writer.path.read_text()).items()} | {
        "wrong": "x",
        "no": "",
    }
    for (listener, needed), (name, key) in itertools.product(LISTENERS.items(), keys.items()):
        request: Head | RpcCall = head("/ping", key)
        if listener.startswith("gRPC"):
            request = RpcCall("/a.B/C", {"authorization": f"Bearer {key}"})
        for scope in AccessScope:
            if name == needed:
                found[listener].authorize(scope, request)
                continue
            with pytest.raises(ServeError, match=r"^Token Authorization failed\.") as caught:
                found[listener].authorize(scope, request)
            expected = (Code.FORBIDDEN, None) if listener.startswith("gRPC") else (Code.UNAUTHENTICATED, 400)
            assert (caught.value.code, caught.value.status) == expected
    found["metrics"].authorize(AccessScope.OBSERVE, head("/metrics"))


def test_at_an_address_for_both_models_are_managed_by_their_own_key_alone(writer: KeyFileWriter) -> None:
    routes = tuple(Route(role.value, "torchserve", role) for role in (Role.INFERENCE, Role.MANAGEMENT))
    both = [
        Listener("HTTP", Role.INFERENCE, Transport.HTTP, routes, "torchserve"),
        Listener("gRPC", Role.INFERENCE, Transport.GRPC, routes, "v2"),
    ]
    found = authorizers(make_tokens(60, writer), both)
    keys = {name: row["key"] for name, row in json.loads(writer.path.read_text()).items()}

    def opens(listener: str, scope: AccessScope, request: Head | RpcCall) -> bool:
        try:
            found[listener].authorize(scope, request)
        except ServeError:
            return False
        return True

    for name, key in keys.items():
        for scope in (AccessScope.OBSERVE, AccessScope.MANAGE):
            assert opens("HTTP", scope, head("/models", key)) is (name == "management")
        for scope in (AccessScope.INFER, AccessScope.OPEN, AccessScope.ANY):
            assert opens("HTTP", scope, head("/predictions/m", key)) is (name == "inference")
        assert opens("HTTP", AccessScope.ANY, head("/token", key)) is (name == "API")
        for service, purpose in (
            ("inference.InferenceAPIs", "inference"),
            ("management.ManagementAPIs", "management"),
        ):
            call = RpcCall(f"/org.pytorch.serve.grpc.{service}Service/X", {"authorization": f"Bearer {key}"})
            assert opens("gRPC", AccessScope.MANAGE, call) is (name == purpose)


def test_descriptions_need_no_key_and_renewal_its_own(writer: KeyFileWriter) -> None:
    found = authorizers(make_tokens(60, writer))
    keys = {name: row["key"] for name, row in json.loads(writer.path.read_text()).items()}
    for listener in ("HTTP", "management"):
        found[listener].authorize(AccessScope.OPEN, head("/", method="OPTIONS"))
        found[listener].authorize(AccessScope.OPEN, head("/api-description"))
    found["management"].authorize(AccessScope.ANY, head("/token", keys["API"]))
    for listener, key in (("management", keys["management"]), ("HTTP", keys["API"])):
        with pytest.raises(
            ServeError, match="Authentication" if listener == "management" else "Authorization"
        ):
            found[listener].authorize(AccessScope.ANY, head("/token", key))
    with pytest.raises(ServeError):  # no part of another path is taken for it
        found["management"].authorize(AccessScope.MANAGE, head("/models/token", keys["API"]))


def test_without_the_check_nobody_is_asked() -> None:
    assert authorizers(None) == {}


def test_the_file_is_its_owners_alone_and_keys_are_long(writer: KeyFileWriter) -> None:
    writer.path.write_text("old")
    writer.path.chmod(0o644)
    make_tokens(60, writer)
    assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600
    keys = {row["key"] for row in json.loads(writer.path.read_text()).values()}
    assert [len(key) >= 32 for key in keys] == [True] * 3
    assert [path.name for path in writer.path.parent.iterdir()] == ["key_file.json"]
    writer.remove()
    writer.remove()
    assert not writer.path.exists()


def test_a_file_that_cannot_be_written_is_told_with_the_way_out(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "key_file.json", Path("/dev/full/key_file.json")):
        with pytest.raises(ServeError, match="--disable-token-auth"):
            make_tokens(60, KeyFileWriter(place))


@pytest.mark.parametrize("path", ["/api-description/predict", "/api-description/1.0/predict", "//predict"])
def test_a_model_that_is_called_like_a_description_needs_a_key(writer: KeyFileWriter, path: str) -> None:
    found = authorizers(make_tokens(60, writer))
    for method in ("POST", "OPTIONS"):
        with pytest.raises(ServeError, match="Authorization"):
            found["HTTP"].authorize(AccessScope.INFER, head(path, method=method))


@pytest.mark.parametrize("path", ["/token/predict", "/token/1.0/predict", "/token/predict/"])
def test_a_model_called_token_takes_the_key_of_inference_where_keys_are_renewed(
    writer: KeyFileWriter, path: str
) -> None:
    routes = tuple(Route(role.value, "torchserve", role) for role in (Role.INFERENCE, Role.MANAGEMENT))
    both = [Listener("HTTP", Role.INFERENCE, Transport.HTTP, routes, "torchserve")]
    found = authorizers(make_tokens(60, writer), both)["HTTP"]
    keys = {name: row["key"] for name, row in json.loads(writer.path.read_text()).items()}
    assert TorchServeHttp(str).head(head(path, method="POST")).model == "token"
    found.authorize(AccessScope.INFER, head(path, keys.pop("inference"), "POST"))
    for key in keys.values():
        with pytest.raises(ServeError, match="Authorization"):
            found.authorize(AccessScope.INFER, head(path, key, "POST"))
    for renewal in ("/token", "/token/"):
        found.authorize(AccessScope.ANY, head(renewal, keys["API"]))
