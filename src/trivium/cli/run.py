"""`trivium run PATH...`: serve a language model, and talk to it; with the conversation the server ends, too."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from trivium.cli.options import PATHS, ServerCommand, configure, server_options
from trivium.cli.serve import serve
from trivium.types.sources import Place
from trivium.types.spec import ModelSpec


@click.command("run", cls=ServerCommand)
@PATHS
@server_options
def command(paths: tuple[Place, ...], config_file: Path | None, **flags: Any) -> None:
    """Serve model folders and files as `trivium serve` does, and talk to the language model among them."""
    chats: list[asyncio.Task[None]] = []

    def talk(console: Console, url: str, specs: Sequence[ModelSpec]) -> None:
        """Begin the conversation, a process of its own in this terminal."""
        chats.append(asyncio.ensure_future(_talk(url)))

    serve(paths, configure(config_file, flags), talk)
    if chats and chats[0].done() and not chats[0].cancelled():
        chats[0].result()


async def _talk(url: str) -> None:
    """Wait for the end of the conversation, then have the server end. Ctrl-C is for the conversation meanwhile."""
    loop = asyncio.get_running_loop()
    loop.remove_signal_handler(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trivium.cli.main", "chat", "--url", url
        )
        await child.wait()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
