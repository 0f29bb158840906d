"""Translates arguments of KServe's model servers, as InferenceServices hold them, into those of `trivium serve`. Pure.

KServe appends the `args` of an InferenceService to those of its runtime. The names are those of the parsers of
`kserve.model_server` (0.21) and of its servers for Hugging Face, XGBoost and LightGBM. Those servers pass over what
they do not know; here whatever has no effect is told, and what would change answers is refused.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

PARAMETERS = "TRIVIUM_ENGINE_PARAMETERS"
MOUNT = "/mnt/models"
HUB_CACHE = {"HF_HOME": "/tmp/huggingface"}
"""Where a model of the hub is kept: in a pod there may be no home to write to."""

_OPTION = "--engine-parameters"

_RENAMED = {
    "http_port": "--http-port",
    "grpc_port": "--grpc-port",
    "timeout-keep-alive": "--idle-timeout",
    "ssl_certfile": "--http-tls-certificate",
    "ssl_keyfile": "--http-tls-key",
}
_PLACES = ("model_name", "model_dir", "model_id", "model_revision")
_TOKENS = ("hf.max_context", "hf-tasks.max_input_tokens")
_OF_ENGINE = {
    "dtype": ("hf.dtype", "hf-tasks.dtype"),
    "max_length": _TOKENS,
    "max_model_len": _TOKENS,
    "trust_remote_code": ("hf.trust_remote_code", "hf-tasks.trust_remote_code"),
}
"""Parameters of the engine for language models, and of the one for other models of texts."""

_DTYPES = {"float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "bfloat16": "bf16"}
_TRUE = ("y", "yes", "t", "true", "on", "1")

_LOG = "the log is set by --log-level, --log-format and --access-log"
_TRANSFORMER = "it is for transformers, which ask another server"
_MESSAGES = "--max-body-bytes bounds messages"
_TENSORS = "which tensors the model takes follows from its class"
_UNUSED = {
    "workers": "one process takes all connections, and instances follow from the processors",
    "max_threads": "one process takes all connections",
    "max_asyncio_workers": "one process takes all connections",
    "nthread": "threads follow from the processors of the container",
    "event-loop": "there is one kind",
    "enable_docs_url": "the page is always at /docs",
    "enable_latency_logging": "latencies are at /metrics, and in --access-log",
    "configure_logging": _LOG,
    "log_config_file": _LOG,
    "access_log_format": _LOG,
    "disable_log_requests": "the log has no prompts",
    "max_log_len": "the log has no prompts",
    "max-log-len": "the log has no prompts",
    "grpc_max_send_message_length": _MESSAGES,
    "grpc_max_receive_message_length": _MESSAGES,
    "predictor_host": _TRANSFORMER,
    "protocol": _TRANSFORMER,
    "predictor_protocol": _TRANSFORMER,
    "predictor_use_ssl": _TRANSFORMER,
    "predictor_request_timeout_seconds": _TRANSFORMER,
    "predictor_request_retries": _TRANSFORMER,
    "enable_predictor_health_check": _TRANSFORMER,
    "task": "the task follows from the class in config.json",
    "backend": "the engine follows from the folder and the machine",
    "tensor_input_names": _TENSORS,
    "return_token_type_ids": _TENSORS,
}
"""What changes no answer here, and why."""

_TOKENIZER = "Write it into tokenizer_config.json beside the model, and leave the argument out."
_REFUSED = {
    "disable_lower_case": f"The tokenizer is the folder's. {_TOKENIZER}",
    "disable_special_tokens": f"The tokenizer is the folder's. {_TOKENIZER}",
    "tokenizer_revision": "The tokenizer is that of the model's revision. Leave the argument out.",
    "return_probabilities": 'A request asks for them, by "parameters": {"top_k": 3} beside its "instances". '
    "Leave the argument out.",
    "return_raw_logits": "Answers hold scores after the softmax. Leave the argument out.",
}
"""What would change answers and is not done, with the way out."""

_WITHOUT_VALUE = {
    "disable_log_requests",
    "enable_predictor_health_check",
    "return_token_type_ids",
    "trust_remote_code",
    "disable_lower_case",
    "disable_special_tokens",
    "return_probabilities",
    "return_raw_logits",
}
_KNOWN = {*_RENAMED, *_PLACES, *_OF_ENGINE, *_UNUSED, *_REFUSED, "enable_grpc"}


class TranslatedArguments(NamedTuple):
    """Holds the words of `trivium serve`, a sentence for each argument that has no effect, and further variables."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}


def translated(words: Sequence[str], variables: Mapping[str, str]) -> TranslatedArguments:
    """Return the words behind `trivium serve` with those of KServe's servers translated; others stay as they are.

    The model is the first word unless that is an option. Raises ValueError with a sentence for a value that cannot be,
    and for what would change answers.
    """
    kept, given = _told_apart(words)
    if not given:
        return TranslatedArguments(tuple(kept))
    for name in given:
        if name in _REFUSED:
            raise ValueError(f"--{name} of KServe's servers is not known here. {_REFUSED[name]}")
    own = [word for name, flag in _RENAMED.items() if name in given for word in (flag, given[name])]
    if "enable_grpc" in given and given["enable_grpc"].lower() not in _TRUE:
        own.append("--no-grpc")
    place, rest = (kept[0], kept[1:]) if kept and not kept[0].startswith("-") else ("", kept)
    placed = _placed(place, given)
    words = ([placed] if placed else []) + rest + own
    notes = [f"--{name} has no effect: {_UNUSED[name]}." for name in given if name in _UNUSED]
    if bounds := [f"--{name}" for name in given if _OF_ENGINE.get(name) is _TOKENS]:
        notes.append(f"{bounds[-1]}: a model of texts whose own files have a bound keeps that one.")
    told = _with_parameters(words, _parameters(given), variables)
    return TranslatedArguments(told, tuple(notes), HUB_CACHE if "model_id" in given else {})


def _told_apart(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return our own words, and KServe's arguments by their names: of a repeated one the last value counts."""
    kept: list[str] = []
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in _KNOWN:
            kept.append(word)
        elif name in _WITHOUT_VALUE:
            if not has_value or value.lower() in _TRUE:
                given[name] = "true"
        else:
            found = value if has_value else next(rest, "")
            if not found:
                raise ValueError(f"--{name} has no value. Write --{name}=VALUE.")
            given[name] = found
    if given.get("backend") in ("vllm", "triton"):
        raise ValueError(
            f"--backend={given['backend']}: an engine is named in the model's folder here. Put a serving.properties "
            "with option.rolling_batch=vllm beside the model, or leave the argument out."
        )
    return kept, given


def _placed(place: str, given: Mapping[str, str]) -> str:
    """Return the model's place, NAME=PATH, with what KServe's arguments say of its name and its files."""
    if not any(name in given for name in _PLACES):
        return place
    name, _, path = place.rpartition("=")
    name, path = given.get("model_name", name), given.get("model_dir", path or MOUNT)
    if identity := given.get("model_id", ""):
        path = identity if identity.startswith("/") else f"hf://{identity}"
        if revision := given.get("model_revision", ""):
            path = f"{path}@{revision}"
    elif "model_revision" in given:
        raise ValueError(
            "--model_revision is a revision at the hub: name the model, too, by --model_id=ORG/MODEL."
        )
    return f"{name}={path}" if name else path


def _parameters(given: Mapping[str, str]) -> list[str]:
    told = [(ours, given[name]) for name, each in _OF_ENGINE.items() if name in given for ours in each]
    return [f"{ours}={_DTYPES.get(value, value)}" for ours, value in told]


def _with_parameters(
    words: Sequence[str], added: Sequence[str], variables: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the words with parameters of engines behind those that are there, or that the variable has, which an
    option would hide.
    """
    if not added:
        return tuple(words)
    kept, told = [], [variables.get(PARAMETERS, "")]
    rest = iter(words)
    for word in rest:
        if word == _OPTION or word.startswith(f"{_OPTION}="):
            told = [word.partition("=")[2] or next(rest, "")]
        else:
            kept.append(word)
    return (*kept, _OPTION, ",".join(filter(None, (*told, *added))))
