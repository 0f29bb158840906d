"""Requests to paste, one for each model that is served, as commands for a shell."""

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from trivium import example_requests
from trivium.catalogue import TRANSLATORS
from trivium.commands.visible_console import print_sentence
from trivium.example_requests import AT_PREDICTIONS
from trivium.server_record import ServerRecord
from trivium.types.console_facts import ExampleRequest
from trivium.types.spec import ModelSpec

_FILE, _OWN_FILE = " -T FILE", ", with your own for FILE"
_NEXT = (
    "Next: paste a request into another terminal{file}; `trivium check PATH` explains how a model is served, "
    "`trivium serve --help` what can be set."
)


def print_requests(console: Console, url: str, specs: Sequence[ModelSpec], record: ServerRecord) -> None:
    """Print a request per model that a client of this server would send, and what to do next."""
    requests = [request for spec in specs if (request := example_request(spec, url, record))]
    if record.original in AT_PREDICTIONS and len(specs) == 1:  # the route that needs no name
        requests.append(command(example_requests.prediction(specs[0], "/invocations", "POST"), url))
    for request in requests:
        console.print(request, soft_wrap=True, markup=False)
    if requests:
        with_file = any(_FILE in request for request in requests)
        print_sentence(console, Text(_NEXT.format(file=_OWN_FILE if with_file else "")))


def example_request(spec: ModelSpec, url: str, record: ServerRecord) -> str:
    """Make a curl command for one model, see `trivium.example_requests`. Empty where this server speaks no protocol
    that we could write.
    """
    example = example_requests.example_request(spec, record, TRANSLATORS)
    return "" if example is None else command(example, url)


def command(example: ExampleRequest, url: str) -> str:
    """Write a request as a command of curl."""
    words = ["curl -s"]
    if example.content_type:
        words.append(f"-H 'Content-Type: {example.content_type}'")
    is_file = not example.body and example.method != "GET"
    if is_file and not example.file and example.method == "POST":  # with a file curl would choose PUT
        words.append("-X POST")
    if example.accept:
        words.append(f"-H 'Accept: {example.accept}'")
    if is_file and not example.file:
        words.append(_FILE.strip())
    elif is_file:
        words.append(f"-T {shlex.quote(example.file)}")
    words.append(f"{url}{example.path}")
    if example.body:
        words.append(f"-d {shlex.quote(example.body)}")
    return " ".join(words)
