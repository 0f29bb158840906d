"""The limits of a gRPC listener, by its role."""

from dataclasses import replace

import pytest

from trivium.config.options import GrpcConfig, ManagementConfig, ServerConfig
from trivium.frontends.h2.state import grpc_limits
from trivium.types.listeners import Role


@pytest.mark.parametrize(
    ("own", "role", "age", "grace"),
    [
        (ManagementConfig(), Role.INFERENCE, 7.0, 2.0),
        (ManagementConfig(), Role.MANAGEMENT, 7.0, 2.0),
        (ManagementConfig(grpc_connection_age=9.0), Role.INFERENCE, 7.0, 2.0),
        (ManagementConfig(grpc_connection_age=9.0), Role.MANAGEMENT, 9.0, 2.0),
        (ManagementConfig(grpc_connection_age=0.0, grpc_connection_grace=3.0), Role.MANAGEMENT, None, 3.0),
    ],
)
def test_connections_last_as_long_as_their_port_says(
    own: ManagementConfig, role: Role, age: float | None, grace: float
) -> None:
    config = replace(
        ServerConfig(), grpc=GrpcConfig(connection_age=7.0, connection_grace=2.0), management=own
    )
    limits = grpc_limits(config, role)
    assert (limits.age_seconds, limits.grace_seconds) == (age, grace)
