"""What differs between two answers, and the answers of two servers: the aspects by name."""

from typing import Any


def differing(theirs: Any, ours: Any) -> frozenset[str]:
    """The aspects in which an answer, or a story's answers, differ."""
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            return frozenset({"answers"})
        return frozenset().union(*map(differing, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return frozenset(
            key for key in theirs.keys() | ours.keys() if theirs.get(key, key) != ours.get(key, key)
        )
    return frozenset() if theirs == ours else frozenset({"answers"})


def shown(theirs: Any, ours: Any) -> str:
    """Both answers, as far as they differ, for whoever reads why a test failed."""
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return "\n".join(f"  {at}: {shown(mine, yours)}" for at, (mine, yours) in pairs if mine != yours)
    if not (isinstance(theirs, dict) and isinstance(ours, dict)):
        return f"    theirs {theirs!r}\n    ours   {ours!r}"
    lines = []
    for key in sorted(differing(theirs, ours)):
        mine, yours = theirs.get(key), ours.get(key)
        if key == "fields" and mine and yours:
            mine, yours = sorted(set(mine) - set(yours)), sorted(set(yours) - set(mine))
        lines += [f"    {key}, theirs {mine!r}", f"    {key}, ours   {yours!r}"]
    return "\n".join(lines)
