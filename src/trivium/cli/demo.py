"""`trivium demo`: serve the shipped digit classifier, and print requests that show it at work."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console

from trivium.cli.demo_requests import print_language_model
from trivium.cli.options import ServerCommand, configure, server_options
from trivium.cli.serve import serve
from trivium.commands.stopping import keep_hangups
from trivium.config.options import ServerConfig
from trivium.demo import language_model, places
from trivium.types.schedules import Graph
from trivium.types.spec import ModelSpec

PARAMETERS = "hf.slots=8,hf.max_context=2048"


@click.command("demo", cls=ServerCommand)
@click.option(
    "--llm", is_flag=True, help="Serve a small language model in place of the classifier; fetched once."
)
@server_options
def command(config_file: Path | None, llm: bool, **flags: Any) -> None:
    """Serve a classifier of handwritten digits until Ctrl-C: as a Triton repository, as a bare file, behind a handler
    of each of the three dialects, and, with Pillow installed, in a workflow with a translator of pictures.
    """
    keep_hangups()
    if llm:
        _serve_language_model(configure(config_file, flags))
        return
    with TemporaryDirectory(prefix="trivium-demo-") as folder:
        made = [places.workflow(Path(folder))] if find_spec("PIL") else []
        serve(
            [places.models(), places.bare_model(), *places.handlers(), *made],
            configure(config_file, flags),
            _print_requests,
        )


def _serve_language_model(config: ServerConfig) -> None:
    """Serve the language model, with less memory for it than its context would take unless somebody says how much."""
    say = partial(print, file=sys.stderr, flush=True)
    try:
        folder = language_model.prepared(language_model.cache(os.environ), say)
    except (language_model.DemoModelUnavailable, OSError) as error:
        raise click.ClickException(str(error)) from error
    if not config.models.engine_parameters:
        config = replace(config, models=replace(config.models, engine_parameters=PARAMETERS))
    serve([folder], config, partial(print_language_model, profile=config.server.profile))


def _print_requests(console: Console, url: str, specs: Sequence[ModelSpec]) -> None:
    """Requests to paste into another terminal: by the client example, and by curl."""
    say = console.print
    pictures = places.pictures()
    classify = f"{sys.executable} -m trivium.demo.classify"
    say("\nIn another terminal, classify pictures that the model has never seen:\n")
    for spec in specs:
        if spec.handler is not None or spec.translator is not None or not spec.inputs:
            continue
        say(f"{classify} {pictures[7]} --url {url} --model {spec.name}", soft_wrap=True, markup=False)
    say("\nThe models with a handler take the picture itself, whichever server they were written for:\n")
    for spec in specs:
        if spec.handler is not None and "workflow_function" not in spec.handler.settings:
            say(f"curl -s -T {pictures[7]} {url}/predictions/{spec.name}", soft_wrap=True, markup=False)
    for spec in specs:
        if spec.translator is not None:
            say("\nA translator takes the picture to a model without a line of code:\n")
        elif isinstance(spec.scheduling, Graph):
            say("\nA workflow asks two models, and a function holds their answers together:\n")
        else:
            continue
        say(f"curl -s -T {pictures[7]} {url}/predictions/{spec.name}", soft_wrap=True, markup=False)
    say(
        "\nThe network by the v2 protocol with curl; the answer holds ten probabilities, the digit has the greatest:\n"
    )
    body = f"{classify} {pictures[3]} --json"
    say(f"{body} | curl -s {url}/v2/models/digits/infer -d @-", soft_wrap=True, markup=False)
    say(f"curl -s {url}/v2/models/digits/stats\n", soft_wrap=True, markup=False)
