"""Lays out how a server does: a sentence, its totals, a row for each model, and the reasons of those that do not serve.

Pure. What has not been counted is a dash.
"""

from collections.abc import Iterator

from trivium.cli.layout import aligned, labelled
from trivium.codecs.visible_text import visible
from trivium.wires.operate.schema import InstanceTally, ModelRow, Overview

_HEADINGS = ("model", "version", "state", "requests/s", "p50", "p99", "waiting", "instances")
_NOTHING = "-"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def status_lines(
    overview: Overview, place: str, now: float, width: int, counts: bool = True
) -> Iterator[str]:
    """Yield the lines for a server at this place, on a screen of `width` columns; `now` in seconds of the epoch. With
    `counts` False nothing but states is known.
    """
    server, totals = overview.server, overview.totals
    facts = [visible(" ".join(filter(None, (server.name, server.version))))]
    if server.profile:
        facts.append(f"{server.profile} profile")
    if server.started:
        facts.append(f"up {duration(max(now - server.started, 0.0))}")
    known = ", ".join(filter(None, facts))
    yield f"{place}: {'ready' if server.ready else 'NOT READY'}{f' ({known})' if known else ''}"
    said = [
        (label, visible(words)) for label, words in (("why", server.sentence), ("mend", server.mend)) if words
    ]
    yield from labelled(said, width, 2)
    if counts:
        yield (
            f"{_count(totals.requests, 'request')}, {totals.failures} failed, {totals.waiting} waiting, "
            f"{_count(totals.connections, 'connection')}"
        )
    if overview.models:
        yield ""
        yield from aligned(_HEADINGS, [_row(each, counts) for each in overview.models], width, 0)
    sentence = server.sentence or ""
    reasons = [
        (visible(each.name), visible(each.reason))
        for each in overview.models
        if each.reason and each.reason not in sentence
    ]
    if reasons:
        yield ""
        yield from labelled(reasons, width, 0)


def _row(model: ModelRow, counts: bool) -> tuple[str, ...]:
    known = counts and bool(model.requests)
    return (
        visible(model.name),
        visible(model.version),
        visible(model.state),
        f"{model.requests_per_s:.1f}" if counts else _NOTHING,
        latency(model.p50_s) if known else _NOTHING,
        latency(model.p99_s) if known else _NOTHING,
        str(model.waiting) if counts else _NOTHING,
        _instances(model.instances) if counts else _NOTHING,
    )


def _instances(tally: InstanceTally) -> str:
    """Return how many serve, and how many do not."""
    others = [
        f"{count} {word}" for count, word in ((tally.starting, "starting"), (tally.failed, "failed")) if count
    ]
    return ", ".join([str(tally.ready), *others])


def latency(seconds: float | None) -> str:
    """Return a time to answer in the unit that suits it."""
    if seconds is None:
        return _NOTHING
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def duration(seconds: float) -> str:
    """Return a length of time in words, to one unit."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
