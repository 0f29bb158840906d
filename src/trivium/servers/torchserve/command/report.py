"""The lines by which a TorchServe tells of its configuration when it starts."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from trivium.machine.control_group import usable_processors
from trivium.profiles import GRPC, GRPC_MANAGEMENT, HTTP, MANAGEMENT, METRICS
from trivium.servers.torchserve.command.settings import TorchServeSettings
from trivium.servers.torchserve.command.token_check import KEY_FILE
from trivium.servers.torchserve.words.original import SERVER_VERSION

READY_LINE = "Model server started."
APIS = {
    HTTP: "Inference",
    MANAGEMENT: "Management",
    METRICS: "Metrics",
    GRPC: "gRPC inference",
    GRPC_MANAGEMENT: "gRPC management",
}
"""The word for each listener."""


def summary(settings: TorchServeSettings, gpus: int, file: str) -> str:
    """Return the record of many lines that is written before anything is loaded."""
    return "\n".join(("", *_lines(settings, gpus, file)))


def _lines(settings: TorchServeSettings, gpus: int, file: str) -> Iterator[str]:
    text = settings.sources.text
    yield f"Torchserve version: {SERVER_VERSION}, by trivium {settings.catalogue.version}"
    yield f"Current directory: {Path.cwd()}"
    yield f"Temp directory: {tempfile.gettempdir()}"
    yield f"Number of GPUs: {gpus}"
    yield f"Number of CPUs: {usable_processors()}"
    yield f"Config file: {file or 'N/A'}"
    for role in ("inference", "management", "metrics"):
        yield f"{role.capitalize()} address: {text(f'{role}_address')}"
    yield f"Model Store: {settings.store.absolute()}"
    yield f"Initial Models: {text('load_models') or 'N/A'}"
    yield f"Metrics mode: {text('metrics_mode')}"
    yield f"Default workers per model: {settings.rules.under['minWorkers'].value}"
    yield f"Blacklist Regex: {text('blacklist_env_vars') or 'N/A'}"
    yield f"Maximum Request Size: {text('max_request_size')}"
    yield f"Limit Maximum Image Pixels: {text('limit_max_image_pixels')}"
    yield f"Allowed Urls: [{text('allowed_urls')}]"
    yield f"Enable model API: {text('enable_model_api')}"
    yield from _keys(settings)


def _keys(settings: TorchServeSettings) -> Iterator[str]:
    """Say whether requests need a key, how one is sent, and how the check is switched off."""
    if settings.token_seconds is None:
        yield "Token authorization: off"
        return
    file, address = Path.cwd() / KEY_FILE, settings.sources.text("inference_address")
    read = f"import json; print(json.load(open({str(file)!r}))['inference']['key'])"
    is_unsure = "-k " if address.startswith("https") else ""
    yield "Token authorization: on"
    yield f"Each request shows the key of its API, inference or management, which {file} holds. To try one, paste:"
    yield f'  curl {is_unsure}-H "Authorization: Bearer $(python3 -c "{read}")" {address}/ping'
    yield "Whoever comes without a key is let in after --disable-token-auth or disable_token_authorization=true."
