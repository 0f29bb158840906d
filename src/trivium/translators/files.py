"""Reads the files of a model that a translator needs: bounded, in its folder, and with errors that name the file."""

import json
from pathlib import Path, PurePath
from typing import Any

from trivium.files import open_file
from trivium.types.errors import Code, ServeError, said_by

MOST_BYTES = 256 * 2**20
"""Bytes of the largest file that is read; tokenizers with large vocabularies have some ten million."""


_WHY = {FileNotFoundError: "is not there", IsADirectoryError: "is no file"}


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file inside the model's folder. LOAD_FAILED for a name that leads out of it."""
    parts = PurePath(name)
    if not name or "\0" in name or parts.is_absolute() or ".." in parts.parts:
        hint = "Put the file into the folder and name it from there."
        raise refusal(repr(name), "names no file inside the model's folder", hint)
    return folder / parts


def read_file(folder: Path, name: str) -> bytes:
    """Read a file of the model. LOAD_FAILED where there is none, or a larger one than any such file is."""
    path = file_in(folder, name)
    try:
        with open_file(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        why = _WHY.get(type(error)) or f"cannot be read: {said_by(error)}"
        raise refusal(name, why, f"Put it into the model's folder, {folder.name}.") from error
    if len(data) > MOST_BYTES:
        raise refusal(name, f"has more than {MOST_BYTES} bytes", "Is it the right file?")
    return data


def text_of(name: str, data: bytes) -> str:
    """Decode a file's UTF-8, without the mark that some editors put at its beginning. LOAD_FAILED with the line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refusal(f"{name}:{line}", "is no UTF-8 text", "Save the file as UTF-8.") from error


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Read a file that holds a JSON object."""
    text = text_of(name, read_file(folder, name))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"{name}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else name
        raise refusal(where, f"is no JSON: {error}", "Write the file anew.") from error
    if not isinstance(document, dict):
        raise refusal(name, f"holds a {type(document).__name__}, not an object", "Write the file anew.")
    return document


def refusal(name: str, fault: str, hint: str) -> ServeError:
    """Return the error about a file of the model."""
    return ServeError(Code.LOAD_FAILED, f"{name} {fault}. {hint}")
