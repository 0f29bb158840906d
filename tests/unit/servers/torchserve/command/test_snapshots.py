"""Which snapshots of a folder are to go, and which one a start resumes."""

from pathlib import Path

import pytest

from trivium.servers.torchserve.command import snapshots
from trivium.servers.torchserve.command.command import newest_snapshot
from trivium.servers.torchserve.command.snapshots import KEPT, outdated


def test_the_newest_stay_whatever_their_kind_and_no_other_file_goes() -> None:
    kinds = ("startup", "snapshot", "shutdown")
    names = [f"20261125{number:09d}-{kinds[number % 3]}.cfg" for number in range(KEPT + 2)]
    others = [
        "config.properties",
        "1-snapshot.cfg",
        f".{names[0]}",
        f"{names[0]}.bak",
        "20261125000000000-mine.cfg",
    ]
    assert outdated([*reversed(names), *others]) == names[:2]
    assert outdated(names[2:]) == []


def test_a_start_reads_no_snapshot_whose_writing_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        snapshots.put(tmp_path, "20261125000000000-startup.cfg", "models=all\n")
    assert list(tmp_path.iterdir())
    assert newest_snapshot(tmp_path) is None
