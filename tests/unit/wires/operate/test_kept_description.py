"""The description of a listener: one document for all who ask at once, and another one for other models."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from trivium.wires.operate.description import KeptDescription


def test_who_asks_while_it_is_made_gets_the_same_one() -> None:
    begun, may_end, made = threading.Event(), threading.Event(), []

    def describe(specs: Any) -> bytes:
        begun.set()
        assert may_end.wait(60)
        made.append(specs)
        return b"%d" % len(made)

    kept, specs = KeptDescription(describe), cast(Any, (object(),))
    with ThreadPoolExecutor(4) as readers:
        found = [readers.submit(kept.make, specs) for _ in range(4)]
        assert begun.wait(60)
        may_end.set()
        documents = [each.result(60)[0] for each in found]
    assert (documents, len(made)) == ([b"1"] * 4, 1)
    assert kept.make(cast(Any, (object(),)))[0] == b"2"
    assert kept.find(specs) is None
