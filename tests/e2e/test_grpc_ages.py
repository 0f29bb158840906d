"""How long connections last on the two gRPC ports of `torchserve`: each has its own age."""

import socket
from pathlib import Path

from tests.harness.server_process import SECONDS
from tests.harness.torchserve_command import TorchServeFolder, torchserve

GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00lastword"
PONG = b"\x00\x00\x08\x06\x01\x00\x00\x00\x00lastword"
SETTINGS = """
disable_token_authorization=true
grpc_management_max_connection_age_ms=300
grpc_management_max_connection_age_grace_ms=300
"""


def connected(port: int) -> socket.socket:
    """A connection that has greeted."""
    connection = socket.create_connection(("127.0.0.1", port), SECONDS)
    connection.sendall(GREETING)
    return connection


def test_connections_of_one_port_end_with_its_age_and_those_of_the_other_stay(tmp_path: Path) -> None:
    with torchserve(TorchServeFolder(tmp_path), text=SETTINGS) as server:
        infers, manages = (connected(server.port(f"gRPC {role}")) for role in ("inference", "management"))
        with infers, manages:
            while manages.recv(4096):  # until it closes
                pass
            infers.sendall(PING)
            seen = b""
            while PONG not in seen:
                seen += (piece := infers.recv(4096))
                assert piece, seen
