"""Translates what configures a TorchServe into our configuration, rules of its models, and the models to start with.

Reads names in the model store; starts nothing. Source: spec sheet `torchserve`, sections 1, 2 and 13. Raises
ConfigError with every fault, ServeError for what else keeps it from starting.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trivium.app import Catalogue
from trivium.config.loading import LoadedConfig, from_process
from trivium.files import open_file
from trivium.servers.torchserve.command.certificates import given_pair
from trivium.servers.torchserve.command.store import StartupList, place_of, startup_list
from trivium.servers.torchserve.words.allowed_urls import AllowedUrls, read_patterns
from trivium.servers.torchserve.words.layers import ONE_AT_A_TIME, SequenceNames, ServerRules
from trivium.servers.torchserve.words.meter import MeterSettings, MetricsMode
from trivium.servers.torchserve.words.metrics_config import DEFAULTS, MAX_BYTES, read_metrics_config
from trivium.servers.torchserve.words.start_models import read_snapshot, read_version_rules
from trivium.settings.kinds import ListenerAddress
from trivium.settings.sources import Sources
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

MakePair = Callable[[], tuple[str, str]]
"""Makes files of a certificate and its key, or raises why it cannot."""

_UNDER = {
    "job_queue_size": "jobQueueSize",
    "default_response_timeout": "responseTimeout",
    "default_startup_timeout": "startupTimeout",
}
"""Property -> the key of model-config.yaml that it is the default of."""


@dataclass(frozen=True, slots=True)
class TorchServeSettings:
    """All that a TorchServe is started with. Keys of requests last `token_seconds`; None: nobody needs one. With
    `may_register` clients register and unregister models, from the URLs that are `allowed`. `metrics`: which there are,
    and what becomes of them.
    """

    catalogue: Catalogue
    loaded: LoadedConfig
    rules: ServerRules
    startup: StartupList
    store: Path
    sources: Sources
    notices: tuple[str, ...]
    token_seconds: float | None
    may_register: bool
    allowed: AllowedUrls
    metrics: MeterSettings


def settle(
    catalogue: Catalogue,
    sources: Sources,
    make_pair: MakePair,
    machine: tuple[int, int],
    options: Mapping[str, object],
) -> TorchServeSettings:
    """Return the settings of a server, which is made of what the catalogue has. `machine`: its processors and GPUs;
    `options` are further ones of ours.
    """
    if sources.faults:
        raise ConfigError(sources.faults)
    notices = [str(finding) for finding in sources.findings]
    store = Path(sources.text("model_store") or ".")
    allowed = AllowedUrls(read_patterns(sources.text("allowed_urls")))
    metrics = read_metrics(sources)
    rules = replace(_rules(sources, machine, notices), metrics=metrics.declared.models)
    startup = startup_list(sources, store, allowed)
    if sources.is_given("model_snapshot") and sources.is_given("load_models"):
        snapshot, models = sources.origin("model_snapshot"), sources.origin("load_models")
        notices.append(
            f"{models} has no effect: the snapshot goes before it ({snapshot}). Give --no-config-snapshots to start "
            "without."
        )
    places = _places(sources, allowed, startup, notices)
    fields = {**_options(sources, make_pair), **options, "fetch_from": ",".join(places)}
    fields["log_format"] = "text"  # the lines are the original's
    has_tokens = not sources.switch("disable_token_authorization")
    return TorchServeSettings(
        catalogue,
        from_process(catalogue.schema, None, fields),
        rules,
        startup,
        store,
        sources,
        tuple(notices),
        float(sources.text("token_expiration_min")) * 60 if has_tokens else None,
        sources.switch("enable_model_api"),
        allowed,
        metrics,
    )


def read_metrics(sources: Sources) -> MeterSettings:
    """Return which metrics there are, those of a file if one is named. Raises ConfigError with every fault of it."""
    mode, detects = (
        MetricsMode(sources.text("metrics_mode").lower()),
        sources.switch("model_metrics_auto_detect"),
    )
    file = sources.text("metrics_config")
    if not file:
        return MeterSettings(DEFAULTS, mode, detects)
    try:
        with open_file(Path(file)) as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        origin = sources.origin("metrics_config")
        hint = "Name a file that can be read, or leave it out: then TorchServe's own metrics.yaml counts."
        text = f"{file}: {error.strerror}"
        finding = Finding(Severity.ERROR, origin.file, origin.line, origin.key, text, "", hint)
        raise ConfigError((finding,)) from error
    declared, findings = read_metrics_config(file, data)
    if findings:
        raise ConfigError(findings)
    return MeterSettings(declared, mode, detects)


def exposure(settings: TorchServeSettings) -> str:
    """Return what has to be said loudly of a server whose models others reach without a key; empty where they do not.
    Its metrics are open in the original, too.
    """
    config = settings.loaded.config
    wide = replace(config, metrics=replace(config.metrics, no_metrics=True)).wide
    if settings.token_seconds is not None or not wide:
        return ""
    may = "call and manage its models"
    if settings.may_register:
        may = "run any code on this machine, by registering a model"
    return (
        f"The token check is off, and {wide.partition(' ')[2]} is reached from other machines: whoever reaches it can "
        f"{may}. Leave out {_switched_off(settings.sources)}, or listen on 127.0.0.1 alone."
    )


def _switched_off(sources: Sources) -> str:
    origin = sources.origin("disable_token_authorization")
    return (
        "--disable-token-auth"
        if origin.key.startswith("-")
        else f"disable_token_authorization ({origin.file})"
    )


def _rules(sources: Sources, machine: tuple[int, int], notices: list[str]) -> ServerRules:
    under = {key: _setting(sources, name) for name, key in _UNDER.items()}
    under["minWorkers"] = _workers(sources, machine)
    by_version: Mapping[tuple[str, str], Mapping[str, SourceSetting]] = {}
    for name in ("models", "model_snapshot"):
        if sources.is_given(name):
            text = sources.text(name) if name == "models" else read_snapshot(sources.text(name)).rules
            found = read_version_rules(text, sources.origin(name))
            by_version = {**by_version, **found.settings}
            notices += [f"{sources.origin(name)}: {notice}." for notice in found.notices]
    handler = "default_service_handler"
    return ServerRules(
        under,
        by_version,
        _setting(sources, handler) if sources.is_given(handler) else None,
        sources.number("number_of_gpu") if sources.is_given("number_of_gpu") else None,
        sources.text("python"),
        sources.switch("decode_input_request"),
        sources.switch("limit_max_image_pixels"),
        sources.text("service_envelope").lower(),
        sequence_names=SequenceNames(
            *(sources.text(f"ts_header_key_sequence_{each}") for each in ("id", "start", "end"))
        ),
        answer_bytes=sources.number("max_response_size"),
        unregister_seconds=float(sources.number("unregister_model_timeout")),
    )


def _setting(sources: Sources, name: str) -> SourceSetting:
    return SourceSetting(sources.text(name), sources.origin(name))


def _workers(sources: Sources, machine: tuple[int, int]) -> SourceSetting:
    """Return how many workers a model has that says nothing of it: one per GPU, or else per processor."""
    if sources.number("default_workers_per_model"):
        return _setting(sources, "default_workers_per_model")
    processors, gpus = machine
    if sources.is_given("number_of_gpu"):
        gpus = min(gpus, sources.number("number_of_gpu"))
    what = f"one per GPU: {gpus}" if gpus else f"one per processor: {processors}"
    return SourceSetting(
        str(gpus or processors), Origin(f"TorchServe's default, {what} (default_workers_per_model)", "")
    )


def _places(sources: Sources, allowed: AllowedUrls, startup: StartupList, notices: list[str]) -> list[str]:
    """Return the places that models may be fetched from: those that patterns name, and what is started with."""
    given = [part.strip() for part in sources.text("trivium_fetch_from").split(",") if part.strip()]
    remote = [pattern for pattern in allowed.patterns if not re.match("file", pattern, re.IGNORECASE)]
    nowhere = [pattern for pattern in remote if not AllowedUrls((pattern,)).places]
    if nowhere and not given:
        notices.append(
            f"{sources.origin('allowed_urls')}: {nowhere[0]} names no host, and nothing is fetched because of it. Name "
            "hosts, like https://models\\.example\\.org/.*, or list places in trivium_fetch_from."
        )
    return [*given, *allowed.places, *map(place_of, startup.urls)]


def _options(sources: Sources, make_pair: MakePair) -> dict[str, object]:
    """Return our options, by name, that the properties stand for."""
    roles = ("inference", "management", "metrics")
    inference, management, metrics = addresses = [sources.value(f"{role}_address") for role in roles]
    pair: tuple[str, str] | None = None
    if any(address.is_tls for address in addresses):
        pair = given_pair(sources) or make_pair()
    fields: dict[str, object] = {
        "profile": "torchserve-command",
        "torchserve_open_inference": sources.text("ts_open_inference_protocol").lower() in ("true", "oip"),
        "torchserve_kserve": sources.text("service_envelope").lower() in ONE_AT_A_TIME,
        "open": True,
        "open_management": True,
        "torchserve_model_store": str(Path(sources.text("model_store") or ".")),
        "torchserve_allowed_urls": sources.text("allowed_urls"),
        "torchserve_default_workers": sources.number("default_workers_per_model"),
        "torchserve_no_model_api": not sources.switch("enable_model_api"),
        "install_packages": "all" if sources.switch("install_py_dep_per_model") else "none",
        "queue_items": sources.number("job_queue_size"),
        "max_body_bytes": sources.number("max_request_size"),
        "keystore_password": sources.text("keystore_pass"),
        "cors_allowed_origin": sources.text("cors_allowed_origin"),
        "cors_allowed_methods": sources.text("cors_allowed_methods"),
        "cors_allowed_headers": sources.text("cors_allowed_headers"),
        "no_metrics": not sources.switch("enable_metrics_api"),
        "metrics_interval": float(sources.number("metric_time_interval")),
        "no_cpu_metrics": sources.switch("disable_system_metrics"),
        "no_gpu_metrics": sources.switch("disable_system_metrics"),
        "host": inference.bind.host or "127.0.0.1",
        **_listener("http", inference, pair),
        **_grpc(sources),
    }
    if management != inference:
        fields |= {**_listener("management", management, pair), "management_host": management.bind.host}
    if sources.switch("enable_metrics_api"):
        fields |= _metrics(sources, metrics, (inference, management), pair)
    return fields


def _listener(name: str, address: ListenerAddress, pair: tuple[str, str] | None) -> dict[str, object]:
    found: dict[str, object] = {f"{name}_port": address.bind.port, f"{name}_socket": address.bind.path}
    if address.is_tls and pair is not None:
        found |= {f"{name}_tls_certificate": pair[0], f"{name}_tls_key": pair[1]}
    return found


def _metrics(
    sources: Sources,
    address: ListenerAddress,
    others: tuple[ListenerAddress, ListenerAddress],
    pair: tuple[str, str] | None,
) -> dict[str, object]:
    if address == others[0] and address.bind.path:
        return {}
    if address.bind.path:
        raise ServeError(
            Code.UNSUPPORTED,
            f"{sources.origin('metrics_address')}: metrics are not served by a socket of their own. Give "
            "http://127.0.0.1:8082, or the inference_address.",
        )
    found = _listener("metrics", address, pair)
    del found["metrics_socket"]
    return {**found, "metrics_host": address.bind.host}


def _grpc(sources: Sources) -> dict[str, object]:
    found: dict[str, object] = {}
    for role, host, port in (
        ("inference", "grpc_host", "grpc_port"),
        ("management", "management_grpc_host", "management_grpc_port"),
    ):
        found |= {
            host: sources.text(f"grpc_{role}_address"),
            port: sources.number(f"grpc_{role}_port"),
        }
    if sources.switch("enable_grpc_ssl"):
        pair = given_pair(sources)
        if pair is None or not pair[1]:
            raise ServeError(
                Code.INVALID,
                f"{sources.origin('enable_grpc_ssl')} needs private_key_file and certificate_file. Give both, in PEM.",
            )
        found |= {"grpc_tls_certificate": pair[0], "grpc_tls_key": pair[1]}
    for what, name in (("age", "grpc_connection_age"), ("age_grace", "grpc_connection_grace")):
        for role, option in (("inference", name), ("management", f"management_{name}")):
            key = f"grpc_{role}_max_connection_{what}_ms"
            found[option] = sources.number(key) / 1000 if sources.is_given(key) else 0.0
    return found
