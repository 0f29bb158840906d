"""One server of the stand-in models for all examples, and the wires to it."""

from collections.abc import Iterator

import pytest
from tests.e2e.client_examples import models
from tests.e2e.client_examples.wires import Wire, wires
from tests.harness.tritonserver import tritonserver


@pytest.fixture(scope="session")
def both_wires(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Wire]]:
    """To a server of all the models."""
    root = models.write_repository(tmp_path_factory.mktemp("models"))
    log = tmp_path_factory.mktemp("log") / "log"
    with tritonserver(log, "--model-repository", root, "--allow-client-shm=true") as server:
        yield wires(server.address("http"), server.address("grpc"))


@pytest.fixture(params=["http", "grpc"])
def wire(request: pytest.FixtureRequest, both_wires: dict[str, Wire]) -> Wire:
    """One after the other."""
    return both_wires[request.param]


@pytest.fixture
def grpc(both_wires: dict[str, Wire]) -> Wire:
    """For examples that there are over gRPC alone."""
    return both_wires["grpc"]
