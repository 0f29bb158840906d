"""YAML values as JSON, and nothing lost: a handler gets its configuration through the worker's setup, as JSON.

What JSON has no form for is written `{"//yaml": kind, "value": ...}`; the worker reads it back by
`trivium_worker.dialects.torchserve.yaml_values`. Bounded: aliases may come to much more than the file that they stand
in.
"""

import base64
import math
from datetime import date, datetime

MAX_VALUES = 100_000
MAX_CHARACTERS = 4 * 2**20
MAX_DEPTH = 100
MARK = "//yaml"


class TooMuch(Exception):
    """The document comes to more than is passed on."""


def as_json(value: object) -> object:
    """A value of `yaml.safe_load` as JSON values. Raises TooMuch."""
    return _Writing().write(value, 0)


class _Writing:
    def __init__(self) -> None:
        self._values = 0
        self._characters = 0

    def write(self, value: object, depth: int) -> object:
        self._values += 1
        self._characters += len(value) if isinstance(value, str | bytes) else 0
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS or depth > MAX_DEPTH:
            raise TooMuch(
                f"with its aliases written out it has more than {MAX_VALUES} values, {MAX_CHARACTERS} characters or "
                f"{MAX_DEPTH} levels"
            )
        if isinstance(value, dict):
            return self._mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            return [self.write(one, depth + 1) for one in value]
        if isinstance(value, set):
            return {MARK: "set", "value": [self.write(one, depth + 1) for one in value]}
        return _scalar(value)

    def _mapping(self, value: dict[object, object], depth: int) -> object:
        if all(isinstance(key, str) for key in value) and MARK not in value:
            return {str(key): self.write(one, depth) for key, one in value.items()}
        pairs = [[self.write(key, depth), self.write(one, depth)] for key, one in value.items()]
        return {MARK: "pairs", "value": pairs}


def _scalar(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return {MARK: "float", "value": str(value)}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return {MARK: "int", "value": hex(value)}
    if isinstance(value, bytes):
        return {MARK: "bytes", "value": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {MARK: "datetime", "value": value.isoformat()}
    if isinstance(value, date):
        return {MARK: "date", "value": value.isoformat()}
    return value
