"""DJL Serving, as far as it differs from our own server."""

from trivium.config.schema import OwnSection
from trivium.protocols.djl.config import DjlConfig
from trivium.protocols.djl.own_metrics import own_metrics
from trivium.server_record import SCRAPED, ServerRecord

SERVER = ServerRecord(
    name="djl",
    protocols=("v2", "openai", "djl", SCRAPED),
    original="djl",
    not_ready=424,
    takes_only=True,
    own_metrics=own_metrics,
    sections={"djl": OwnSection(DjlConfig, "DJL's protocol")},
)
