"""Judges the lines of serving.properties, each by itself: its value, what becomes of its key, and slips of the pen.

Source: spec sheet `djl`, sections 2.6 and 3. A key that is not DJL's is passed on, as there; one that is near to one of
DJL's is named, too. Pure.
"""

from collections.abc import Iterator

from trivium.codecs.java_properties import Properties
from trivium.servers.djl.words.engines import ENGINES, LANGUAGE_MODEL, DjlEngine, row_of
from trivium.servers.djl.words.names import OPTION, nearest
from trivium.servers.djl.words.values import FORMS, fault_of
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Change, Finding, Severity

MOST_COMPARED = 300
"""Unknown keys of a file that are compared with the known ones: a file of megabytes must not take minutes."""

_LONG_ENOUGH = len(OPTION) + 9
KNOWN = tuple(
    dict.fromkeys(
        [key for engine in ENGINES for key in engine.keys]
        + [key for key, row in LANGUAGE_MODEL.keys.items() if row.support is Support.YES]
        + sorted(key for key in LANGUAGE_MODEL.keys if len(key) >= _LONG_ENOUGH)
    )
)
"""Keys that a misspelt one may have been meant as. The short names of arguments are left out: anybody's may be near."""


def judge(properties: Properties, engine: DjlEngine, translates: bool = False) -> list[Finding]:
    """Return at most one finding per key: an error for a value that cannot be and for a key that is refused, a notice
    for what is read as something else, not served, or near to another key. What a model that `translates` gives to its
    translator is that one's to judge.
    """
    return list(_findings(properties, engine, translates))


def _findings(properties: Properties, engine: DjlEngine, translates: bool) -> Iterator[Finding]:
    compared = 0
    for key in properties.entries:
        is_known = key in engine.keys
        finding = _value(properties, engine, key) if is_known else None
        if finding is None:
            near = ""
            row = row_of(engine, key, translates)
            if not is_known and compared < MOST_COMPARED:
                compared += 1
                near = nearest(key, KNOWN)
            finding = _key(properties, engine, row, key, near)
        if finding is not None:
            yield finding


def _value(properties: Properties, engine: DjlEngine, key: str) -> Finding | None:
    fault = fault_of(key, properties.entries[key].value) if key in FORMS else None
    if fault is None:
        return None
    is_passed_on = row_of(engine, key).support is Support.PASSED_ON
    severity = Severity.NOTICE if fault.is_read or is_passed_on else Severity.ERROR
    mends = (fault.change,) if fault.change else ()
    return Finding(
        severity, *properties.place(key), key, fault.found, fault.expected, fault.hint, mends=mends
    )


def _key(properties: Properties, engine: DjlEngine, row: Setting, key: str, near: str) -> Finding | None:
    value = properties.entries[key].value.strip()
    shown = f"{key}={value[:80]}"
    place = properties.place(key)
    hint, mends = (f"Did you mean {near}?", (Change(name=near),)) if near else ("", ())
    if row.support in (Support.REPORTED, Support.REFUSED) and value.lower() not in row.harmless:
        if row.support is Support.REPORTED:
            return Finding(
                Severity.NOTICE, *place, key, f"{shown} is not served: {row.how}", "", hint, mends=mends
            )
        found = f"{shown} is not served with the engine {engine.name}"
        return Finding(Severity.ERROR, *place, key, found, "", row.how)
    if near:
        taker = (
            "the handler" if engine.runs_handlers else "vLLM" if engine.passes_options else "the translator"
        )
        found = f"{key} is no key of DJL's, and is passed on to {taker}"
        return Finding(Severity.NOTICE, *place, key, found, "", hint, mends=mends)
    return None
