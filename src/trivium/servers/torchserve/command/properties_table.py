"""Every property of TorchServe's `config.properties`, as data: the form of its value, its default, how it is served.

Nothing else says which properties there are; the table in `docs/torchserve.md` is made from this. Source: spec sheet
`torchserve`, section 2. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from trivium.servers.torchserve.words.allowed_urls import read_patterns
from trivium.servers.torchserve.words.layers import ENVELOPES
from trivium.servers.torchserve.words.start_models import read_snapshot, read_version_rules
from trivium.settings.kinds import KEY_STORE, PATTERN, SWITCH, TEXT, Address, Form, OneOf, Whole
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import SettingsTable
from trivium.types.spec import Origin

PREFIX = "TS_"
NEVER = "never"
"""Stands for the variable of a property that is taken from no environment."""

_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


def _minutes(text: str) -> float | None:
    return float(text) if _DECIMAL.fullmatch(text) and float(text) > 0 else None


def _versions(text: str) -> object:
    return read_version_rules(text, Origin("", "models"))


def _snapshot(text: str) -> object:
    return _versions(read_snapshot(text).rules)


_HOST = Form("an address without scheme and port", re.compile(r"[A-Za-z0-9.:_-]+").fullmatch)
_MINUTES = Form("a number of minutes above 0", _minutes)
_PATTERNS = Form("regular expressions with commas between", read_patterns)
_VERSIONS = Form('JSON like {"NAME": {"VERSION": {"minWorkers": 1}}}', _versions)
_SNAPSHOT = Form('JSON like {"models": {"NAME": {"VERSION": {"marName": "NAME.mar"}}}}', _snapshot)
_N = Whole()
_PARTLY, _REPORTED = Support.PARTLY, Support.REPORTED
_FALSE = ("false",)
_JAVA = "there is no Java here: one event loop serves all connections"
_PORTS = "workers are reached by sockets that have no number"
_STARTER = "set threads and processors of the server's process instead (taskset, numactl, OMP_NUM_THREADS)"

_ROWS = (
    Setting("inference_address", Address(), "http://127.0.0.1:8080"),
    Setting("management_address", Address((8081, 8444)), "http://127.0.0.1:8081"),
    Setting("metrics_address", Address((8082, 8445)), "http://127.0.0.1:8082"),
    Setting("grpc_inference_address", _HOST, "127.0.0.1"),
    Setting("grpc_management_address", _HOST, "127.0.0.1"),
    Setting("grpc_inference_port", Whole(most=65535), "7070"),
    Setting("grpc_management_port", Whole(most=65535), "7071"),
    Setting("grpc_inference_max_connection_age_ms", Whole(least=1), ""),
    Setting("grpc_management_max_connection_age_ms", Whole(least=1), ""),
    Setting("grpc_inference_max_connection_age_grace_ms", Whole(least=1), ""),
    Setting("grpc_management_max_connection_age_grace_ms", Whole(least=1), ""),
    Setting("enable_grpc_ssl", SWITCH, "false"),
    Setting("model_store"),
    Setting(
        "workflow_store",
        TEXT,
        "",
        support=_REPORTED,
        how="workflows are not served: call their models one by one",
    ),
    Setting("load_models"),
    Setting(
        "models",
        _VERSIONS,
        "",
        support=_PARTLY,
        how="numbers of workers and batches and time-outs; parallelLevel and parallelType belong in model-config.yaml",
        variable=NEVER,
    ),
    Setting(
        "model_snapshot",
        _SNAPSHOT,
        "",
        support=_PARTLY,
        how="it goes before load_models; a model that cannot be loaded is a line of the log, and the others serve",
        variable=NEVER,
    ),
    Setting("default_workers_per_model", Whole(most=1024), "0"),
    *(
        Setting(
            name,
            TEXT,
            "",
            support=_REPORTED,
            how=f"no property of a server: write {key} into a model-config.yaml, or {here} here",
            variable=NEVER,
        )
        for name, key, here in (
            ("min_workers", "minWorkers", "default_workers_per_model"),
            ("max_workers", "maxWorkers", "default_workers_per_model"),
            ("NUM_WORKERS", "minWorkers", "default_workers_per_model"),
            ("batch_size", "batchSize", "below the model in models"),
            ("max_batch_delay", "maxBatchDelay", "below the model in models"),
        )
    ),
    Setting("job_queue_size", Whole(least=1), "100"),
    Setting("default_response_timeout", Whole(least=1), "120"),
    Setting("default_startup_timeout", Whole(least=1), "120"),
    Setting(
        "unregister_model_timeout",
        _N,
        "120",
        support=_PARTLY,
        how="an unregistration is answered at once; what the model has still in work so much later is ended",
    ),
    Setting("max_request_size", Whole(least=1), "6553500"),
    Setting(
        "max_response_size",
        Whole(least=1),
        "6553500",
        support=_PARTLY,
        how="it bounds each part of an answer, not those of a batch together, and no worker dies of one that is larger",
    ),
    Setting("limit_max_image_pixels", SWITCH, "true"),
    Setting("decode_input_request", SWITCH, "true"),
    Setting("default_service_handler"),
    Setting("service_envelope", OneOf(ENVELOPES, any_case=True)),
    Setting(
        "install_py_dep_per_model",
        SWITCH,
        "false",
        support=_PARTLY,
        how="an archive that names a requirementsFile gets an environment of its own, on top of the interpreter's "
        "packages and shared with those that name the same; where it cannot be made, that model alone is refused",
    ),
    Setting("number_of_gpu", Whole(most=1024), ""),
    Setting("number_of_netty_threads", _N, "0", support=_REPORTED, how=_JAVA),
    Setting("netty_client_threads", _N, "0", support=_REPORTED, how=_JAVA),
    Setting("prefer_direct_buffer", SWITCH, "false", support=_REPORTED, how=_JAVA),
    Setting("use_native_io", SWITCH, "true", support=_REPORTED, how=_JAVA, variable=NEVER),
    Setting("io_ratio", Whole(most=100), "50", support=_REPORTED, how=_JAVA, variable=NEVER),
    Setting(
        "async_logging",
        SWITCH,
        "false",
        support=_REPORTED,
        how="no request waits for a log, whatever it says",
    ),
    Setting("vmargs", TEXT, "", support=_REPORTED, how=_JAVA, variable=NEVER),
    Setting("blacklist_env_vars", PATTERN),
    Setting(
        "allowed_urls",
        _PATTERNS,
        "",
        support=_PARTLY,
        how="without it models come from the model store alone, where the original takes any URL; a pattern has to "
        "name its host literally, like https://models\\.example\\.org/.*",
    ),
    Setting("use_env_allowed_urls", SWITCH, "false", variable=NEVER),
    Setting("cors_allowed_origin"),
    Setting("cors_allowed_methods"),
    Setting("cors_allowed_headers"),
    Setting(
        "keystore",
        TEXT,
        "",
        support=_PARTLY,
        how="the package cryptography reads it (extra pkcs12); certificate_file goes before it",
    ),
    Setting("keystore_pass", TEXT, "changeit"),
    Setting(
        "keystore_type",
        KEY_STORE,
        "PKCS12",
        support=_PARTLY,
        how="PKCS12 alone: convert a JKS with keytool -importkeystore -deststoretype pkcs12",
    ),
    Setting("private_key_file"),
    Setting("certificate_file"),
    Setting("enable_metrics_api", SWITCH, "true"),
    Setting("metrics_mode", OneOf(("log", "prometheus", "legacy"), any_case=True), "log"),
    Setting("metrics_config"),
    Setting(
        "metrics_format",
        TEXT,
        "prometheus",
        support=_REPORTED,
        how="a property of older versions: Prometheus's text is what there is at metrics_address anyway, and "
        "metrics_mode=prometheus puts handlers' metrics into it",
    ),
    Setting("model_metrics_auto_detect", SWITCH, "false"),
    Setting("disable_system_metrics", SWITCH, "false"),
    Setting("metric_time_interval", Whole(least=1), "60", variable=NEVER),
    Setting(
        "system_metrics_cmd",
        TEXT,
        "",
        support=_PARTLY,
        how="without it the server measures the machine by itself; with it workers' interpreter is given these words, "
        "in the current folder",
        variable=NEVER,
    ),
    Setting("initial_worker_port", Whole(most=65535), "9000", support=_REPORTED, how=_PORTS),
    Setting(
        "initial_distribution_port", Whole(most=65535), "29500", support=_REPORTED, how="free ports are taken"
    ),
    Setting("disable_token_authorization", SWITCH, "false"),
    Setting("token_expiration_min", _MINUTES, "60", variable="TS_TOKEN_EXPIRATION_TIME_MIN"),
    Setting("enable_model_api", SWITCH, "false"),
    Setting(
        "ts_open_inference_protocol",
        OneOf(("true", "false", "oip"), any_case=True),
        "false",
        variable="TS_OPEN_INFERENCE_PROTOCOL",
    ),
    Setting(
        "ts_header_key_sequence_id", TEXT, "ts_request_sequence_id", variable="TS_HEADER_KEY_SEQUENCE_ID"
    ),
    Setting(
        "ts_header_key_sequence_start",
        TEXT,
        "ts_request_sequence_start",
        variable="TS_HEADER_KEY_SEQUENCE_START",
    ),
    Setting(
        "ts_header_key_sequence_end", TEXT, "ts_request_sequence_end", variable="TS_HEADER_KEY_SEQUENCE_END"
    ),
    Setting("cpu_launcher_enable", SWITCH, "false", support=_REPORTED, how=_STARTER),
    Setting("cpu_launcher_args", TEXT, "", support=_REPORTED, how=_STARTER),
    Setting("ipex_enable", SWITCH, "false", support=_REPORTED, how="have the handler import and use it"),
    Setting("ipex_gpu_enable", SWITCH, "false", support=_REPORTED, how="have the handler import and use it"),
    Setting(
        "debug",
        SWITCH,
        "false",
        support=Support.REFUSED,
        how="workers are always started by the server: attach a debugger to one (TRIVIUM_DEBUGGABLE=true), and leave "
        "it out",
        harmless=_FALSE,
    ),
    Setting(
        "model_server_home",
        TEXT,
        "",
        support=_REPORTED,
        how="the server's own code lies where it was installed",
    ),
    Setting("python", TEXT, "", variable=NEVER),
    Setting(
        "plugins_path",
        TEXT,
        "",
        support=_REPORTED,
        how="plug-ins are Java, which does not run here",
        variable=NEVER,
    ),
    Setting("cpp_log_config", TEXT, "", support=_REPORTED, how="there are no workers in C++"),
    Setting("version", TEXT, "", support=_REPORTED, how="the version is the server's own", variable=NEVER),
    Setting("enable_envvars_config", SWITCH, "false", variable=NEVER),
    Setting(
        "trivium_fetch_from",
        TEXT,
        "",
        support=_PARTLY,
        how="Trivium's own: places that models may be fetched from, with commas between: scheme://host[:port]/prefix",
        variable=NEVER,
    ),
)
CONFIG = SettingsTable.of(
    "TorchServe's",
    "property",
    "docs/torchserve.md",
    (replace(row, variable=row.variable or PREFIX + row.name.upper()) for row in _ROWS),
    has_others=True,
)
"""The file `config.properties`."""


OWN_WORDS: Mapping[str, str] = {
    "--fetch-from": "trivium_fetch_from",
    "--max-body-bytes": "max_request_size",
    "--torchserve-allowed-urls": "allowed_urls",
    "--torchserve-model-store": "model_store",
    "--torchserve-no-model-api": "enable_model_api",
    "--keystore-password": "keystore_pass",
    "--cors-allowed-origin": "cors_allowed_origin",
    "--cors-allowed-methods": "cors_allowed_methods",
    "--cors-allowed-headers": "cors_allowed_headers",
}
"""Flag of our own -> the property here that sets the same."""
