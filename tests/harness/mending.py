"""Carries out the changes that a hint names, in the text of the file that it is about.

Of a config.pbtxt, of properties and of YAML a key is looked for on the finding's line, which has one key alone; a
workflow in JSON is changed as a value.
"""

import json
import re
from typing import Any

from trivium.types.findings import Change, Finding

_BARE = re.compile(r"\[\d+\]$")
_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[]+)")


def mended(text: str, finding: Finding) -> str:
    """The text after all changes that the finding's hint names."""
    if finding.file.endswith(".json"):
        return _in_json(text, finding)
    for change in finding.mends:
        text = _in_lines(text, finding, change)
    return text


def _in_lines(text: str, finding: Finding, change: Change) -> str:
    lines = text.split("\n")
    key = change.key or finding.key
    at = (finding.line or 1) - 1
    # pbtxt and YAML: a key of a block is its last part; properties: a key is whole, with its dots
    is_properties = finding.file.endswith(".properties")
    word = key if is_properties else _BARE.sub("", key.rpartition(".")[2])
    sign = "=" if is_properties else ":"
    if change.key:
        at = next(
            (i for i, line in enumerate(lines) if re.match(rf"\s*{re.escape(word)}\s*{sign}", line)), at
        )
    line = lines[at]
    found = re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", line)
    if change.name:
        assert found, f"{word!r} is not on the line {line!r}"
        lines[at] = line[: found.start()] + change.name + line[found.end() :]
    elif change.value is None:
        assert found, f"{word!r} is not on the line {line!r}"
        assert line.count("{") == line.count("}"), f"more than {word} begins on the line {line!r}"
        del lines[at]
    elif found is None:
        lines.insert(at + 1, f"{word}{sign} {change.value}")
    elif number := _BARE.search(key):
        lines[at] = _item(line, int(number[0][1:-1]), change.value)
    else:
        lines[at] = f"{line[: found.end()]}{sign} {change.value}".replace("= ", "=")
    return "\n".join(lines)


def _item(line: str, number: int, value: str) -> str:
    before, _, rest = line.partition(":")
    items = [one.strip() for one in rest.strip().strip("[]").split(",")]
    items[number] = value
    return f"{before}: [ {', '.join(items)} ]"


def _in_json(text: str, finding: Finding) -> str:
    document = json.loads(text)
    for change in finding.mends:
        *way, last = _way(document, change.key or finding.key)
        inside: Any = document
        for step in way:
            inside = inside[step]
        if change.name:
            items = [(change.name if name == last else name, value) for name, value in inside.items()]
            inside.clear()
            inside.update(items)
        elif change.value is None:
            del inside[last]
        else:
            inside[last] = json.loads(change.value)
    return json.dumps(document, indent=1)


def _way(document: Any, key: str) -> list[Any]:
    """The steps to a place as `workflow_documents.dotted` writes it; a name may have dots itself."""
    way: list[Any] = []
    while key:
        if isinstance(document, list):
            number = re.match(r"\[(\d+)\]", key)
            assert number, key
            way.append(int(number[1]))
            key = key[number.end() :]
        else:
            key = key.removeprefix(".")
            name = max((one for one in document if key.startswith(one)), key=len, default=key)
            way.append(name)
            key = key[len(name) :]
        document = document[way[-1]] if key else None
    return way
