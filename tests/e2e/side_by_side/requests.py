"""The requests of the suite: 150 drawn from the tables by a committed seed, then whatever was not drawn.

A request is the same whenever it is made. Decides how many of each kind there are and in which order they are sent.
"""

import random

from tests.e2e.side_by_side import grpc_faults, grpc_requests, http_faults, http_requests
from tests.e2e.side_by_side.calls import CALLS
from tests.e2e.side_by_side.differences import ACCEPTED
from tests.e2e.side_by_side.exchange import Request
from tests.e2e.side_by_side.stories import STORY
from tests.e2e.side_by_side.surface import CODE

SEED = 20241029
COUNT = 150
LEAST_BAD = 60

Name = tuple[str, str, bool]
"""Wire and row, and whether it is of the bad ones."""

_TOLD_OF = (("http", "another shape, no batch"), ("http", "a model that not_found"))
"""Certain, because statistics tell of them."""


def drawn() -> list[Request]:
    """Two thirds of them bad; those that show accepted differences are always among them."""
    return _made()[:COUNT]


def all_of_them() -> list[Request]:
    """Those that are drawn, then the other rows of the tables, calls and code, and at last what changes something."""
    calls = [Request(f"call: {name}", False, data) for name, data in CALLS.items()]
    story = [Request(f"story: {name}", is_bad, data) for name, (is_bad, data) in STORY.items()]
    code = [Request(f"code: {line}", False, data) for line, data in CODE.items()]
    return _made() + calls + code + story


def _made() -> list[Request]:
    rng = random.Random(SEED)
    names = _names()
    shown = {*_TOLD_OF, *(name for each in ACCEPTED for name in each.requests)}
    certain = [name for name in names if name[:2] in shown]
    bad = [name for name in names if name[2] and name not in certain]
    good = [name for name in names if not name[2] and name not in certain]
    of_bad = COUNT * 2 // 3 - len(certain)
    chosen = [*certain, *rng.sample(bad, of_bad), *rng.sample(good, COUNT - COUNT * 2 // 3)]
    rng.shuffle(chosen)
    chosen.sort(key=lambda name: name[1].startswith("statistics of a model that"))
    rest = [name for name in names if name not in chosen]
    return [_request(name, rng) for name in chosen + rest]


def _names() -> list[Name]:
    tables = {
        ("http", False): http_requests.GOOD,
        ("http", True): http_faults.BAD,
        ("grpc", False): grpc_requests.GOOD,
        ("grpc", True): grpc_faults.BAD,
    }
    return [(wire, row, is_bad) for (wire, is_bad), table in tables.items() for row in table]


def _request(name: Name, rng: random.Random) -> Request:
    wire, row, is_bad = name
    title = f"{wire}: {row}"
    if wire == "http":
        return Request(title, is_bad, (http_faults.BAD if is_bad else http_requests.GOOD)[row](rng))
    rpc = (grpc_faults.BAD if is_bad else grpc_requests.GOOD)[row](rng)
    return Request(title, is_bad, b"", rpc.method, rpc.messages)
