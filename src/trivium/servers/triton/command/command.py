"""`trivium tritonserver`: serve Triton's model repositories under the original's own flags.

Reads the command line and sets the process up; all else is in the modules beside it.
"""

from typing import Any

import click

from trivium.app import Catalogue
from trivium.commands.process import run
from trivium.commands.stopping import keep_hangups
from trivium.servers.triton.command.life import live
from trivium.servers.triton.command.log_lines import set_up
from trivium.servers.triton.command.settings import OWN_WORDS, settle
from trivium.servers.triton.command.usage import Usage, given, options, refuse
from trivium.types.errors import ServeError
from trivium.types.spoken import speak


@click.pass_obj
def _serve(catalogue: Catalogue, /, **words: Any) -> None:
    keep_hangups()
    speak(OWN_WORDS)
    try:
        settings = settle(catalogue, given(words))
    except ServeError as error:
        refuse(error.message, click.get_current_context())
    try:
        set_up(settings.log)
    except OSError as error:
        raise click.ClickException(f"Cannot log to {error.filename}: {error.strerror}.") from error
    run(live(settings), is_debuggable=settings.config.security.debuggable)


command = Usage(
    "tritonserver",
    params=options(),
    callback=_serve,
    help="Serve Triton's model repositories: HTTP on port 8000, gRPC on 8001, metrics on 8002.",
    context_settings={"help_option_names": ["--help"]},
)
