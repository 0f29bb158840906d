"""What the flags of `tritonserver` come to, and which wishes are refused."""

import logging
from typing import Any

import pytest

from trivium.catalogue import CATALOGUE
from trivium.servers.triton.command.errors import CannotStart
from trivium.servers.triton.command.flag_table import FLAGS
from trivium.servers.triton.command.settings import CommandSettings, check_start, settle
from trivium.settings.kinds import OneOf
from trivium.settings.setting import Setting, Support
from trivium.types.errors import ServeError


def told(**flags: Any) -> CommandSettings:
    """By the names of flags, with `_` for `-`."""
    return settle(CATALOGUE, {"--" + name.replace("_", "-"): value for name, value in flags.items()})


def refusal(**flags: Any) -> str:
    with pytest.raises(ServeError) as caught:
        told(**flags)
    return caught.value.message


def test_defaults_are_the_originals() -> None:
    settings = told()
    config = settings.config
    assert (config.server.host, config.grpc.host, config.metrics.host) == ("0.0.0.0",) * 3
    assert (config.http.port, config.grpc.port, config.metrics.port) == (8000, 8001, 8002)
    assert (config.server.profile, config.models.control, config.server.name) == ("triton", "none", "triton")
    assert config.server.max_body_bytes == 64 * 2**20
    assert config.grpc.message_bytes == 2**31 - 1
    assert config.server.drain_timeout == 30
    assert config.security.client_shared_memory
    assert config.models.unique_names
    assert not config.models.ready_despite_failures
    assert not config.models.no_completion
    assert settings.startup is None
    assert settings.unused == ()


@pytest.mark.parametrize(
    ("flag", "value", "field", "is_then"),
    [
        ("id", "me", "server_name", "me"),
        ("exit_timeout_secs", 3, "drain_timeout", 3.0),
        ("allow_http", False, "no_http", True),
        ("allow_grpc", False, "no_grpc", True),
        ("allow_metrics", False, "metrics_port", -1),
        ("metrics_address", "127.0.0.1", "metrics_host", "127.0.0.1"),
        ("http_address", "127.0.0.1", "metrics_host", "127.0.0.1"),
        ("metrics_interval_ms", 500.0, "metrics_interval", 0.5),
        ("allow_cpu_metrics", False, "no_cpu_metrics", True),
        ("metrics_config", ("counter_latencies=false",), "no_duration_metrics", True),
        ("metrics_config", ("histogram_latencies=true",), "metrics_first_part", True),
        (
            "metrics_config",
            ("summary_latencies=true", "summary_quantiles=0.5:0.05,0.9:0.01"),
            "metrics_quantiles",
            "0.5,0.9",
        ),
        ("metrics_config", ("summary_latencies=true",), "metrics_quantiles", "0.5,0.9,0.95,0.99,0.999"),
        ("strict_readiness", False, "ready_despite_failures", True),
        ("model_control_mode", "poll", "model_control", "poll"),
        ("repository_poll_secs", 3, "poll_seconds", 3.0),
        ("model_config_name", "h100", "model_config_name", "h100"),
        ("model_load_thread_count", 2, "load_threads", 2),
        ("model_load_retry_count", 2, "load_retries", 2),
        ("disable_auto_complete_config", True, "no_completion", True),
        ("strict_model_config", True, "no_completion", True),
        ("reuse_http_port", True, "reuse_http_port", True),
        ("reuse_grpc_port", True, "reuse_grpc_port", True),
        ("http_max_input_size", 5, "max_body_bytes", 5),
        ("allow_client_shm", False, "client_shared_memory", False),
        ("http_header_forward_pattern", "X-.*", "forward_headers", "(?i:X-.*)"),
        ("grpc_header_forward_pattern", "x-.*", "forward_metadata", "(?i:x-.*)"),
        (
            "http_restricted_api",
            ("health,logging:k=v", "trace:a=b=c"),
            "restricted_apis",
            "health,logging:k=v;trace:a=b=c",
        ),
        ("grpc_restricted_protocol", ("health:k=v",), "restricted_rpcs", "health:triton-grpc-protocol-k=v"),
        ("grpc_keepalive_time", 100, "grpc_keepalive_time", 0.1),
        ("grpc_keepalive_time", 2**31 - 1, "grpc_keepalive_time", (2**31 - 1) / 1000),
        ("grpc_keepalive_timeout", 1500, "grpc_keepalive_timeout", 1.5),
        ("grpc_http2_min_recv_ping_interval_without_data", 1, "grpc_min_ping_interval", 0.001),
        ("grpc_max_connection_age", 2000, "grpc_connection_age", 2.0),
        ("grpc_max_connection_age_grace", 1000, "grpc_connection_grace", 1.0),
        ("grpc_http2_max_pings_without_data", 0, "grpc_pings_without_data", 0),
        ("grpc_http2_max_ping_strikes", 0, "grpc_ping_strikes", 0),
        ("grpc_keepalive_permit_without_calls", True, "grpc_pings_without_calls", True),
        ("grpc_infer_response_compression_level", "low", "grpc_compression", "gzip"),
        ("grpc_infer_response_compression_level", "high", "grpc_compression", "deflate"),
        ("backend_config", ("default-max-batch-size=16",), "default_rows", 16),
        ("cache_config", ("local,size=100",), "cache_bytes", 100),
        ("response_cache_byte_size", 7, "cache_bytes", 7),
        ("rate_limit", "execution_count", "rate_limit", "execution_count"),
        ("rate_limit_resource", ("r:4", "s:2:0"), "rate_limit_resources", "r:4,s:2:0"),
        ("backend_config", ("onnxruntime,default-max-batch-size=0",), "default_rows", 0),
    ],
)
def test_a_flag_sets_a_field(flag: str, value: Any, field: str, is_then: Any) -> None:
    value_of = CATALOGUE.schema.value
    assert value_of(told().config, field) != is_then
    assert value_of(told(**{flag: value}).config, field) == is_then


SHOWN_ELSEWHERE = {
    "--exit-on-error",
    "--grpc-use-ssl",
    "--grpc-use-ssl-mutual",
    "--grpc-server-cert",
    "--grpc-server-key",
    "--grpc-root-cert",
}


@pytest.mark.parametrize("flag", FLAGS.values(), ids=lambda flag: str(flag.name))
def test_every_flag_that_is_served_does_something(flag: Setting) -> None:
    if flag.support not in (Support.YES, Support.PARTLY) or flag.repeats or flag.name in SHOWN_ELSEWHERE:
        return
    other = type(flag.default)(1)
    value: Any = other if flag.default != other else not flag.default
    if isinstance(flag.kind, OneOf):
        value = next(word for word in flag.kind.words if word != flag.default)
    before, after = settle(CATALOGUE, {}), settle(CATALOGUE, {flag.name: value})
    assert (before.config, before.log) != (after.config, after.log)


def test_tls_takes_its_files() -> None:
    files = {"grpc_server_cert": "c", "grpc_server_key": "k", "grpc_root_cert": "r"}
    assert told(**files).config.grpc.tls_certificate == ""
    config = told(grpc_use_ssl=True, **files).config
    assert (config.grpc.tls_certificate, config.grpc.tls_key) == ("c", "k")
    assert config.grpc.tls_client_authorities == ""
    assert told(grpc_use_ssl_mutual=True, **files).config.grpc.tls_client_authorities == "r"
    assert "--grpc-server-key lacks" in refusal(grpc_use_ssl=True, grpc_server_cert="c")
    assert "--grpc-root-cert lacks" in refusal(
        grpc_use_ssl_mutual=True, grpc_server_cert="c", grpc_server_key="k"
    )


def test_repositories_of_both_names() -> None:
    assert told(model_store=("b",), model_repository=("c", "a", "b")).repositories == ("a", "b", "c")


def test_models_to_start_with() -> None:
    explicit = {"model_control_mode": "explicit"}
    assert told(**explicit).startup == ()
    assert told(**explicit, load_model=("a", "b")).startup == ("a", "b")
    assert told(**explicit, load_model=("*",)).startup is None
    assert "requires setting '--model-control-mode=explicit'" in refusal(load_model=("a",))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({}, "Invalid argument - --model-repository must be specified"),
        ({"model_repository": ("s3://b/m",)}, "Unsupported - s3://b/m: nothing is downloaded"),
        (
            {"model_repository": ("m",), "model_control_mode": "explicit", "load_model": ("*", "a")},
            "Wildcard model name '*' must be the ONLY startup model if specified at all.",
        ),
    ],
)
def test_what_keeps_it_from_starting(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(CannotStart) as caught:
        check_start(told(**flags))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"http_port": 70000}, "--http-port: 70000; expected a whole number from 0 to 65535"),
        (
            {"model_namespacing": True},
            "--model-namespacing=true is not supported in this version. A model's name",
        ),
        ({"allow_sagemaker": True}, "--allow-sagemaker=true is not supported in this version. Leave it out."),
        ({"trace_config": ("level=LOUD",)}, "invalid value for trace level option: LOUD"),
        ({"trace_level": ("LOUD",)}, "invalid value for trace level option: LOUD"),
        ({"http_restricted_api": ("foo:a=b",)}, "unknown restricted api 'foo'"),
        ({"grpc_restricted_protocol": ("foo:a=b",)}, "unknown restricted protocol 'foo'"),
        (
            {"http_restricted_api": ("health:a",)},
            "option format is '<config name>:<setting>=<value>'. Got health:a",
        ),
        ({"http_restricted_api": ("health:a=b;c",)}, "a key with ';'"),
        ({"backend_config": ("python",)}, "--backend-config option format is"),
        ({"cache_config": ("local",)}, "No cache specified. --cache-config option format is"),
        ({"cache_config": ("redis,host=x",)}, "redis,host=x cannot be had here"),
        ({"cache_config": ("local,size=x",)}, "local,size=x cannot be had here"),
        ({"cache_config": ("local,other=1",)}, "local,other=1 cannot be had here"),
        ({"backend_config": ("default-max-batch-size=x",)}, "must be a whole number. Got x"),
        ({"metrics_config": ("nope=1",)}, "there is no setting 'nope'"),
        ({"metrics_config": ("nope",)}, "option format is '<setting>=<value>'"),
        ({"metrics_config": ("counter_latencies=maybe",)}, "invalid value for bool option: maybe"),
        ({"http_header_forward_pattern": "("}, "is no pattern"),
    ],
)
def test_wishes_that_are_refused(flags: dict[str, Any], says: str) -> None:
    assert says in refusal(**flags)


@pytest.mark.parametrize(
    "flags",
    [
        {"model_namespacing": False},
        {"allow_sagemaker": False},
        {"trace_config": ("level=OFF", "mode=triton")},
        {"trace_level": ("OFF",)},
    ],
)
def test_wishes_for_what_is_the_case_anyway(flags: dict[str, Any]) -> None:
    assert told(**flags).config == told().config


def test_flags_given_for_nothing_are_told() -> None:
    unused = told(http_thread_count=4, backend_config=("python,shm-default-byte-size=1",)).unused
    assert len(unused) == 2
    assert told(rate_limit_resource=("r:1",)).unused == ("--rate-limit-resource (--rate-limit is off)",)
    assert told(rate_limit_resource=("r:1",), rate_limit="execution_count").unused == ()
    assert unused[0].startswith("--http-thread-count (")
    assert unused[1].startswith("--backend-config=python,shm-default-byte-size (")


@pytest.mark.parametrize(
    ("flags", "least", "written"),
    [
        ({}, logging.INFO, [False, True, True, True]),
        ({"log_verbose": 1}, logging.DEBUG, [True, True, True, True]),
        ({"log_info": False}, logging.WARNING, [False, False, True, True]),
        ({"log_warning": False}, logging.INFO, [False, True, False, True]),
        ({"log_info": False, "log_warning": False}, logging.ERROR, [False, False, False, True]),
        ({"log_info": False, "log_warning": False, "log_error": False}, logging.CRITICAL + 10, [False] * 4),
    ],
)
def test_what_is_logged(flags: dict[str, Any], least: int, written: list[bool]) -> None:
    log = told(**flags).log
    levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
    assert log.least == least
    assert [log.writes(level) for level in levels] == written
