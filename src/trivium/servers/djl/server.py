"""DJL Serving, as far as it differs from our own server."""

from trivium.config.schema import OwnSection
from trivium.server_record import SCRAPED, ServerRecord
from trivium.servers.djl.wire.config import DjlConfig
from trivium.servers.djl.wire.own_metrics import own_metrics

SERVER = ServerRecord(
    name="djl",
    protocols=("v2", "openai", "djl", SCRAPED),
    withheld=("openai",),  # KServe's
    original="djl",
    not_ready=424,
    own_metrics=own_metrics,
    sections={"djl": OwnSection(DjlConfig, "DJL's protocol")},
)
