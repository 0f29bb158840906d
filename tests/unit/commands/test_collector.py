"""When a full collection freezes what is left, and when it looks at all again."""

from typing import Any

import pytest

from trivium.commands.collector import FEW_OBJECTS, LONG_SECONDS, THRESHOLDS, ShortCollections

LOADED = 1000


class FakeCollector:
    def __init__(self) -> None:
        self.callbacks: list[Any] = []
        self.frozen = 0
        self.live = LOADED
        self.told: list[object] = []

    def set_threshold(self, *numbers: int) -> None:
        self.told.append(numbers)

    def freeze(self) -> None:
        self.frozen, self.live = self.frozen + self.live, 0
        self.told.append("freeze")

    def unfreeze(self) -> None:
        self.frozen, self.live = 0, self.frozen + self.live
        self.told.append("unfreeze")

    def get_freeze_count(self) -> int:
        return self.frozen


class Stage:
    def __init__(self) -> None:
        self.gc = FakeCollector()
        self.now = 0.0
        self.rules = ShortCollections(self.gc, lambda: self.now)
        self.rules.start()
        self.rules.settle()
        self.gc.told.clear()

    def collects(self, seconds: float, generation: int = 2) -> list[object]:
        """What the rules do at a collection that takes so long."""
        self.gc.told.clear()
        for phase in ("start", "stop"):
            for callback in self.gc.callbacks:
                callback(phase, {"generation": generation})
            self.now += seconds
        return list(self.gc.told)


def test_thresholds_are_set_at_the_start() -> None:
    collector = FakeCollector()
    ShortCollections(collector, lambda: 0.0).start()
    assert collector.told == [THRESHOLDS]


@pytest.mark.parametrize(
    ("seconds", "generation", "does"),
    [(LONG_SECONDS * 2, 2, ["freeze"]), (LONG_SECONDS / 2, 2, []), (LONG_SECONDS * 2, 1, [])],
)
def test_what_survives_a_long_full_collection_is_frozen(
    seconds: float, generation: int, does: list[object]
) -> None:
    assert Stage().collects(seconds, generation) == does


def test_what_was_frozen_is_looked_at_again_once_little_of_it_is_left() -> None:
    stage = Stage()
    stage.gc.live = 5 * FEW_OBJECTS
    assert stage.collects(LONG_SECONDS * 2) == ["freeze"]
    assert stage.collects(0.0) == []
    stage.gc.frozen = FEW_OBJECTS - 1  # they were freed, since nothing refers to them
    assert stage.collects(0.0) == ["unfreeze"]
    assert stage.collects(0.0) == []
    assert (stage.gc.frozen, stage.gc.live) == (0, FEW_OBJECTS - 1)


def test_what_was_loaded_stays_frozen_where_nothing_else_is() -> None:
    stage = Stage()
    assert [stage.collects(0.001) for _ in range(3)] == [[], [], []]
    assert stage.gc.frozen == LOADED
