"""The dynamic policy by tables: what waits, who is free, what is decided."""

import pytest

from trivium.core.schedulers.policy import BatchingSettings, decide
from trivium.types.errors import Code
from trivium.types.scheduling import Alone
from trivium.types.spec import Batching, Dynamic


class Waiting:
    """A queued item, as a policy sees it."""

    def __init__(self, item, rows=1, key=None, level=1, at=0.0, until=None, demotable=False):
        self.item, self.rows, self.shape_key, self.level = item, rows, key, level
        self.enqueued_at, self.queue_deadline, self.is_demotable = at, until, demotable


class View:
    """A queue that is given, not kept."""

    def __init__(self, entries, free):
        self._entries, self._free = entries, free
        self.count = len(entries)
        self.deadlines = [e for e in entries if e.queue_deadline is not None]

    def entries(self):
        return iter(self._entries)

    def expired(self, now):
        return [e for e in self._entries if e.queue_deadline is not None and e.queue_deadline <= now]

    def next_expiry(self, after):
        return min((e.queue_deadline for e in self._entries if (e.queue_deadline or 0) > after), default=None)

    def free(self):
        return self._free


def settings(merge=True, max_rows=4, delay=0.0, preferred=()):
    return BatchingSettings.of(
        Batching(True, max_rows, merge), Dynamic(max_delay=delay, preferred_rows=preferred)
    )


def items(*rows, **fields):
    return [Waiting(number, count, **fields) for number, count in enumerate(rows, 1)]


CASES = {
    "nobody is free": (items(1, 1), [], settings(), [], None),
    "nothing waits": ([], [7], settings(), [], None),
    "unmerged items go one to a credit": (
        items(1, 1, 1),
        [7, 8],
        settings(merge=False),
        [(7, [1]), (8, [2])],
        None,
    ),
    "an instance with two credits gets two": (
        items(1, 1, 1),
        [7, 7],
        settings(merge=False),
        [(7, [1]), (7, [2])],
        None,
    ),
    "without delay whatever waits goes": (items(1, 1), [7], settings(), [(7, [1, 2])], None),
    "rows of client batches count": (items(3, 1, 1), [7], settings(), [(7, [1, 2])], None),
    "an item that does not fit closes the batch": (
        items(3, 2, 1),
        [7, 8],
        settings(),
        [(7, [1]), (8, [2, 3])],
        None,
    ),
    "an oversize item goes alone": (items(9, 1), [7], settings(), [(7, [1])], None),
    "with delay a batch that can grow waits": (items(1, 1), [7], settings(delay=5), [], 6.0),
    "a full batch does not wait": (items(2, 2), [7], settings(delay=5), [(7, [1, 2])], None),
    "a closed batch does not wait": (items(3, 2), [7], settings(delay=5), [(7, [1])], None),
    "two free instances: the second batch waits": (items(4, 1), [7, 8], settings(delay=5), [(7, [1])], 6.0),
    "a preferred size goes before the delay is over": (
        items(1, 1, 1),
        [7],
        settings(delay=5, preferred=(2,)),
        [(7, [1, 2])],
        None,
    ),
    "the greatest preferred size wins": (
        items(1, 1, 1, 1),
        [7],
        settings(max_rows=8, delay=5, preferred=(2, 3, 6)),
        [(7, [1, 2, 3])],
        None,
    ),
    "what the preferred size left waits for the next": (
        items(1, 1, 1),
        [7, 8],
        settings(max_rows=8, delay=5, preferred=(2, 6)),
        [(7, [1, 2])],
        6.0,
    ),
    "once the delay is over, preferred sizes do not cap": (
        items(1, 1, 1, at=-9),
        [7],
        settings(max_rows=8, delay=5, preferred=(2,)),
        [(7, [1, 2, 3])],
        None,
    ),
}


ALONE = Waiting(9, key=Alone())
ALONE_CASES = {
    "one that runs alone does not wait": ([ALONE], [7], [(7, [9])], None),
    "nobody joins it": ([ALONE, *items(1, 1)], [7], [(7, [9])], None),
    "it joins nobody, who then wait no longer": ([*items(1, 1), ALONE], [7], [(7, [1, 2])], None),
    "two of them share nothing": ([ALONE, Waiting(8, key=Alone())], [7, 7], [(7, [9]), (7, [8])], None),
    "those behind it wait for others": ([ALONE, *items(1)], [7, 8], [(7, [9])], 6.0),
}
CASES |= {
    name: (entries, free, settings(delay=5), cuts, wake_at)
    for name, (entries, free, cuts, wake_at) in ALONE_CASES.items()
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_cut(name):
    entries, free, rules, cuts, wake_at = CASES[name]
    for entry in entries:
        entry.enqueued_at += 1.0
    now = 1.5
    decision = decide(View(entries, free), rules, now)
    assert [(cut.instance, [e.item for e in cut.entries]) for cut in decision.cuts] == cuts
    assert decision.wake_at == wake_at
    for entry in entries:
        entry.enqueued_at -= 1.0


def test_different_shapes_never_share_a_batch():
    entries = [Waiting(1, key="a"), Waiting(2, key="b"), Waiting(3, key="b"), Waiting(4, key="a")]
    decision = decide(View(entries, [7, 8, 9]), settings(), 0.0)
    assert [[e.item for e in cut.entries] for cut in decision.cuts] == [[1], [2, 3], [4]]


def test_the_expired_are_refused_and_the_others_cut():
    entries = [Waiting(1, until=1.0), Waiting(2, until=9.0), Waiting(3)]
    decision = decide(View(entries, [7]), settings(), 2.0)
    assert [(entry.item, code) for entry, code in decision.reject] == [(1, Code.EXPIRED)]
    assert [[e.item for e in cut.entries] for cut in decision.cuts] == [[2, 3]]
    assert decision.wake_at == 9.0


def test_the_demoted_go_behind_their_level_but_before_the_next():
    entries = [
        Waiting(1, level=1, until=1.0, demotable=True),
        Waiting(2, level=1),
        Waiting(3, level=2),
    ]
    decision = decide(View(entries, [5, 6, 7]), settings(merge=False), 2.0)
    assert [e.item for e in decision.demote] == [1]
    assert [cut.entries[0].item for cut in decision.cuts] == [2, 1, 3]


def test_expiry_is_seen_to_with_nobody_free():
    decision = decide(View([Waiting(1, until=1.0), Waiting(2, until=5.0)], []), settings(), 1.0)
    assert [entry.item for entry, _ in decision.reject] == [1]
    assert decision.wake_at == 5.0
