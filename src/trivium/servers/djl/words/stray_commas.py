"""Values of DJL's properties with a stray comma behind them: numbers and truth values, read as they are meant.

Source: spec sheet `djl`, section 1.2. Pure.
"""

import re
from dataclasses import replace

from trivium.codecs.java_properties import Properties
from trivium.types.findings import Finding, Severity

_STRAY_COMMA = re.compile(
    r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|true|false)[\s,]*,\s*", re.I | re.A
)


def without_stray_commas(properties: Properties) -> Properties:
    """Read a number or a truth value with a comma behind it as it is meant, whichever key it belongs to: `width=224,`
    is 224. A notice names each.
    """
    entries = dict(properties.entries)
    findings = list(properties.findings)
    for key, entry in properties.entries.items():
        if match := _STRAY_COMMA.fullmatch(entry.value):
            entries[key] = replace(entry, value=match[1])
            found = f"{key}={entry.value.strip()} ends in a comma, and is read as {key}={match[1]}"
            file, line = properties.place(key)
            findings.append(Finding(Severity.NOTICE, file, line, key, found, "", "Remove the comma."))
    return replace(properties, entries=entries, findings=tuple(findings))
