"""The check of private names finds each way to take one, and nothing else."""

from pathlib import Path

import pytest
from tests.gates.reaches import private_names, reaches

KNOWN = {"_queue", "_limits"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("server.model._queue.count", [(1, "_queue")]),
        ("(made\n._queue)", [(2, "_queue")]),
        ("from trivium.app import _limits", [(1, "_limits")]),
        ("import trivium._limits.more", [(1, "_limits")]),
        ("monkeypatch.setattr(app, '_limits', 1)", [(1, "_limits")]),
        ("monkeypatch.setattr('trivium.app._limits', 1)", [(1, "_limits")]),
        ("getattr(server, '_queue')", [(1, "_queue")]),
        ("self._queue + cls._queue + super()._queue", []),
        ("server.__dict__", []),
        ("client._stub", []),
        ("from tests.harness import _limits", []),
        ("_queue = 1", []),
    ],
)
def test_each_way_is_found(tmp_path: Path, text: str, found: list[tuple[int, str]]) -> None:
    (tmp_path / "test_it.py").write_text(text)
    assert reaches(tmp_path / "test_it.py", KNOWN) == found


def test_the_package_has_private_names() -> None:
    names = private_names()
    assert names
    assert all(name.startswith("_") for name in names)
    assert not {"__init__", "submit"} & names
