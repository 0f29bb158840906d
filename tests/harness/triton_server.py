"""A server over a Triton repository, with the built-in identity and real worker processes, without protocols."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.engines.identity import ENGINE as IDENTITY
from trivium.engines.python import PythonEngine
from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.call_texts import translate_error
from trivium.translators.engine import engine_finder
from trivium.types.errors import Code, ServeError
from trivium.types.payload import PayloadKind
from trivium.types.spec import ModelFacts

PYTHON = PythonEngine("triton", frozenset({PayloadKind.TENSORS}), sys.executable, os.environ, translate_error)


async def no_facts(spec):
    return ModelFacts((), (), True)


@asynccontextmanager
async def serving(path: Path):
    """The server; LOAD_FAILED with the reasons of all models that did not load."""
    engines = {engine.name: engine for engine in (IDENTITY, PYTHON)}
    async with Server([FORMAT], engine_finder(engines, {}), CoreServices(no_facts)) as server:
        server.add(path)
        listing = await server.start()
        reasons = [
            f"Model '{row.model}' did not load. {row.reason}" for row in listing.versions if row.reason
        ]
        if reasons:
            raise ServeError(Code.LOAD_FAILED, " ".join(reasons))
        yield server
