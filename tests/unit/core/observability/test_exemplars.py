"""The last traced request of each bucket is kept, of a bounded number of versions."""

from trivium.core.observability.exemplars import MOST_VERSIONS, Exemplars
from trivium.types.metrics import Exemplar


def test_the_last_of_each_bucket():
    kept = Exemplars()
    first, last, slow = Exemplar("a", 0.0015, 1.0), Exemplar("b", 0.002, 2.0), Exemplar("c", 99.0, 3.0)
    for seen in (first, last, slow):
        kept.took("m", "1", seen)
    kept.waited("m", "1", first)
    assert kept.of("m", "1") == ({4: first}, {1: last, 15: slow})
    assert kept.of("m", "2") == ({}, {})


def test_versions_that_were_traced_longest_ago_are_forgotten():
    kept = Exemplars()
    for number in range(MOST_VERSIONS + 1):
        kept.took(str(number), "1", Exemplar("a", 0.1, 1.0))
    assert kept.of("0", "1") == ({}, {})
    assert kept.of("1", "1")[1]
