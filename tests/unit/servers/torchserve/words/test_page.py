"""The manual's page has a row for every key of model-config.yaml, and says of each what the code says."""

import re
from pathlib import Path

import pytest

from trivium.codecs.protobuf_schema import Field, fields_in
from trivium.servers.torchserve.wire.grpc import SCOPES
from trivium.servers.torchserve.wire.grpc_messages import INFERENCE_MESSAGES, MANAGEMENT_MESSAGES
from trivium.servers.torchserve.wire.management_routes import ENDPOINTS
from trivium.servers.torchserve.wire.routes import DESCRIPTIONS, OPEN_INFERENCE, PING, PREDICTIONS
from trivium.servers.torchserve.words.keys import ROWS
from trivium.servers.torchserve.words.manifest import BUILT_IN
from trivium.settings.setting import Support

PAGE = (Path(__file__).parents[5] / "docs" / "torchserve.md").read_text()
WORDS = {
    Support.YES: "yes",
    Support.PASSED_ON: "passed on",
    Support.REPORTED: "no, reported",
    Support.REFUSED: "no, refused",
}


@pytest.mark.parametrize("key", ROWS)
def test_a_row_for_every_key(key: str) -> None:
    assert f"\n| `{key}` | {WORDS[ROWS[key].support]}" in PAGE


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_built_in_handlers_are_named(name: str) -> None:
    assert f"`{name}`" in PAGE


ROUTES = sorted({row.path.removesuffix("/") for row in ENDPOINTS})
MESSAGES = {**INFERENCE_MESSAGES, **MANAGEMENT_MESSAGES}


@pytest.mark.parametrize("path", ROUTES)
def test_the_routes_of_management_are_named(path: str) -> None:
    shown = path.replace("/{version}", "[/VERSION]").replace("{model}", "MODEL")
    assert shown.replace("[/VERSION]/set", "/VERSION/set") in PAGE


CALLS = sorted(
    {
        re.sub(r"/?(\.\.\.)?/?$", "", route.path).replace("/{version}", "").replace("{model}", "MODEL")
        for route in (*DESCRIPTIONS, PING, *PREDICTIONS, *OPEN_INFERENCE)
        if "//" not in route.path
    }
)


@pytest.mark.parametrize("path", CALLS)
def test_the_routes_of_inference_are_named(path: str) -> None:
    start, _, end = path.rpartition("MODEL")
    assert f"`{path}" in PAGE or f"{path}`" in PAGE or (f"`{start}MODEL" in PAGE and f"`{end}`" in PAGE)


@pytest.mark.parametrize("method", sorted(SCOPES))
def test_every_rpc_is_named(method: str) -> None:
    service, name = method[1:].split("/")
    assert f"`{service}/" in PAGE
    assert f"/{name}`" in PAGE


@pytest.mark.parametrize("message", sorted(set(MESSAGES) - {"Status", "Any", "ErrorInfo"}))
def test_a_row_for_every_message_with_its_fields(message: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `") and f"`{message}`" in line]
    for field in fields_in(MESSAGES[message]):
        assert f"`{field.name}`" in row


@pytest.mark.parametrize(
    "field", list(fields_in(MANAGEMENT_MESSAGES["RegisterModelRequest"])), ids=lambda each: each.name
)
def test_every_parameter_of_a_registration_has_a_row(field: Field) -> None:
    rows = PAGE.partition("| parameter of a registration |")[2].partition("| parameter of scaling |")[0]
    assert f"`{field.name}`" in rows
