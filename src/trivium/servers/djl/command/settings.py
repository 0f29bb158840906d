"""Translates what configures a DJL server into our configuration, the settings under its models, and the models.

Reads the model store and the files of TLS; starts nothing. Source: spec sheet `djl`, sections 1.3, 1.4, 2.1 and 2.4.
Raises ConfigError with every fault, CannotServe for what else keeps the original from starting.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trivium.app import Catalogue
from trivium.config.loading import LoadedConfig, from_process
from trivium.config.options import ServerConfig
from trivium.config.schema import ConfigSchema
from trivium.fetchers.hub_policy import SCHEME as HUB
from trivium.fetchers.hub_policy import hub_uri, read_uri
from trivium.servers.djl.folder.environment import EnvironmentRules, environment_rules
from trivium.servers.djl.wire.options import LazyRule
from trivium.servers.djl.words.error_rate_policy import ErrorKind
from trivium.servers.djl.words.layers import from_environment
from trivium.servers.djl.words.model_urls import LOCAL, DjlModelUrl, read_list, read_url
from trivium.servers.djl.words.naming import ARCHIVES, archive_suffix
from trivium.settings.kinds import ListenerAddress
from trivium.settings.sources import Sources
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin

_UNDER = (
    "load_on_devices",
    "job_queue_size",
    "batch_size",
    "max_batch_delay",
    "max_idle_time",
    "reserved_memory_mb",
)
"""Keys of the server that are a model's default under the same name."""

_VARIABLES: Mapping[str, str] = {
    "MAX_BATCH_SIZE": "option.max_rolling_batch_size",
    "MAX_BATCH_PREFILL_TOKENS": "option.max_rolling_batch_prefill_tokens",
    "MAX_CONCURRENT_REQUESTS": "job_queue_size",
    "PREDICT_TIMEOUT": "option.predict_timeout",
    "MODEL_LOADING_TIMEOUT": "option.model_loading_timeout",
    "PYTHON_EXECUTABLE": "option.pythonExecutable",
    "DJL_ENTRY_POINT": "option.entryPoint",
}
"""Variable -> the setting of a model that it is the default of, where the name is too common for any other command."""

_OF_HF_MODEL_ID: Mapping[str, str] = {"HF_TASK": "option.task", "HF_REVISION": "option.revision"}
"""Variable -> the setting of the model that HF_MODEL_ID names, and of no other."""

SAGEMAKER_STORE = Path("/opt/ml/model")
"""Where SageMaker puts a model, and DJL's containers look for it."""


_TRUST = ("HF_TRUST_REMOTE_CODE", "OPTION_TRUST_REMOTE_CODE")
NO_VARIABLES: Mapping[str, str] = {}


_SELF_SIGNED = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem"
_STATUSES: Mapping[str, str] = {
    "bad_request_http_code": "bad_request",
    "wlm_error_http_code": "wlm_error",
    "throttle_error_http_code": "throttle",
    "server_error_http_code": "server_error",
}


@dataclass(frozen=True, slots=True)
class StartupModel:
    """A model that the server starts with: where its files are (None: they are fetched), and what is asked of it."""

    path: Path | None
    source: ModelSource


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """All that a DJL server is started with. `under` are defaults of its models; `notices` are worth a line each.
    It `fails_fast`: it ends once a model is given up. By the rule `lazy` predictions register models."""

    catalogue: Catalogue
    loaded: LoadedConfig
    under: Mapping[str, SourceSetting]
    models: Sequence[StartupModel]
    waits: bool
    notices: Sequence[str]
    sources: Sources
    home: Path
    environments: EnvironmentRules
    fails_fast: bool = False
    lazy: LazyRule | None = None


def settle(
    catalogue: Catalogue, sources: Sources, environment: Mapping[str, str], home: Path
) -> ServingSettings:
    """Return the settings of a server whose home is this folder, and which is made of what the catalogue has."""
    if sources.faults:
        raise ConfigError(sources.faults)
    notices = [str(finding) for finding in sources.findings]
    models = _models(sources, environment, home, notices)
    loaded = _config(catalogue.schema, sources, environment, home, notices)
    return ServingSettings(
        catalogue,
        loaded,
        _under(sources, environment),
        models,
        sources.switch("wait_model_loading"),
        notices,
        sources,
        home,
        environment_rules(environment),
        environment.get("SERVING_FAIL_FAST", "").lower() == "true",
        _lazy(sources, loaded.config),
    )


def _lazy(sources: Sources, config: ServerConfig) -> LazyRule | None:
    """Return by which rule predictions register models. Raises INVALID where not everybody who predicts may."""
    pattern = sources.text("model_url_pattern")
    if not pattern:
        return None
    may_change = config.is_loopback or config.security.open_management
    if config.security.keys or not may_change:
        why = "TRIVIUM_KEYS is set" if config.security.keys else "trivium_management is closed"
        raise ServeError(
            Code.INVALID,
            f"With model_url_pattern whoever may predict registers models, and {why}, so that not everybody may. Leave "
            "model_url_pattern out, and register models by POST /models.",
        )
    return LazyRule(re.compile(pattern))


def _config(
    schema: ConfigSchema,
    sources: Sources,
    environment: Mapping[str, str],
    home: Path,
    notices: list[str],
) -> LoadedConfig:
    inference, management = (sources.value(f"{role}_address") for role in ("inference", "management"))
    if not sources.is_given("management_address"):
        management = inference
    is_closed = sources.text("trivium_management").lower() == "closed"
    fields: dict[str, object] = {
        "profile": "djl",
        **_grpc(sources),
        "open": True,
        "open_management": not is_closed,
        "install_packages": sources.text("trivium_install_packages").lower(),
        "part_timeout": sources.number("chunked_read_timeout"),
        "keystore_password": sources.text("keystore_pass"),
        "max_body_bytes": sources.number("max_request_size"),
        "cors_allowed_origin": sources.text("cors_allowed_origin"),
        "cors_allowed_methods": sources.text("cors_allowed_methods"),
        "cors_allowed_headers": sources.text("cors_allowed_headers"),
        "djl_multi_status": sources.switch("allow_multi_status"),
        "djl_request_id_header": sources.text("request_id_header_key"),
        "djl_statuses": ",".join(
            f"{name}={sources.number(key)}" for key, name in _STATUSES.items() if sources.is_given(key)
        ),
        "djl_error_rates": ",".join(
            f"{kind}={sources.text(key)}"
            for kind in ErrorKind
            if sources.is_given(key := f"error_rate_{kind}")
        ),
        "djl_prometheus": environment.get("SERVING_PROMETHEUS", "").lower() == "true",
        "djl_handler_override": environment.get("ALLOW_REQUEST_HANDLER_OVERRIDE", "").lower() == "true",
        "log_level": "info",
        "log_format": "text",  # the lines are the original's
        **_listener(sources, inference, "http", home),
    }
    if inference.bind.host:
        fields["host"] = inference.bind.host
    if management != inference:
        fields |= _listener(sources, management, "management", home)
        fields["management_host"] = management.bind.host
    loaded = from_process(schema, None, fields)
    if loaded.config.security.keys:  # by its variable: the original has no key of the file for it
        loaded = from_process(schema, None, fields | {"open": False, "open_management": False})
    elif loaded.config.wide:
        notices.append(_wide(loaded.config.wide, is_closed))
    return loaded


def _grpc(sources: Sources) -> dict[str, object]:
    """Return where the gRPC service listens; off where nobody has said so, as without the original's plug-in."""
    if not (sources.is_given("grpc_address") or sources.is_given("grpc_port")):
        return {"no_grpc": True}
    return {"grpc_host": sources.text("grpc_address"), "grpc_port": sources.number("grpc_port")}


def _wide(place: str, is_closed: bool) -> str:
    manages = (
        "infers"
        if is_closed
        else "infers, and registers, scales and unregisters models, which runs their code"
    )
    return (
        f"Wider than Trivium's own defaults, as the original is: {place.partition(' ')[2]} is reached from other "
        f"machines, and whoever reaches it {manages}. TRIVIUM_KEYS names a file of keys; with "
        "trivium_management=closed models are managed by a management_address on this machine alone."
    )


def _listener(sources: Sources, address: ListenerAddress, name: str, home: Path) -> dict[str, object]:
    found: dict[str, object] = {f"{name}_port": address.bind.port, f"{name}_socket": address.bind.path}
    if address.is_tls:
        certificate, key = _certificate(sources, home)
        found |= {f"{name}_tls_certificate": certificate, f"{name}_tls_key": key}
    return found


def _certificate(sources: Sources, home: Path) -> tuple[str, str]:
    certificate, key, store = (
        str(home / sources.text(name)) if sources.text(name) else ""
        for name in ("certificate_file", "private_key_file", "keystore")
    )
    if certificate and key:
        return certificate, key
    if store:
        return store, ""
    raise ServeError(
        Code.INVALID,
        "An address begins with https, and there is no certificate_file and private_key_file. Give both in PEM, or a "
        f"keystore in PKCS12; a pair for trying is made by `{_SELF_SIGNED}`.",
    )


def _under(sources: Sources, environment: Mapping[str, str]) -> dict[str, SourceSetting]:
    """Return what holds for every model that does not set it itself: OPTION_ and ARGS_ before all else."""
    found = {key: sources.settings[key] for key in _UNDER if sources.is_given(key)}
    headroom = SourceSetting(sources.text("reserved_memory_mb"), Origin("DJL's default", ""))
    found.setdefault("reserved_memory_mb", headroom)
    for name, key in _VARIABLES.items():
        if environment.get(name):
            found[key] = SourceSetting(environment[name], Origin("the environment", name))
    return found | from_environment(environment)


def _models(
    sources: Sources, environment: Mapping[str, str], home: Path, notices: list[str]
) -> list[StartupModel]:
    wanted = sources.text("load_models")
    store = sources.text("model_store") or _sagemaker_store(environment, notices)
    if wanted.upper() == "NONE":
        found = []
    elif wanted.upper() == "ALL":
        found = _stored(home / store, notices) if store else []
        if not store and not environment.get("HF_MODEL_ID"):
            notices.append("No model store is set, and no models are named (-m, -s): nothing is loaded.")
    else:
        said_by = str(sources.settings["load_models"].origin)
        found = [_startup(url, said_by, home, environment) for url in read_list(wanted)]
    model_id = environment.get("HF_MODEL_ID", "")
    return [*found, _named_by_variable(model_id, environment, home)] if model_id else found


def _sagemaker_store(environment: Mapping[str, str], notices: list[str]) -> str:
    """Return the folder that SageMaker fills, where it is filled and no variable names a model; empty else."""
    if environment.get("HF_MODEL_ID") or _is_empty(SAGEMAKER_STORE) or not SAGEMAKER_STORE.is_dir():
        return ""
    notices.append(
        f"No model store is set: the models are those of {SAGEMAKER_STORE}, as in DJL's containers."
    )
    return str(SAGEMAKER_STORE)


def _named_by_variable(model_id: str, environment: Mapping[str, str], home: Path) -> StartupModel:
    model = _startup(read_url(model_id), "HF_MODEL_ID", home, environment)
    under = {
        key: SourceSetting(environment[name], Origin("the environment", name))
        for name, key in _OF_HF_MODEL_ID.items()
        if environment.get(name)
    }
    return replace(model, source=replace(model.source, under={**model.source.under, **under}))


def _stored(store: Path, notices: list[str]) -> list[StartupModel]:
    """Return the models of a store: each of its entries where all are folders and archives, else the store itself."""
    try:
        entries = sorted(store.iterdir())
    except OSError as error:
        raise ServeError(
            Code.NOT_FOUND, f"The model store {store} cannot be read: {error.strerror}. Name a folder (-s)."
        ) from error
    strays = [entry.name for entry in entries if not _is_model_entry(entry)]
    if strays:
        more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
        notices.append(
            f"The model store {store} holds {strays[0]}{more}, which is neither a folder nor an archive "
            f"({', '.join(ARCHIVES)}): as in the original, the store itself is taken for one model. Move it away to "
            "serve each entry."
        )
        return [_startup(read_url(str(store)), "the model store", store)]
    filled = [entry for entry in entries if not _is_empty(entry)]
    return [_startup(read_url(str(entry)), "the model store", store) for entry in filled]


def _is_empty(entry: Path) -> bool:
    """Tell whether it is a folder without anything; one that cannot be looked into is for the load to name."""
    try:
        return entry.is_dir() and not any(entry.iterdir())
    except OSError:
        return False


def _is_model_entry(entry: Path) -> bool:
    if entry.name.startswith("."):
        return False
    return entry.is_dir() or bool(archive_suffix(entry.name)) or entry.suffix.lower() == ".mar"


def _startup(
    url: DjlModelUrl, said_by: str, home: Path, environment: Mapping[str, str] = NO_VARIABLES
) -> StartupModel:
    """Return a model, or a workflow. Raises UNSUPPORTED for a URL of a scheme without an address."""
    path = Path(os.path.normpath(home / url.place)) if url.scheme == LOCAL else Path(url.place)
    revision = environment.get("HF_REVISION", "") if said_by == "HF_MODEL_ID" else ""
    if named := _named_at_hub(url, path, home, revision):
        name = url.name or read_uri(named).title
        asked = replace(url.source(said_by, named), name=name, is_named=True, with_code=_trusts(environment))
        return StartupModel(None, asked)
    if url.scheme != LOCAL and "://" not in url.place:
        raise _elsewhere(url.place, f"{url.scheme}://")
    if url.scheme == LOCAL and not path.exists():
        if said_by == "HF_MODEL_ID":
            raise ServeError(
                Code.NOT_FOUND,
                f"HF_MODEL_ID: {url.place} is no folder of this machine, and names no model of the Hugging Face hub. "
                "Write it with its owner, ORG/MODEL, or the path of a folder.",
            )
        raise ServeError(
            Code.NOT_FOUND,
            f"{said_by}: Invalid model url: {url.place}: there is no file or folder {path}. Correct the path; one that "
            "does not begin with a slash leads from the server's home.",
        )
    if url.scheme != LOCAL:
        return StartupModel(None, url.source(said_by))
    return StartupModel(path, url.source(said_by, str(path)))


def _named_at_hub(url: DjlModelUrl, path: Path, home: Path, revision: str) -> str:
    """Return the URI of the model of the Hugging Face hub that is named; empty for a path, and for another URL. What is
    there goes first, and where its first part is a folder, a path was meant.
    """
    if url.scheme not in (LOCAL, HUB):
        return ""
    if url.scheme == LOCAL and (path.exists() or (home / url.place.partition("/")[0]).is_dir()):
        return ""
    return hub_uri(url.place, revision)


def _trusts(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").lower() == "true" for name in _TRUST)


def _elsewhere(what: str, place: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        f"{what}: models are not fetched from {place} in this version. Download the model, and name its folder or "
        "archive (-m name=file:///path).",
    )
