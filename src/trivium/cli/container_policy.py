"""Decides what the first process of a container runs: by the words of its command, its variables and its folders. Pure.

The images of DJL Serving, TorchServe and SageMaker are all started by the one word `serve`, which means another server
in each. Here it means TorchServe where something of TorchServe's is there; our own server where SageMaker's folder is
a repository of Triton's, whose clients read answers as v2 has them; and DJL Serving else, whose routes are SageMaker's.
Any other words are the command itself, as in those images.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trivium.cli.kserve_words import TranslatedArguments, translated

SERVE_AS = "SERVE_AS"
"""Variable that says which server `serve` means, where what is there does not."""
CONFIG = "/home/model-server/config.properties"
SAGEMAKER_MODELS = "/opt/ml/model"
DJL_HOME = "/opt/djl"
LOADING_IS_TOLD = "--djl-multi-status"
"""`/ping` is 207 until all models have loaded: SageMaker sends requests from the first 200 on, and DJL Serving itself,
which listens only then, is not asked before.
"""
_PORT = "SAGEMAKER_BIND_TO_PORT"
_SERVERS = ("djl-serving", "torchserve", "trivium")
_LISTENING = ("serve", "demo", "run")
"""Commands of `trivium` that listen, on loopback where nobody says where."""


class Surroundings(NamedTuple):
    """Holds what a container has been given."""

    variables: Mapping[str, str] = {}
    has_model_store: bool = False
    """Whether TorchServe's folder of archives has something in it."""

    has_config: bool = False
    """Whether TorchServe's configuration is another one than the image's own."""

    has_archives: bool = False
    """Whether SageMaker's folder of models holds archives of TorchServe."""

    has_repository: bool = False
    """Whether SageMaker's folder of models is a repository of Triton's."""


class ContainerStart(NamedTuple):
    """Holds the command to run, its variables where nobody has set them, and sentences for the log."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


def container_start(words: Sequence[str], around: Surroundings) -> ContainerStart:
    """Return what to run. Raises ValueError with a sentence for a variable or an argument that cannot be."""
    name, rest = (words[0], tuple(words[1:])) if words else ("serve", ())
    if name == "serve":
        name = _server(around, rest)
        if name == "torchserve":
            rest = ("--start", "--ts-config", CONFIG, *_of_sagemaker(around), *rest)
        if name == "trivium":
            port = _port(around) or "8080"
            rest = ("serve", *(rest or (SAGEMAKER_MODELS,)), "--open", "--http-port", port, LOADING_IS_TOLD)
    if name == "torchserve":
        return ContainerStart((name, *_in_foreground(rest)), _addresses(around, "TS_"))
    if name == "djl-serving":
        told = {"MODEL_SERVER_HOME": DJL_HOME, "SERVING_ALLOW_MULTI_STATUS": "true"}
        variables = {**told, **_addresses(around, "SERVING_")}
        return ContainerStart((name, *rest), variables)
    if name == "trivium" and rest[:1] and rest[0] in _LISTENING:
        behind = TranslatedArguments(rest[1:])
        if rest[0] == "serve":
            behind = translated(rest[1:], around.variables)
        words = (name, rest[0], *behind.words)
        return ContainerStart(words, {"TRIVIUM_HOST": "0.0.0.0", **behind.variables}, behind.notes)
    return ContainerStart((name, *rest))


def health_places(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses that are asked whether the server lives, one after the other: any that answers is it."""
    if url := variables.get("HEALTH_URL", ""):
        return (url,)
    return (
        f"http://127.0.0.1:{variables.get(_PORT) or 8080}/ping",
        "http://127.0.0.1:8000/v2/health/live",
        "http://127.0.0.1:8080/v2/health/live",
    )


def _server(around: Surroundings, words: Sequence[str]) -> str:
    chosen = around.variables.get(SERVE_AS, "")
    if chosen and chosen not in _SERVERS:
        raise ValueError(
            f"{SERVE_AS} is {chosen!r}; expected one of {', '.join(_SERVERS)}. For another server write its own "
            "command, such as tritonserver --model-repository=/models, in place of serve."
        )
    if chosen:
        return chosen
    is_torchserve = around.has_model_store or around.has_config or around.has_archives
    if is_torchserve and not words:
        return "torchserve"
    return "trivium" if around.has_repository and not words else "djl-serving"


def _of_sagemaker(around: Surroundings) -> tuple[str, ...]:
    """Return the options for archives in SageMaker's folder: all are served, to whoever SageMaker lets in."""
    if not around.has_archives or around.has_model_store:
        return ()
    return ("--model-store", SAGEMAKER_MODELS, "--models", "all", "--disable-token-auth")


def _in_foreground(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of `torchserve` so that it is the container's own process, whose end is the container's."""
    is_start = "--start" in words or not {"--stop", "--version", "-v", "--help", "-h"} & set(words)
    return (*words, "--foreground") if is_start and "--foreground" not in words else words


def _addresses(around: Surroundings, prefix: str) -> Mapping[str, str]:
    """Return the variables by which a server listens where SageMaker asks, for requests and for models alike."""
    port = _port(around)
    if not port:
        return {}
    return {f"{prefix}{role}_ADDRESS": f"http://0.0.0.0:{port}" for role in ("INFERENCE", "MANAGEMENT")}


def _port(around: Surroundings) -> str:
    """Return the port that SageMaker asks; empty where it does not say."""
    port = around.variables.get(_PORT, "")
    if port and not (port.isascii() and port.isdigit()):
        raise ValueError(f"{_PORT} is {port!r}; expected a port, a whole number. Leave it out for 8080.")
    return port
