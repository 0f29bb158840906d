"""Reads the bodies that `mlflow models serve` takes: a table of named columns, or arrays. Pure.

Source: MLflow's documentation of its scoring protocol, and the answers that are recorded in tests/fixtures/mlflow.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError

SPLIT, RECORDS, INPUTS, INSTANCES = "dataframe_split", "dataframe_records", "inputs", "instances"
FORMS = (SPLIT, RECORDS, INPUTS, INSTANCES)
MOST_BYTES = 2**22
"""Bytes of a body that are read: reading them holds the interpreter."""

BAD_REQUEST, INVALID_VALUE = "BAD_REQUEST", "INVALID_PARAMETER_VALUE"
"""MLflow's words for a body that cannot be read, and for one that the model cannot take."""

_ONE_OF = f"a JSON object with exactly one of the fields {', '.join(FORMS)}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as columns, in the order of the sender, each with its name."""

    columns: Mapping[str, list[Any]]
    rows: int


@dataclass(frozen=True, slots=True)
class ListedArrays:
    """One array as lists of lists, or one by each name."""

    value: object


def refused(message: str, error_code: str = BAD_REQUEST) -> ServeError:
    """Return the error of a body, in MLflow's own form."""
    return ServeError(Code.INVALID, message, info=ErrorInfo.of(reasons.SCORING, error_code=error_code))


def read_csv(data: bytes | memoryview) -> Table:
    """Read lines of values behind a line of names. Values are as numbers where a whole column is."""
    try:
        lines = [line for line in csv.reader(io.StringIO(_text(data)), strict=True) if line]
    except csv.Error as error:
        raise refused(
            f"The CSV cannot be read: {error}. Send a line of names, then a line for each row."
        ) from error
    if not lines:
        raise refused("The CSV is empty. Send a line of names, then a line for each row.")
    names, *rows = lines
    _check_names(names)
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise refused(
                f"Line {number} of the CSV has {len(row)} values; the first line names {len(names)} columns."
            )
    return Table({name: _numbers([row[at] for row in rows]) for at, name in enumerate(names)}, len(rows))


def read_document(data: bytes | memoryview) -> object:
    """Read JSON. Raises INVALID for what is none."""
    text = _text(data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refused(f"The body is no JSON: {error}. Send {_ONE_OF}.") from error


def read_json(document: object) -> Table | ListedArrays:
    """Read one of the four forms. The body may have `params` as well, which no native model takes."""
    if not isinstance(document, dict):
        raise refused(f"The body is {_kind(document)}. Send {_ONE_OF}.")
    found = [one for one in FORMS if one in document]
    if len(found) != 1:
        told = ", ".join(found or list(map(str, document))) or "none"
        raise refused(f"The body has the fields {told[:200]}. Send {_ONE_OF}.")
    form, value = found[0], document[found[0]]
    others = [one for one in document if one not in (form, "params")]
    if form in (INPUTS, INSTANCES) and others:
        raise refused(
            f"Beside {form} the body has {', '.join(others)[:200]}. Send {form} alone, or with params."
        )
    if form == SPLIT:
        return _split(value)
    if form == RECORDS:
        return _records(value, RECORDS)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return _records(value, form)
    return ListedArrays(value)


def _split(value: object) -> Table:
    if not isinstance(value, dict):
        raise refused(f"{SPLIT} is {_kind(value)}. Send an object with columns and data.")
    rows = value.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise refused(f"{SPLIT} has no list of rows under data. Send data as a list of lists.")
    width = len(rows[0]) if rows else 0
    names = value.get("columns")
    if names is None:
        names = list(range(width))
    if not isinstance(names, list):
        raise refused(f"{SPLIT} has {_kind(names)} under columns. Send a list of names.")
    _check_names(list(map(str, names)))
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise refused(
                f"Row {number} of {SPLIT} has {len(row)} values, and there are {len(names)} columns."
            )
    return Table({str(name): [row[at] for row in rows] for at, name in enumerate(names)}, len(rows))


def _records(value: object, form: str) -> Table:
    """Make columns of rows; a column that a row does not have is missing in it."""
    if not isinstance(value, list):
        raise refused(f"{form} is {_kind(value)}. Send a list of objects, one for each row.")
    if all(isinstance(row, list) for row in value) and value:
        return _split({"data": value})
    if not all(isinstance(row, dict) for row in value):
        raise refused(
            f"{form} has rows that are no objects. Send an object with a value by each column's name."
        )
    names = dict.fromkeys(name for row in value for name in row)
    return Table({name: [row.get(name) for row in value] for name in names}, len(value))


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise refused(f"The column {twice!r:.80} comes twice. Send each column once.")


def _numbers(values: list[str]) -> list[Any]:
    """Return a column of texts as numbers, if all of them are; an empty one is missing."""
    try:
        return [float(one) if one.strip() else None for one in values]
    except ValueError:
        return [one if one else None for one in values]


def _text(data: bytes | memoryview) -> str:
    if len(data) > MOST_BYTES:
        raise refused(
            f"The body has {len(data)} bytes; {MOST_BYTES} are read at most. Send fewer rows, or the v2 protocol's "
            "binary data."
        )
    try:
        return bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(f"The body is no UTF-8: {error.reason} at byte {error.start}.") from error


def _kind(value: object) -> str:
    kinds = {list: "a list", dict: "an object", str: "a text", type(None): "null", bool: "true or false"}
    return kinds.get(type(value), "a number")
