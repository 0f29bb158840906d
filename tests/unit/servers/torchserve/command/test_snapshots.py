"""Which snapshots of a folder are to go."""

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
