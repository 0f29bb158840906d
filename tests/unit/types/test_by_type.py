"""Values are found by their own class; who reads an absent one changes nothing, who asks for it to be kept does."""

from dataclasses import dataclass

from trivium.types.by_type import ByType


@dataclass
class Options:
    size: int = 3


class Special(Options):
    """Another class: no stand-in for the one that it comes from."""


def test_a_value_is_found_by_exactly_its_class() -> None:
    held = ByType(Options(5), "text")
    assert held.find(Options) == Options(5)
    assert held.find(Special) is None
    assert held.find(int) is None


def test_reading_keeps_nothing_and_asking_keeps_one_for_all() -> None:
    held = ByType()
    assert held.read(Options) == Options()
    assert held == ByType()
    kept = held.of(Options, lambda: Options(7))
    assert held.of(Options) is kept
    assert held.read(Options) is kept
    assert held == ByType(Options(7))
