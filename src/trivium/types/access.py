"""Scopes of access, and the rows by which each protocol says which of them its routes need."""

from enum import Enum

import msgspec


class AccessScope(Enum):
    """The right that a request needs. Keys have some of the last three; MANAGE includes the other two.

    OPEN needs no key; ANY is satisfied by every valid one: it is for what is not there.
    """

    OPEN = "open"
    ANY = "any"
    INFER = "infer"
    OBSERVE = "observe"
    MANAGE = "manage"


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """One row of a protocol's route table. `method` "*" is any but OPTIONS, and GET includes HEAD. In `path` "{name}"
    is one segment that is not empty, "{name}:word" one that ends so and has something in front of that, and "..." at
    the end is whatever follows.
    """

    method: str
    path: str
    scope: AccessScope = AccessScope.MANAGE

    def matches(self, method: str, path: str) -> bool:
        """Return whether a request with this method and this path is one of this row."""
        if self.method != method and (self.method != "*" or method == "OPTIONS"):
            return False
        wanted, found = self.path.split("/"), path.split("/")
        if wanted[-1] == "...":
            wanted = wanted[:-1]
            found = found[: len(wanted)]
        return len(wanted) == len(found) and all(
            _is_such(have, want) for want, have in zip(wanted, found, strict=True)
        )


def _is_such(segment: str, wanted: str) -> bool:
    if wanted[:1] != "{":
        return segment == wanted
    ending = wanted.partition("}")[2]
    return len(segment) > len(ending) and segment.endswith(ending)
