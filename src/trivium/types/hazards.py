"""Says what a library does to the process that it runs in, and so where instances of its engine run: one rule for all.

What a row says of its library was measured: see docs/tables.md and docs/engines.md. Pure.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from trivium.types.spec import Isolation

RUNS_IN = "runs in"
"""The detail of a model that says where its instances run, and why: see `ModelFacts.details`."""

_LETS_GO = "the library lets go of the interpreter's lock while it computes"


class Hazard(Enum):
    """Names what a library does to its process: any of these makes that a process of its own."""

    HOLDS = "the library holds the interpreter's lock while it computes"
    QUARRELS = "other libraries that are in use here do not work beside it in one process"
    ENDS = "a damaged file ends the process that opens it"
    RUNS = "its files may be programs"
    FOREIGN = "the library has an environment of its own, since others here cannot work with its versions"


def isolation_by(hazards: Sequence[Hazard]) -> tuple[Isolation, ...]:
    """Return where instances may run, the default first: never in the server's process where something speaks
    against it.
    """
    return (Isolation.PROCESS,) if hazards else (Isolation.THREAD, Isolation.PROCESS)


def placed_by(hazards: Sequence[Hazard]) -> Mapping[str, tuple[str, str]]:
    """Return the detail that says where instances run by default, and why."""
    why = ", and ".join(each.value for each in hazards) or _LETS_GO
    return {RUNS_IN: (isolation_by(hazards)[0].value, why)}
