"""The books of one request in a graph: what is known and to be done for each part of an answer in several parts.

Decides which tensor a branch sees, which branch comes last, and when a step has to be held because it runs ahead. It
begins and ends nothing.
"""

from collections import deque
from collections.abc import Iterator

from trivium.types.interfaces import Ticket
from trivium.types.payload import Tensor, Whole

Named = dict[str, Tensor | Whole | None]
"""Values of the graph, by their names there: tensors, or payloads as a whole; None for one that was left out."""


class Branch:
    """Holds what is known and to be done for one part; the root's is that of the whole request. It sees what its
    parents know. `working` has the tickets of its steps, None as long as `submit` has not returned.
    """

    __slots__ = ("fork", "parent", "pending", "values", "working")

    def __init__(self, parent: "Fork | None", values: Named, pending: list[int]) -> None:
        self.parent = parent
        self.values = values
        self.pending = pending
        self.working: dict[int, Ticket | None] = {}
        self.fork: Fork | None = None

    def find(self, name: str) -> Tensor | Whole | None:
        """A value of the graph, as this branch sees it."""
        branch = self
        while name not in branch.values:
            if branch.parent is None:
                return None
            branch = branch.parent.branch
        return branch.values[name]

    def knows(self, name: str) -> bool:
        """Tell whether a value has come, or was left out."""
        branch = self
        while name not in branch.values:
            if branch.parent is None:
                return False
            branch = branch.parent.branch
        return True

    def tensor(self, name: str) -> Tensor | None:
        """Return a value that is a tensor; None for an optional one that is not there."""
        found = self.find(name)
        assert found is None or isinstance(found, Tensor), "a graph has tensors, or payloads as a whole"
        return found

    def value(self, name: str) -> Whole:
        """Return a value that is a payload as a whole, and is there."""
        found = self.find(name)
        assert isinstance(found, Whole), "a graph has tensors, or payloads as a whole"
        return found

    def is_last(self) -> bool:
        """Will no other branch come after it?"""
        fork = self.parent
        while fork is not None:
            if not fork.is_closed or fork.waiting or len(fork.alive) > 1:
                return False
            fork = fork.branch.parent
        return True

    def tickets(self) -> Iterator[Ticket]:
        """Yield the tickets of all that is in work, here and in the branches of this one."""
        yield from (ticket for ticket in self.working.values() if ticket is not None)
        if self.fork is not None:
            if self.fork.ticket is not None:
                yield self.fork.ticket
            for branch in self.fork.alive:
                yield from branch.tickets()


class Fork:
    """A step of a branch that answers in several parts: those that wait for their turn, and the branches of those that
    have begun, in order. `pending` are the steps that run for each of them.
    """

    __slots__ = ("alive", "branch", "is_closed", "is_full", "pending", "step", "ticket", "waiting")

    def __init__(self, branch: Branch, step: int, pending: list[int], ticket: Ticket | None) -> None:
        self.branch = branch
        self.step = step
        self.pending = pending
        self.ticket = ticket
        self.waiting: deque[Named] = deque()
        self.alive: deque[Branch] = deque()
        self.is_closed = False
        self.is_full = False

    def fill(self, most: int) -> None:
        """Begin as many branches as there is room for."""
        while self.waiting and len(self.alive) < most:
            self.alive.append(Branch(self, self.waiting.popleft(), self.pending[:]))

    def balance(self, most: int, is_held: bool) -> None:
        """Hold the step while it has given as many parts as may be in work, or its own receiver is full."""
        is_full = len(self.alive) + len(self.waiting) >= most
        if is_full is self.is_full or self.is_closed:
            return
        self.is_full = is_full
        if self.ticket is not None and is_full:
            self.ticket.hold()
        elif self.ticket is not None and not is_held:
            self.ticket.resume()


def forks(branch: Branch) -> Iterator[Fork]:
    """Yield the forks of a branch and of all branches below it."""
    if branch.fork is not None:
        yield branch.fork
        for following in branch.fork.alive:
            yield from forks(following)
