"""Options of TorchServe's protocol, as an operator gives them."""

from dataclasses import dataclass

from trivium.settings.option import option


@dataclass(frozen=True, slots=True)
class TorchServeConfig:
    """Settings of TorchServe's protocol that its `config.properties` has."""

    model_store: str = option(
        "--torchserve-model-store",
        "",
        "Folder whose models TorchServe's clients may register, by name; without it there is nothing to register.",
    )
    allowed_urls: str = option(
        "--torchserve-allowed-urls",
        "",
        "Regular expressions, with commas between, of file:// and http(s):// URLs that they may register besides; what "
        "is fetched has to be among --fetch-from, too.",
    )
    default_workers: int = option(
        "--torchserve-default-workers",
        0,
        "Workers of a model that they register without initial_workers; with 0 it waits to be scaled.",
    )
    no_model_api: bool = option(
        "--torchserve-no-model-api",
        False,
        "Let them register and unregister nothing, as TorchServe does without --enable-model-api.",
    )
    open_inference: bool = option(
        "--torchserve-open-inference",
        False,
        "Say at /v2, /v2/health/live and /v2/health/ready what TorchServe says there with ts_open_inference_protocol, "
        "and serve its open inference service over gRPC; needs --profile torchserve-command, since others serve v2 "
        "themselves.",
    )
    kserve: bool = option(
        "--torchserve-kserve",
        False,
        "Answer what KServe's own server answers in front of a TorchServe: GET /, /v2, /v2/health/live, "
        "/v2/health/ready and /v2/models/MODEL/ready.",
    )
