"""Resources that instances need while they run, and how much there is of them: the words of the rate limiter.

A resource is a name that the models agree on; nothing is known of what it stands for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERYWHERE = ""
"""In place of a device: what all devices share."""


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """`count` of a resource, of the device's own or of the one that all devices share."""

    name: str
    count: int
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Describes what one instance needs while it has anything in work. Who has had few executions goes first; each
    counts `weight`.
    """

    needs: tuple[ResourceNeed, ...] = ()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Says how much there is of resources that were named, by name and device (`EVERYWHERE`: on each). Of all others
    there is as much as the instance needs that needs most.
    """

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
