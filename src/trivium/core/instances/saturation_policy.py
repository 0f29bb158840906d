"""Decides how full a model is, as one figure to scale by. Pure: a view of its instances and its queue -> a number."""

import msgspec


class FullnessView(msgspec.Struct, frozen=True, gc=False):
    """Describes a version: its open instances have `places` for so many executions at once, and so many of these are
    `used`; so many requests are `waiting`, and `together` of them run in one execution, if it is as large as can be.
    `is_wanted`: instances shall be there, open or not.
    """

    places: int
    used: int
    waiting: int
    together: float = 1.0
    is_wanted: bool = True


def saturation(view: FullnessView) -> float:
    """Return 0 for a version that has nothing to do, 1 for one whose instances are all at work while nobody waits, and
    1 more for each round of full executions that waits. Without an open instance it is full, unless none is wanted.
    """
    if not view.places:
        return 1.0 + view.waiting / max(view.together, 1.0) if view.is_wanted or view.waiting else 0.0
    return view.used / view.places + view.waiting / (view.places * max(view.together, 1.0))


def together(largest: int, rows: int, requests: int) -> float:
    """Return how many requests fit into one execution of at most so many rows, as many as requests have had so far:
    `rows` in all. A request before the first one has one.
    """
    return max(largest * requests / rows if rows else float(largest), 1.0)
