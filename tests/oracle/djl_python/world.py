"""The names that the expressions use, and a description of what they give that JSON can hold.

The package under test is the `djl_python` that can be imported. What differs from run to run is described by a word:
the folder, a session's id, a time, the name of a module that a loader made up.
"""

import asyncio
import contextlib
import importlib
import inspect
import io
import json
import logging
import math
import os
import re
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

_VARYING = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\bmodel_[0-9a-f]{8}\b"), "MODULE"),
    (re.compile(r" at 0x[0-9a-f]+"), ""),
)


def outcome(expression: str) -> Any:
    """Evaluate an expression in an empty folder; describe what it gives, or the exception."""
    with _elsewhere() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = described(eval(expression, _names(folder)))  # noqa: S307 - of the tables here
        except (Exception, SystemExit) as error:
            found = {"raises": type(error).__name__, "text": str(error)}
        return _steady(found, folder)


@contextlib.contextmanager
def _elsewhere() -> Iterator[str]:
    """An empty folder as the working directory; what an expression changes in the process is put back."""
    here, path, modules, environment = os.getcwd(), list(sys.path), set(sys.modules), dict(os.environ)
    handlers, mask = list(logging.getLogger().handlers), os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        os.chdir(folder)
        try:
            yield os.path.realpath(folder)
        finally:
            os.chdir(here)
            os.umask(mask)
            sys.path[:] = path
            os.environ.clear()
            os.environ.update(environment)
            logging.getLogger().handlers[:] = handlers
            for name in set(sys.modules) - modules:
                if name == "model" or name.startswith(("model_", "ns_")):
                    del sys.modules[name]


def _steady(found: Any, folder: str) -> Any:
    text = json.dumps(found, ensure_ascii=False).replace(folder, "FOLDER")
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return json.loads(text)


def described(value: Any) -> Any:
    """A value as JSON: plain ones as they are, others as an object whose key says what they are."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return {"float": repr(value)}
    if isinstance(value, bytes | bytearray):  # which of them, the calls with `type` in them ask
        return {
            "bytes": value.decode("utf-8")
            if value.isascii() and value.decode().isprintable()
            else value.hex()
        }
    if isinstance(value, np.ndarray):
        return {"array": value.dtype.name, "shape": list(value.shape), "values": repr(value.tolist())}
    if isinstance(value, np.generic):
        return {"scalar": value.dtype.name, "value": repr(value.item())}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [described(each) for each in value]}
    if isinstance(value, Mapping):
        return {"dict": [[described(key), described(each)] for key, each in value.items()]}
    return _described_object(value)


def _described_object(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "PairList":
        return {
            kind: [
                [described(key), described(each)] for key, each in zip(value.keys, value.values, strict=True)
            ]
        }
    if kind == "Input":
        parts = (value.function_name, value.properties, value.content)
        return {kind: [described(part) for part in parts]}
    if kind == "Output":
        parts = (value.code, value.message, value.properties, value.content, value.stream_content is not None)
        return {kind: [described(part) for part in parts]}
    if hasattr(value, "getpixel"):
        return {"image": [value.mode, *value.size]}
    return {"object": getattr(value, "__qualname__", kind)}


def _names(folder: str) -> dict[str, Any]:
    from djl_python import (
        Input,
        Output,
        PairList,
        Session,
        SessionManager,
        encode_decode,
        np_util,
        service_loader,
        session_utils,
        test_model,
    )

    modules = (encode_decode, np_util, service_loader, session_utils, test_model)
    found = {name: value for module in modules for name, value in vars(module).items() if name[0] != "_"}
    own = _Helpers(folder, Input, Output, PairList, SessionManager)
    found |= {name: getattr(own, name) for name in dir(own) if name[0] != "_"}
    found |= {
        "session_of": session_utils.get_session,
        "session_formatter": session_utils.session_non_stream_output_formatter,
        "HEADER": session_utils.HEADER_SAGEMAKER_SESSION_ID,
    }
    return found | {
        "np": np,
        "math": math,
        "os": os,
        "sys": sys,
        "time": time,
        "date": date,
        "datetime": datetime,
        "folder": folder,
        "Input": Input,
        "Output": Output,
        "PairList": PairList,
        "Session": Session,
        "SessionManager": SessionManager,
    }


_MODEL = """
from djl_python import Output

def handle(inputs):
    return Output().add(str(sorted(inputs.properties))).add(inputs.get_as_string() or b"")

def fails(inputs):
    raise ValueError(inputs.get_property("a"))

def nothing(inputs):
    return None

def marked(inputs):
    pass

marked.is_marked = True
value = 3
"""


class _Helpers:
    """What expressions would otherwise need statements for."""

    def __init__(self, folder: str, request: Any, answer: Any, pair_list: Any, sessions: Any) -> None:
        self._folder = folder
        self._request, self._answer, self._pairs, self._sessions = request, answer, pair_list, sessions

    def made(self, content: Any = (), **properties: Any) -> Any:
        """A request with pairs and properties; `content_type` is content-type."""
        request = self._request()
        for key, value in properties.items():
            request.properties["content-type" if key == "content_type" else key] = value
        for key, value in content:
            request.content.add(key, bytearray(value))
        return request

    def pairs(self, *given: Any) -> Any:
        """A PairList of these pairs."""
        found = self._pairs()
        for key, value in given:
            found.add(key, value)
        return found

    def named(self, request: Any, function: str) -> Any:
        """The request for a function of the handler."""
        request.function_name = function
        return request

    def png(self, mode: str = "L", size: tuple[int, int] = (3, 2)) -> bytes:
        """A picture."""
        from PIL import Image

        file = io.BytesIO()
        Image.new(mode, size).save(file, "PNG")
        return file.getvalue()

    def npz(self, *arrays: Any, **named: Any) -> bytes:
        """An archive that numpy writes."""
        file = io.BytesIO()
        np.savez(file, *arrays, **named)
        return file.getvalue()

    def npy(self, array: Any) -> bytes:
        """One array as numpy writes it."""
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    def load(self, archive: Any) -> list[Any]:
        """The arrays of an archive."""
        return list(np.load(io.BytesIO(archive)).values())

    def ndlist(self, *arrays: Any) -> bytes:
        """An NDList, made without the package."""
        return struct.pack(">i", len(arrays)) + b"".join(
            _framed(str(array.dtype).upper(), "<", array.tobytes(), array.shape) for array in arrays
        )

    def array_of(self, word: str, order: str, data: bytes, **about: Any) -> bytes:
        """An NDList of one array of one element."""
        return struct.pack(">i", 1) + _framed(word, order, data, (1,), **about)

    def write(self, **files: str) -> None:
        """Put files into the folder."""
        for name, text in files.items():
            (Path(self._folder) / name).write_text(text)

    def write_model(self) -> None:
        """Put a model.py into the folder."""
        self.write(**{"model.py": _MODEL})

    def manager(self, **properties: Any) -> Any:
        """A SessionManager of a folder inside the folder."""
        return self._sessions({"sessions_path": os.path.join(self._folder, "sessions"), **properties})

    def put(self, array: Any, value: Any) -> None:
        """Fill an array."""
        array[...] = value

    def module(self, **names: Any) -> ModuleType:
        """A module with these names."""
        found = ModuleType("m")
        vars(found).update(names)
        return found

    def marked(self, attribute: str, name: str = "f") -> Callable[[], None]:
        """A function that has an attribute."""

        def function() -> None:
            pass

        function.__name__ = name
        setattr(function, attribute, True)
        return function

    def later(self, value: Any) -> Callable[[Any], Any]:
        """An async function that returns the value."""

        async def function(inputs: Any) -> Any:
            return value

        return function

    def wait(self, awaitable: Any) -> Any:
        """What an async function gives."""

        async def main() -> Any:
            return await awaitable

        return asyncio.run(main())

    def same_folder(self, one: str, other: str) -> bool:
        """Are these one folder?"""
        return os.path.realpath(one) == os.path.realpath(other)

    def with_environment(self, names: dict[str, str], function: Any, *arguments: Any) -> Any:
        """Call a function while the environment has these variables."""
        os.environ.update(names)
        return function(*arguments)

    def bytes_of(self, value: Any) -> bytes:
        """Text or bytes as bytes."""
        return value.encode() if isinstance(value, str) else bytes(value)

    def ran(self, *words: str) -> Any:
        """What `test_model` prints with these words on its command line."""
        from djl_python import test_model

        sys.argv, before = ["djl-test-model", *words], sys.argv
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                test_model.run()
            return printed.getvalue()
        finally:
            sys.argv = before


def _framed(
    word: str,
    order: str,
    data: bytes,
    shape: tuple[int, ...],
    magic: str = "NDAR",
    version: int = 3,
    name: str = "",
    sparse: str = "default",
) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    made = (
        text(magic)
        + struct.pack(">i", version)
        + (b"\1" + text(name) if name else b"\0")
        + text(sparse)
        + text(word)
    )
    made += struct.pack(f">i{len(shape)}qi", len(shape), *shape, len(shape)) + b"\0?" * len(shape)
    return made + (order.encode() if version > 2 else b"") + struct.pack(">i", len(data)) + data


def signature(name: str) -> Any:
    """The parameters of what has this name in the package: name, kind, default; None where Python says none."""
    first, *rest = name.split(".")
    package = importlib.import_module("djl_python")
    found = (
        getattr(package, first, None)
        if first[0].isupper()
        else importlib.import_module(f"djl_python.{first}")
    )
    for part in rest:
        found = getattr(found, part)
    return [
        [each.name, each.kind.name, _default(each.default)]
        for each in inspect.signature(found).parameters.values()
    ]


def _default(value: Any) -> Any:
    return "" if value is inspect.Parameter.empty else "a function" if callable(value) else repr(value)
