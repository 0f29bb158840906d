"""TorchServe, as far as it differs from our own server: with the v2 protocol at /v2, or with its own there."""

from dataclasses import replace

from trivium.config.options import ServerConfig
from trivium.config.schema import OwnSection
from trivium.server_record import SCRAPED, ServerRecord, Switch
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.own_metrics import own_metrics
from trivium.servers.torchserve.words.meter import TorchServeMeter
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

OPEN_INFERENCE = "v2 of torchserve"
"""Its service for the v2 protocol, under its own name."""

METERED = "metrics of torchserve"
"""Its own way to be scraped, of a server that keeps its metrics in its words."""


def _scraped_by(states: ByType) -> str:
    return SCRAPED if states.find(TorchServeMeter) is None else METERED


def _offers_open_inference(config: ServerConfig) -> bool:
    return config.own.read(TorchServeConfig).open_inference


def _check(config: ServerConfig) -> None:
    if _offers_open_inference(config) and config.server.profile != COMMAND.name:
        raise ServeError(
            Code.INVALID,
            spoken(
                "--torchserve-open-inference has no effect here: under --profile "
                f"{config.server.profile} /v2 is not TorchServe's. Give --profile {COMMAND.name}, or leave it out."
            ),
        )


SERVER = ServerRecord(
    name="torchserve",
    note="beside it the v2 protocol at /v2",
    protocols=("v2", "openai", "torchserve", OPEN_INFERENCE, SCRAPED),
    withheld=("openai",),  # KServe's
    original="torchserve",
    is_patient=True,
    says_keep_alive=True,
    scrapes_apart=True,
    counts_answers=True,
    own_metrics=own_metrics,
    scraped_by=_scraped_by,
    sections={"torchserve": OwnSection(TorchServeConfig, "TorchServe's protocol")},
    check=_check,
)
COMMAND = replace(
    SERVER,
    name="torchserve-command",
    note="TorchServe's own /v2",
    protocols=("openai", "torchserve", "v2", OPEN_INFERENCE, SCRAPED),
    switches=(Switch(OPEN_INFERENCE, _offers_open_inference),),
)
