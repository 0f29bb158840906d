"""Has `torch.compile` compile a model before requests come, and keep what it has made for the next start.

Source: `pt2` of model-config.yaml, spec sheet `torchserve`, section 8.2; `trivium_warm_up` is our own key: what a model
takes stands in no file of an eager model. The first call of a compiled model takes up to a minute, and so does the
second batch size; later sizes need no compilation.
"""

import contextlib
import logging
import os
import shutil
import time
from collections.abc import MutableMapping
from typing import Any

from trivium_worker.wire.owned import COMPILE_CACHE, judge_owner
from ts.utils.util import check_valid_pt2_backend

INDUCTOR_CACHE = "TORCHINDUCTOR_CACHE_DIR"
WARM_UP = "trivium_warm_up"
_FORM = (
    f"{WARM_UP} in model-config.yaml: expected {{shape: [3, 224, 224], datatype: float32, batch_sizes: [1, 8]}}: the "
    "shape of one row, or of several inputs a list of such shapes; the last two may be left out"
)
_MOST_SIZES = 64
MOST_KEPT = 4 * 2**30
"""Bytes that are kept of what was compiled; what was used least recently goes first, when a worker starts."""

_IN_USE = 3600.0
"""Seconds for which a file stays after its last use: whoever compiles beside us may need it."""


def compiled(model: Any, settings: "dict[str, Any]", device: str) -> Any:
    """The model under `torch.compile`, where `pt2` asks for a known backend; what keeps it from that only warns."""
    options = compile_options(settings.get("pt2"))
    if options is None:
        return model
    import torch

    if isinstance(model, torch.jit.ScriptModule):
        logging.warning(
            "the model is not compiled: it is TorchScript, which torch.compile does not take. Serve the eager model: "
            "name its class by modelFile in the manifest, and its weights by serializedFile"
        )
        return model
    if options.get("backend", "inductor") == "inductor" and device == "cpu" and not has_compiler(os.environ):
        logging.warning(
            "the model is not compiled: inductor needs a C++ compiler on the CPU, and there is none. Install g++, or "
            "name one by the environment variable CXX"
        )
        return model
    keep(os.environ)
    try:
        return torch.compile(model, **options)
    except Exception as error:
        logging.warning("the model is not compiled (pt2 asks for %s): %s", options, error)
        return model


def compile_options(pt2: Any) -> "dict[str, Any] | None":
    """The arguments of `torch.compile` that `pt2` stands for: a backend, arguments, or `{compile: {enable: true}}`."""
    options: dict[str, Any] | None = None
    if isinstance(pt2, str):
        options = {"backend": pt2}
    elif isinstance(pt2, dict) and isinstance(pt2.get("compile"), dict):
        options = dict(pt2["compile"])
        if not options.pop("enable", False):
            return None
    elif isinstance(pt2, dict) and "backend" in pt2:
        options = dict(pt2)
    if options is not None and not check_valid_pt2_backend(options.get("backend", "inductor")):
        logging.warning("the model is not compiled: pt2 asks for the unknown backend %r", options["backend"])
        return None
    return options


def has_compiler(variables: "MutableMapping[str, str]") -> bool:
    """Is there the C++ compiler that inductor would start?"""
    named = variables.get("CXX")
    return any(shutil.which(name) for name in ([named] if named else ["g++", "clang++"]))


def keep(variables: "MutableMapping[str, str]") -> None:
    """Have inductor keep what it compiles in the folder that the server names, which outlives a restart and is this
    user's alone: it holds code. A folder that somebody has chosen stays; one that cannot be used only warns.
    """
    folder = variables.get(COMPILE_CACHE)
    if not folder or variables.get(INDUCTOR_CACHE):
        return
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        judge_owner(folder)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} cannot be written to")
    except OSError as error:
        logging.warning(
            "what torch.compile makes is not kept over a restart: %s. Name a folder of this user by %s",
            error,
            INDUCTOR_CACHE,
        )
        return
    trim(folder, MOST_KEPT)
    variables[INDUCTOR_CACHE] = folder


def trim(folder: str, most: int) -> None:
    """Remove files of the folder that were used least recently, until they have at most so many bytes. Inductor finds
    each by its content, and makes anew what is not there.
    """
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                told = os.lstat(path)
                found.append((max(told.st_atime, told.st_mtime), told.st_size, path))
    for path in surplus(found, most, time.time()):
        with contextlib.suppress(OSError):
            os.remove(path)


def surplus(found: "list[tuple[float, int, str]]", most: int, now: float) -> "list[str]":
    """The paths beyond a bound in bytes, least recently used first. A file is its last use, size and path."""
    held, chosen = sum(size for _, size, _ in found), []
    for used, size, path in sorted(found):
        if held <= most or used > now - _IN_USE:
            break
        held -= size
        chosen.append(path)
    return chosen


def warm_up(model: Any, settings: "dict[str, Any]", device: Any) -> None:
    """Run the model on zeros with each batch size that model-config.yaml names, so that no request waits for a
    compilation. ValueError for a wrong value; RuntimeError with the model's words where it does not take such inputs.
    """
    if WARM_UP not in settings:
        return
    import torch

    shapes, datatype, sizes = read_warm_up(settings[WARM_UP], settings.get("batchSize", 1))
    dtype = getattr(torch, datatype, None)
    if not isinstance(dtype, torch.dtype) or not callable(model):
        raise ValueError(
            f"{_FORM}; a datatype of torch's, and a model of torch's. Found: {settings[WARM_UP]!r}"
        )
    for size in sizes:
        began = time.monotonic()
        try:
            with torch.inference_mode():
                model(*(torch.zeros((size, *shape), dtype=dtype, device=device) for shape in shapes))
        except Exception as error:
            raise RuntimeError(
                f"the model does not take {WARM_UP} of model-config.yaml, a batch of {size} of {shapes}: {error}"
            ) from error
        logging.info("the model is warm for batches of %d after %.1f s", size, time.monotonic() - began)


def read_warm_up(value: Any, batch_size: Any) -> "tuple[list[list[int]], str, list[int]]":
    """Shapes of one row, a datatype, and batch sizes: 1 and the model's own where none are named. ValueError for
    anything else.
    """
    given = value if isinstance(value, dict) else {}
    shape: Any = given.get("shape")
    datatype: Any = given.get("datatype", "float32")
    largest = batch_size if _is_size(batch_size) else 1
    sizes: Any = given.get("batch_sizes", sorted({1, largest}))
    shapes: list[Any] = shape if isinstance(shape, list) and shape and isinstance(shape[0], list) else [shape]
    is_good = (
        given.keys() <= {"shape", "datatype", "batch_sizes"}
        and all(isinstance(one, list) and all(map(_is_size, one)) for one in shapes)
        and isinstance(datatype, str)
        and isinstance(sizes, list)
        and 0 < len(sizes) <= _MOST_SIZES
        and all(map(_is_size, sizes))
    )
    if not is_good:
        raise ValueError(f"{_FORM}. Found: {value!r}")
    return shapes, datatype, sizes


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**31
