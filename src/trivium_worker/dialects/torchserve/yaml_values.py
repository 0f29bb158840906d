"""A model's configuration as its YAML had it: the way back from what `servers/torchserve/words/yaml_values` writes."""

import base64
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

MARK = "//yaml"


def from_json(value: Any) -> Any:
    """The value, with keys that are no text, dates, bytes and sets again."""
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    if MARK not in value:
        return {key: from_json(one) for key, one in value.items()}
    return _KINDS[value[MARK]](value["value"])


def _key(value: Any) -> Any:
    return tuple(_key(one) for one in value) if isinstance(value, list) else value


_KINDS: dict[str, Callable[[Any], Any]] = {
    "pairs": lambda pairs: {_key(from_json(key)): from_json(one) for key, one in pairs},
    "set": lambda values: {_key(from_json(one)) for one in values},
    "float": float,
    "int": lambda text: int(text, 16),
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}
