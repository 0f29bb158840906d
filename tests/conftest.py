"""How hypothesis runs in every test: see `tests.harness.properties`. Each test ends with our own words for options."""

from collections.abc import Iterator

import pytest
from tests.harness import properties

from trivium.types.spoken import speak_as_ourselves

properties.register()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever is kept in the user's cache is kept for the tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _our_own_words() -> Iterator[None]:
    """A command that ran inside a test has had the whole process speak its words."""
    yield
    speak_as_ourselves()
