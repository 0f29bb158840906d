"""A profile is completed by what protocols say of themselves; listeners come from it and from the configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from trivium import app, profiles
from trivium.catalogue import CATALOGUE, configured
from trivium.types.errors import ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.listeners import BindAddress, Role, Route
from trivium.types.protocol_context import ProtocolContext


class NewProtocol:
    """A protocol that claims one path of its own, one of DJL's and one for management."""

    ROUTES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: ("v3", "ping"), Role.MANAGEMENT: ("admin",)}

    def make(self, context: ProtocolContext) -> WireProtocol:
        raise NotImplementedError


def test_a_protocol_of_the_table_is_served_in_the_native_profile_where_nobody_else_claims_its_paths() -> None:
    found = replace(CATALOGUE, http={**CATALOGUE.http, "new": NewProtocol()}).profiles
    routes = {route.prefix: route for route in found["native"].listeners[0].routes}
    assert routes["v3"] == Route("v3", "new")
    assert routes["admin"] == Route("admin", "new", Role.MANAGEMENT)
    assert routes["ping"].protocol == "djl"
    for name in ("djl", "torchserve", "triton"):
        assert "new" not in found[name].listeners[0].protocols


def test_a_service_of_the_table_is_served_in_the_native_profile() -> None:
    new: Any = SimpleNamespace(SERVICES={Role.INFERENCE: ("test.Echo",)})
    found = replace(CATALOGUE, rpc={**CATALOGUE.rpc, "new": new}).profiles
    assert Route("test.Echo", "new") in found["native"].listeners[1].routes
    assert Route("test.Echo", "new") not in found["triton"].listeners[1].routes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"HTTP": BindAddress("127.0.0.1", 8080), "gRPC": BindAddress("127.0.0.1", 8001)}),
        (
            {"http_port": 0, "no_grpc": True, "metrics_port": 0},
            {"HTTP": BindAddress("127.0.0.1", 0), "metrics": BindAddress("127.0.0.1", 0)},
        ),
        ({"no_grpc": True, "metrics_port": 8080}, {"HTTP": BindAddress("127.0.0.1", 8080)}),
        (
            {"no_grpc": True, "metrics_port": 8080, "metrics_host": "127.0.0.2"},
            {"HTTP": BindAddress("127.0.0.1", 8080), "metrics": BindAddress("127.0.0.2", 8080)},
        ),
        (
            {"no_http": True, "reuse_grpc_port": True},
            {"gRPC": BindAddress("127.0.0.1", 8001, is_shared=True)},
        ),
    ],
)
def test_listeners_are_where_the_configuration_says_and_share_an_address(
    options: dict[str, Any], expected: dict[str, BindAddress]
) -> None:
    found = app.listeners(CATALOGUE, configured(**options))
    assert {listener.name: listener.bind for listener in found} == expected


def test_models_are_managed_where_they_infer_unless_that_has_a_listener_of_its_own() -> None:
    (one,) = app.listeners(CATALOGUE, configured(no_grpc=True))
    assert one.roles == set(Role)
    first, second = app.listeners(CATALOGUE, configured(no_grpc=True, management_port=8081))
    assert first.roles == {Role.INFERENCE, Role.METRICS}
    assert (second.name, second.roles, second.bind) == (
        "management",
        {Role.MANAGEMENT},
        BindAddress("127.0.0.1", 8081),
    )
    (both,) = app.listeners(CATALOGUE, configured(no_grpc=True, management_port=8080))
    assert both.roles == set(Role)


def test_services_that_manage_have_a_listener_of_their_own_where_it_is_on() -> None:
    new: Any = SimpleNamespace(SERVICES={Role.INFERENCE: ("a.Infer",), Role.MANAGEMENT: ("a.Manage",)})
    profile = replace(CATALOGUE, rpc={"new": new}).profiles["native"]

    def services(**options: Any) -> dict[str, set[str]]:
        found = profiles.listeners(profile, configured(no_http=True, **options))
        return {each.name: {route.prefix for route in each.routes} for each in found}

    assert services() == {"gRPC": {"a.Infer", "a.Manage"}}
    assert services(management_grpc_port=0) == {"gRPC": {"a.Infer"}, "gRPC management": {"a.Manage"}}
    assert configured(management_grpc_port=0, management_grpc_host="0.0.0.0").wide == (
        "--management-grpc-host 0.0.0.0"
    )


def test_metrics_with_a_listener_of_their_own_are_not_served_with_torchserves_inference() -> None:
    for profile, is_there in (("native", True), ("torchserve", False)):
        first, *_ = app.listeners(CATALOGUE, configured(profile=profile, metrics_port=0))
        assert ("metrics" in {route.prefix for route in first.routes}) is is_there


def test_a_listener_may_be_a_unix_socket() -> None:
    found = app.listeners(
        CATALOGUE, configured(no_grpc=True, http_socket="/run/a", management_socket="/run/b")
    )
    assert [str(listener.bind) for listener in found] == ["unix:/run/a", "unix:/run/b"]
    assert configured(no_grpc=True, host="0.0.0.0", http_socket="/run/a").is_loopback
    assert configured(management_port=0, management_host="0.0.0.0").wide == "--management-host 0.0.0.0"


def test_a_shared_address_serves_the_routes_of_both_and_tritons_does_not_share() -> None:
    (both,) = app.listeners(CATALOGUE, configured(profile="native", no_grpc=True, metrics_port=8080))
    assert "metrics" in {route.prefix for route in both.routes}
    assert both.is_logged
    found = app.listeners(CATALOGUE, configured(profile="triton", no_grpc=True, metrics_port=8080))
    assert [listener.name for listener in found] == ["HTTP", "metrics"]


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        ({"profile": "torchserve"}, True),
        ({"profile": "torchserve-command"}, False),
        ({"profile": "torchserve-command", "torchserve_open_inference": True}, True),
    ],
)
def test_the_command_serves_open_inference_once_it_is_switched_on(
    options: dict[str, Any], is_there: bool
) -> None:
    (found,) = [
        each for each in app.listeners(CATALOGUE, configured(**options)) if each.name == profiles.GRPC
    ]
    services = {route.prefix for route in found.routes}
    assert ("org.pytorch.serve.grpc.openinference.GRPCInferenceService" in services) is is_there
    assert {
        "inference.GRPCInferenceService",
        "org.pytorch.serve.grpc.inference.InferenceAPIsService",
    } <= services


def test_v2_is_torchserves_under_its_command_alone() -> None:
    for name, owner in (("torchserve", "v2"), ("torchserve-command", "torchserve")):
        found = CATALOGUE.profiles[name]
        owners = {route.prefix: route.protocol for route in found.listeners[0].routes}
        assert (owners["v2"], owners["v1"], owners["v1/...:predict"]) == (owner, "openai", "torchserve")
        assert found.server.original == "torchserve"
        assert found.listeners[0].says_keep_alive
    assert not CATALOGUE.profiles["native"].listeners[0].says_keep_alive


@pytest.mark.parametrize("profile", ["native", "djl", "torchserve", "triton"])
def test_open_inference_needs_the_profile_of_the_command(profile: str) -> None:
    with pytest.raises(
        ServeError, match=f"--torchserve-open-inference has no effect here: under --profile {profile} "
    ):
        app.listeners(CATALOGUE, configured(profile=profile, torchserve_open_inference=True))


@pytest.mark.parametrize("name", ["native", "djl", "torchserve", "torchserve-command", "triton"])
def test_a_protocol_is_told_which_prefixes_it_owns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    for protocol, entry in CATALOGUE.http.items():
        made = entry.make
        monkeypatch.setattr(
            entry,
            "make",
            lambda context, at=protocol, made=made: (told.update({at: context}), made(context))[1],
        )
    (listener,) = [each for each in CATALOGUE.profiles[name].listeners if each.name == profiles.HTTP]
    app.http_routes(app.Site(CATALOGUE, configured(profile=name)), listener)
    for protocol, context in told.items():
        assert context.prefixes == {route.prefix for route in listener.routes if route.protocol == protocol}
    assert set(told) == set(listener.protocols)


def test_requests_wait_for_a_load_under_torchserves_profiles_alone() -> None:
    assert {name for name, each in CATALOGUE.profiles.items() if each.server.is_patient} == {
        "torchserve",
        "torchserve-command",
    }
