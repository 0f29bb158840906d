"""Loads with a configuration sent along, or with files too: a model folder laid out for one load.

Source: spec sheet `triton`, section 4.9. The sent configuration is JSON of the form that the server prints itself; it
becomes the folder's config.pbtxt. What is not replaced is linked to where it lies.
"""

import errno
import json
import os
import posixpath
import shutil
from pathlib import Path

from google.protobuf import json_format, text_format
from google.protobuf.message import Message

from trivium.servers.triton.repository.folder import CONFIG, CONFIGS, is_model
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Load
from trivium.wires.v2.descriptor import new_config

_LONGEST_NAME = 255
_MOST_PARTS = 32
"""Folders within folders of a sent file's path, and its name."""


def lay_out(load: Load, source: Path, into: Path) -> Path:
    """The folder of the model, inside `into`. `source` is the repository, or the model's own folder.

    INVALID for a configuration that is none, and for names that lead out of the folder.
    """
    _check_name(load.model, load.model)
    folder = into / load.model
    folder.mkdir()
    config = None if load.config is None else config_text(load.config)
    if load.files:
        for name, data in load.files.items():
            _write(folder, name, data)
    else:
        _link(folder, source if _is_the_model(source, load.model) else source / load.model)
    if config is not None:
        _forget_others(folder)
        (folder / CONFIG).write_text(config, encoding="utf-8")
    return folder


def config_text(document: str) -> str:
    """A configuration in JSON as the text of a config.pbtxt. Numbers may be strings; INVALID says what is wrong."""
    try:
        fields = json.loads(document)
        if not isinstance(fields, dict):
            raise json_format.ParseError("it is no object")
        message = json_format.ParseDict(fields, _new_message())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise ServeError(
            Code.INVALID,
            f"The load parameter 'config' is no model configuration in JSON: {str(error)[:500]}. Send an object as "
            "GET /v2/models/MODEL/config prints it.",
        ) from error
    return text_format.MessageToString(message, as_utf8=True)


def _new_message() -> Message:
    message = new_config()
    assert isinstance(message, Message)
    return message


def _is_the_model(source: Path, model: str) -> bool:
    return source.resolve().name == model and is_model(source)


def _link(folder: Path, original: Path) -> None:
    try:
        entries = [entry for entry in original.iterdir() if entry.name != CONFIG]
    except OSError as error:
        raise ServeError(
            Code.NOT_FOUND,
            f"There is no folder of model '{folder.name}' whose configuration could be replaced: {error.strerror}. "
            "Send its files, too, or correct the name.",
        ) from error
    for entry in entries:
        (folder / entry.name).symlink_to(entry.resolve(), entry.is_dir())


def _forget_others(folder: Path) -> None:
    """Remove every configuration of the folder, preferred ones too: the one that was sent goes before them."""
    others = folder / CONFIGS
    if others.is_symlink():
        others.unlink()
    else:
        shutil.rmtree(others, ignore_errors=True)


def _write(folder: Path, name: str, data: bytes) -> None:
    """`name` begins at the model's folder, with or without a slash, and of two for one file the later counts."""
    parts = posixpath.normpath(name.lstrip("/")).split("/")
    if len(parts) > _MOST_PARTS:
        raise _unfit(name, f"has {len(parts)} parts, and a path may have {_MOST_PARTS}")
    for part in parts:
        _check_name(part, name)
    if name.endswith("/"):
        raise _unfit(name, "names a folder")
    path = folder.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise _unfit(name, "is there twice, as a file and as a folder") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise _unfit(name, "is longer than the system takes") from error
        raise


def _check_name(part: str, whole: str) -> None:
    """A name of one file or folder, which stays where it is."""
    is_plain = part not in ("", ".", "..") and "/" not in part and "\0" not in part
    try:
        is_plain = is_plain and len(os.fsencode(part)) <= _LONGEST_NAME
    except UnicodeError:
        is_plain = False
    if not is_plain:
        raise _unfit(whole, "is no path inside a model's folder")


def _unfit(name: str, found: str) -> ServeError:
    return ServeError(Code.INVALID, f"{name[:80]!r} {found}. Name files like 1/model.onnx.")
