"""What the page costs a server that has many models: five pages that are open for a minute."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.harness.browser import chromium, page_of
from tests.harness.server_process import ServerProcess, serve

from trivium.demo import places

MODELS, PAGES, SECONDS = 200, 5, 60.0
MOST_SECONDS = 3.0
"""Of processor time that the pages may cost in a minute."""

pytestmark = pytest.mark.soak


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    folder = tmp_path / "models"
    folder.mkdir()
    bare = places.bare_model()
    for number in range(MODELS):
        (folder / f"digits-{number}.onnx").symlink_to(bare)
    with serve(tmp_path / "log", *sorted(folder.iterdir())) as running:
        yield running


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as running_browser:
        yield running_browser


def spent(server: ServerProcess) -> float:
    """Seconds of the processor in which the server does nothing but what it does by itself, for a minute."""
    before = server.process.cpu_times()
    time.sleep(SECONDS)
    after = server.process.cpu_times()
    return after.user + after.system - before.user - before.system


def test_five_pages_beside_two_hundred_models(server: ServerProcess, browser: Any) -> None:
    alone = spent(server)
    with ExitStack() as pages:
        for _ in range(PAGES):
            pages.enter_context(page_of(browser, server.url))
        watched = spent(server)
    print(f"{alone:.2f} s of the processor in a minute alone, {watched:.2f} s with {PAGES} pages")
    assert watched - alone <= MOST_SECONDS
