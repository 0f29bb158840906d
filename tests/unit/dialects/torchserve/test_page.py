"""The manual's page has a row for every key of model-config.yaml, and says of each what the code says."""

from pathlib import Path

import pytest

from trivium.dialects.torchserve.keys import ROWS, TorchServeKeyRole
from trivium.dialects.torchserve.manifest import BUILT_IN

PAGE = (Path(__file__).parents[4] / "docs" / "torchserve.md").read_text()
WORDS = {
    TorchServeKeyRole.USED: "yes",
    TorchServeKeyRole.PASSED_ON: "passed on",
    TorchServeKeyRole.REPORTED: "no, reported",
    TorchServeKeyRole.REFUSED: "no, refused",
}


@pytest.mark.parametrize("key", ROWS)
def test_a_row_for_every_key(key: str) -> None:
    assert f"\n| `{key}` | {WORDS[ROWS[key].role]}" in PAGE


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_built_in_handlers_are_named(name: str) -> None:
    assert f"`{name}`" in PAGE
