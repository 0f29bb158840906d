"""Answers that nobody reads: what all hold together, and who is cut off when that is too much."""

import pytest
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.core.unread_answers import UnreadAnswers
from trivium.frontends.limits import HttpLimits


class Reader:
    """Holds bytes, until it is cut off."""

    def __init__(self) -> None:
        self.is_cut = False

    def give_up(self) -> None:
        self.is_cut = True


@pytest.mark.parametrize(
    ("notes", "cut", "held"),
    [
        ([], "", 0),
        ([("a", 60), ("b", 40)], "", 100),
        ([("a", 60), ("b", 41)], "a", 41),
        ([("a", 60), ("a", 0), ("b", 100)], "", 100),
        ([("a", 20), ("b", 20), ("a", 90)], "b", 90),
        ([("a", 20), ("b", 20), ("c", 20), ("a", 30), ("b", 80)], "a", 100),
        ([("a", 20), ("b", 20), ("c", 20), ("a", 10), ("b", 80)], "c", 90),
        ([("a", 500)], "", 500),
        ([("a", 500), ("b", 1)], "a", 1),
        ([("a", 30), ("b", 30), ("c", 200)], "ab", 200),
        ([("a", 0), ("a", 0)], "", 0),
    ],
)
def test_who_has_taken_nothing_for_longest_is_cut_off(
    notes: list[tuple[str, int]], cut: str, held: int
) -> None:
    unread, readers = UnreadAnswers(100), {name: Reader() for name in "abc"}
    for name, size in notes:
        unread.note(readers[name], size)
    assert "".join(name for name, reader in readers.items() if reader.is_cut) == cut
    assert unread.held_bytes == held


def test_slow_readers_hold_no_more_than_the_budget_and_who_reads_is_served() -> None:
    stage = HttpHarness(HttpLimits(total_body_bytes=2**20), FakeCore())
    body = bytes(2**18)
    slow = []
    for _ in range(6):
        stage.connect()
        slow.append(stage.transport)
        stage.transport.is_stuck = True
        stage.send(post("a", body))
    assert stage.site.unread.held_bytes <= 2**20
    assert slow[0].is_closing()
    assert not slow[-1].is_closing()
    stage.connect()
    stage.send(get("a"))
    assert stage.statuses == [200]
