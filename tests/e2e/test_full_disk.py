"""A disk without room: what is written besides answers is lost and told of, and requests are answered all the same."""

from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.server_process import serve, until
from tests.harness.triton_grpc import ONE_ROW, calling, given

FULL = Path("/dev/full")  # takes no byte, by full(4)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_requests_are_answered_and_what_is_lost_is_told(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    traced = ("--trace-file", FULL, "--trace-levels", "timestamps", "--trace-rate", "1")
    with serve(tmp_path / "log", *traced, "--access-log", FULL, tmp_path / "models") as server:
        with calling(server.grpc_address) as client:
            for _ in range(20):
                assert (client.infer("echo", [given("x", ONE_ROW)]).as_numpy("y") == ONE_ROW).all()
        assert server.is_ready()
        for told in ("lines of the access log that may be lost", "traces are lost"):
            until(lambda told=told: told in server.said(), server.said)
        assert "No space left on device" in server.said()
        with calling(server.grpc_address) as client:
            assert (client.infer("echo", [given("x", ONE_ROW)]).as_numpy("y") == ONE_ROW).all()
