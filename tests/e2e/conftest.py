"""What the tests of the whole server share: the tiny models, and one server of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.server_process import ServerProcess, serve


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All good models of `tests.fixtures.models`, as a Triton repository. Nobody changes it."""
    return models.write_repository(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def serving(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """They, served with all settings at their defaults."""
    with serve(tmp_path_factory.mktemp("log") / "log", repository) as server:
        yield server
