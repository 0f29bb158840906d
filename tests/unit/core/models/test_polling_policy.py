"""Of two looks at model folders: what is loaded, what is unloaded, and which graphs follow their members."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.models.polling_policy import PollingDecision, decide, merged, with_dependents

PICTURES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["1", "2", "3"]))


@pytest.mark.parametrize(
    ("before", "now", "load", "unload"),
    [
        ({}, {}, (), ()),
        ({"a": "1"}, {"a": "1"}, (), ()),
        ({}, {"b": "1", "a": "1"}, ("a", "b"), ()),
        ({"a": "1", "b": "1"}, {"a": "2", "b": "1"}, ("a",), ()),
        ({"a": "1", "b": "1"}, {"b": "1"}, (), ("a",)),
        ({"a": "1"}, {"b": "1"}, ("b",), ("a",)),
    ],
)
def test_what_is_different_is_done(before, now, load, unload):
    decision = decide(before, now)
    assert decision == PollingDecision(load, unload)
    assert decision.is_empty == (before == now)


@given(PICTURES, PICTURES)
def test_afterwards_exactly_what_is_there_is_served_as_it_is_now(before, now):
    decision = decide(before, now)
    served = dict(before)
    for name in decision.load:
        served[name] = now[name]
    for name in decision.unload:
        del served[name]
    assert served == now


@given(PICTURES, PICTURES, st.frozensets(st.sampled_from("abcdef")))
def test_what_is_unsettled_is_tried_again_while_it_is_there(before, now, unsettled):
    plain, again = decide(before, now), decide(before, now, unsettled)
    assert set(again.load) == set(plain.load) | (unsettled & now.keys())
    assert again.unload == plain.unload


@given(PICTURES, PICTURES)
def test_nothing_is_done_without_need_or_twice(before, now):
    decision = decide(before, now)
    assert all(before.get(name) != now[name] for name in decision.load)
    assert not set(decision.load) & set(decision.unload)
    assert decide(now, now).is_empty


def keyed(pictures):
    return {f"/{number}": picture for number, picture in enumerate(pictures)}


@given(PICTURES, PICTURES)
def test_a_place_that_goes_changes_nothing_of_the_others(kept, gone):
    left = {name: stamp for name, stamp in kept.items() if name not in gone}
    decision = decide(merged({"/a": gone, "/b": left}), merged({"/b": left}))
    assert decision == PollingDecision((), tuple(sorted(gone)))


@given(st.lists(PICTURES, max_size=3), st.lists(PICTURES, max_size=3))
def test_of_several_places_a_change_in_any_counts(before, now):
    size = max(len(before), len(now))
    before += [{}] * (size - len(before))
    now += [{}] * (size - len(now))
    decision = decide(merged(keyed(before)), merged(keyed(now)))
    names = set("abcdef")
    there = {name for name in names if any(name in picture for picture in now)}
    was = {name for name in names if any(name in picture for picture in before)}
    changed = {
        name for name in there if any(b.get(name) != n.get(name) for b, n in zip(before, now, strict=True))
    }
    assert set(decision.load) == changed
    assert set(decision.unload) == was - there


@pytest.mark.parametrize(
    ("names", "needs", "wanted"),
    [
        ((), {"e": ("a",)}, ""),
        (("a",), {}, "a"),
        (("a",), {"e": ("a", "b"), "f": ("b",)}, "ae"),
        (("a",), {"e": ("a",), "f": ("e",), "g": ("f",)}, "aefg"),
        (("a",), {"a": (), "x": ("y",), "y": ("x",)}, "a"),
        (("x",), {"x": ("y",), "y": ("x",)}, "xy"),
    ],
)
def test_graphs_follow_their_members(names, needs, wanted):
    assert with_dependents(names, needs) == frozenset(wanted)
