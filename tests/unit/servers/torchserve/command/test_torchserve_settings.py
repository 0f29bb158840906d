"""What becomes of TorchServe's properties: our options, the rules of models, and the models to start with."""

import os
from pathlib import Path

import pytest

from trivium.catalogue import CATALOGUE
from trivium.codecs.java_properties import read
from trivium.commands.command_line import read_properties
from trivium.servers.torchserve.command.settings import TorchServeSettings, exposure, settle
from trivium.servers.torchserve.command.sources import gather
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.words.layers import SequenceNames
from trivium.servers.torchserve.words.meter import MeterSettings, MetricsMode
from trivium.servers.torchserve.words.metrics_config import DEFAULTS
from trivium.types.errors import ConfigError, ServeError
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

MACHINE = (6, 0)


def no_pair() -> tuple[str, str]:
    return "self.pem", "self-key.pem"


def settled(text: str, store: Path, machine: tuple[int, int] = MACHINE) -> TorchServeSettings:
    flags = {"model_store": SourceSetting(str(store), Origin("the command line", "--model-store"))}
    return settle(
        CATALOGUE, gather(read("config.properties", text.encode()), flags, {}), no_pair, machine, {}
    )


def test_the_defaults_are_on_loopback_with_keys_and_without_the_model_api(tmp_path: Path) -> None:
    found = settled("", tmp_path)
    config = found.loaded.config
    assert config.is_loopback
    assert (config.http.port, config.management.port, config.metrics.port) == (8080, 8081, 8082)
    assert (config.grpc.port, config.management.grpc_port) == (7070, 7071)
    assert (config.server.profile, config.models.queue_items, config.server.max_body_bytes) == (
        "torchserve-command",
        100,
        6553500,
    )
    assert (found.token_seconds, found.may_register, exposure(found)) == (3600, False, "")
    assert (config.own.read(TorchServeConfig).no_model_api, config.models.fetch_from) == (True, "")
    assert found.rules.under["minWorkers"].value == "6"
    assert found.notices == ()


@pytest.mark.parametrize(
    ("text", "group", "field", "value"),
    [
        ("inference_address=https://0.0.0.0", "http", "port", 443),
        ("inference_address=https://0.0.0.0", "http", "tls_certificate", "self.pem"),
        ("inference_address=http://0.0.0.0:1", "server", "host", "0.0.0.0"),
        ("inference_address=unix:/tmp/a", "http", "socket", "/tmp/a"),
        ("management_address=http://0.0.0.0", "management", "host", "0.0.0.0"),
        ("management_address=http://127.0.0.1:8080", "management", "port", -1),
        ("metrics_address=http://127.0.0.1:9", "metrics", "port", 9),
        ("enable_metrics_api=false", "metrics", "no_metrics", True),
        ("disable_system_metrics=true", "metrics", "no_cpu_metrics", True),
        ("metric_time_interval=5", "metrics", "interval", 5.0),
        ("grpc_inference_address=0.0.0.0", "grpc", "host", "0.0.0.0"),
        ("grpc_inference_port=1", "grpc", "port", 1),
        ("grpc_management_address=0.0.0.0", "management", "grpc_host", "0.0.0.0"),
        ("grpc_management_port=1", "management", "grpc_port", 1),
        ("grpc_inference_max_connection_age_ms=1500", "grpc", "connection_age", 1.5),
        ("grpc_inference_max_connection_age_ms=1500", "management", "grpc_connection_age", 0.0),
        ("grpc_inference_max_connection_age_grace_ms=1500", "grpc", "connection_grace", 1.5),
        ("grpc_management_max_connection_age_ms=1500", "management", "grpc_connection_age", 1.5),
        ("grpc_management_max_connection_age_ms=1500", "grpc", "connection_age", 0.0),
        ("grpc_management_max_connection_age_grace_ms=1500", "management", "grpc_connection_grace", 1.5),
        ("certificate_file=c\nprivate_key_file=k\nenable_grpc_ssl=true", "grpc", "tls_key", "k"),
        ("certificate_file=c\nprivate_key_file=k\nmetrics_address=https://h", "metrics", "tls_key", "k"),
        ("keystore=s.p12\ninference_address=https://h", "http", "tls_certificate", "s.p12"),
        ("keystore_pass=x", "security", "keystore_password", "x"),
        ("max_request_size=7", "server", "max_body_bytes", 7),
        ("job_queue_size=7", "models", "queue_items", 7),
        ("cors_allowed_origin=*", "http", "cors_allowed_origin", "*"),
        ("cors_allowed_methods=PUT", "http", "cors_allowed_methods", "PUT"),
        ("cors_allowed_headers=a", "http", "cors_allowed_headers", "a"),
        ("enable_model_api=true", "torchserve", "no_model_api", False),
        ("default_workers_per_model=2", "torchserve", "default_workers", 2),
        (r"allowed_urls=https://a\\.b/c.*", "torchserve", "allowed_urls", r"https://a\.b/c.*"),
        (r"allowed_urls=https://a\\.b/c/.*", "models", "fetch_from", "https://a.b/c/"),
        ("trivium_fetch_from=s3://b/", "models", "fetch_from", "s3://b/"),
        ("ts_open_inference_protocol=true", "torchserve", "open_inference", True),
        ("ts_open_inference_protocol=oip", "torchserve", "open_inference", True),
        ("ts_open_inference_protocol=false", "torchserve", "open_inference", False),
    ],
)
def test_options(tmp_path: Path, text: str, group: str, field: str, value: object) -> None:
    config = settled(text, tmp_path).loaded.config
    section = config.own.read(TorchServeConfig) if group == "torchserve" else getattr(config, group)
    assert getattr(section, field) == value


def test_rules_of_models(tmp_path: Path) -> None:
    text = (
        "default_workers_per_model=2\ndefault_response_timeout=7\ndefault_startup_timeout=8\njob_queue_size=9\n"
        "default_service_handler=h.py\nnumber_of_gpu=1\npython=/usr/bin/python3\ndecode_input_request=false\n"
        "service_envelope=KServe\n"
        'limit_max_image_pixels=false\nmodels={"m": {"1.0": {"minWorkers": 3, "batchSize": 0, "marName": "m.mar"}}}'
    )
    found = settled(text, tmp_path)
    rules = found.rules
    assert {key: one.value for key, one in rules.of_model("m", "1.0").items()} == {
        "jobQueueSize": "9",
        "responseTimeout": "7",
        "startupTimeout": "8",
        "minWorkers": "3",
    }
    assert rules.of_model("m", "2.0")["minWorkers"].value == "2"
    assert rules.handler is not None
    assert (rules.handler.value, rules.gpus, rules.python) == ("h.py", 1, "/usr/bin/python3")
    assert (rules.decodes_requests, rules.limits_pixels, rules.envelope) == (False, False, "kserve")
    assert rules.sequence_names == SequenceNames()
    assert (rules.answer_bytes, rules.unregister_seconds) == (6553500, 120.0)
    (notice,) = found.notices
    assert "models.m.1.0.batchSize is 0" in notice


def test_a_key_of_a_version_is_named_whole_and_the_one_that_is_meant(tmp_path: Path) -> None:
    text = 'models={"llama": {"1.0": {"maxBatchdelay": 50, "maxBatchDelay": "5", "colour": 1}}}'
    misspelt, wrong, unknown = settled(text, tmp_path).notices
    assert "models.llama.1.0.maxBatchdelay is no key" in misspelt
    assert "Did you mean maxBatchDelay?" in misspelt
    assert 'models.llama.1.0.maxBatchDelay is "5"' in wrong
    assert "There are minWorkers, " in unknown


@pytest.mark.parametrize(
    ("text", "machine", "workers"),
    [
        ("", (6, 0), "6"),
        ("", (6, 2), "2"),
        ("number_of_gpu=1", (6, 2), "1"),
        ("number_of_gpu=0", (6, 2), "6"),
    ],
)
def test_as_many_workers_as_gpus_or_processors(
    tmp_path: Path, text: str, machine: tuple[int, int], workers: str
) -> None:
    assert settled(text, tmp_path, machine).rules.under["minWorkers"].value == workers


def test_who_is_reached_by_others_without_a_key_is_told_loudly_with_the_line_that_does_it(
    tmp_path: Path,
) -> None:
    wide = "inference_address=http://0.0.0.0:8080\n"
    assert exposure(settled(wide, tmp_path)) == ""
    metrics = "metrics_address=http://0.0.0.0:8082\ndisable_token_authorization=true"
    assert exposure(settled(metrics, tmp_path)) == ""
    loud = exposure(settled(wide + "disable_token_authorization=true", tmp_path))
    assert "0.0.0.0 is reached" in loud
    assert "Leave out disable_token_authorization (config.properties)" in loud
    assert "run any code" not in loud
    loud = exposure(
        settled(
            "disable_token_authorization=true\nenable_model_api=true\ngrpc_management_address=0.0.0.0",
            tmp_path,
        )
    )
    assert "run any code" in loud


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("enable_grpc_ssl=true", "needs private_key_file and certificate_file"),
        ("inference_address=https://h\ncertificate_file=c", "has no private_key_file"),
        ("metrics_address=unix:/tmp/x", "not served by a socket"),
        ("trivium_fetch_from=ftp://x", "fetch-from"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, text: str, words: str) -> None:
    found = settled(text, tmp_path) if "fetch" in words else None
    if found is not None:
        assert found.loaded.config.models.fetch_from == "ftp://x"
        return
    with pytest.raises(ServeError, match=words):
        settled(text, tmp_path)


def test_faults_are_raised_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        settled("job_queue_size=0\nio_ratio=x", tmp_path)
    assert [finding.key for finding in caught.value.findings] == ["job_queue_size", "io_ratio"]


def test_a_pattern_without_a_host_is_told_to_fetch_nothing(tmp_path: Path) -> None:
    (notice,) = settled("allowed_urls=file://.*|http(s)?://.*,http(s)?://.*", tmp_path).notices
    assert "names no host" in notice


# -- the models to start with ------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("a.mar", "b.model", "c.tar.gz", "README", "config.properties", ".hidden.mar"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("models", "found"),
    [
        ("all", [("a.mar", ""), ("b.model", ""), ("c.tar.gz", ""), ("folder", "")]),
        ("ALL", [("a.mar", ""), ("b.model", ""), ("c.tar.gz", ""), ("folder", "")]),
        ("a.mar, x=b.model", [("a.mar", ""), ("b.model", "x")]),
        ("x=folder", [("folder", "x")]),
        ("", []),
    ],
)
def test_models_of_the_store(store: Path, models: str, found: list[tuple[str, str]]) -> None:
    startup = settled(f"load_models={models}", store).startup
    assert [(one.path.name, one.source.name) for one in startup.models if one.path is not None] == found
    assert startup.failures == []


def test_a_folder_by_its_whole_path_and_a_url(store: Path) -> None:
    found = settled(f"load_models=x={store}/folder,y=https://h:1/d/m.mar?a=b", store)
    first, second = found.startup.models
    assert (first.path, first.source.name) == (store / "folder", "x")
    assert (second.path, second.source.uri, second.source.name) == (None, "https://h:1/d/m.mar?a=b", "y")
    assert found.loaded.config.models.fetch_from == "https://h:1/d/m.mar"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("nobody.mar", "there is no nobody.mar in the model store"),
        ("../a.mar", "leads out of the model store"),
        ("/etc/passwd", "is no folder"),
        ("x=file:///etc/passwd", "by its path"),
        ("ftp://h/m.mar", "Give a URL of http, https, s3"),
        ("https://[h/m.mar", "Give a URL of"),
        ("https://h:99999/m.mar", "Give a URL of"),
        ("a" * 300, "there is no"),
        ("/" + "a" * 300, "is no folder"),
    ],
)
def test_what_cannot_be_had_is_told_and_the_others_load(store: Path, item: str, words: str) -> None:
    startup = settled(f"load_models={item},a.mar", store).startup
    (failure,) = startup.failures
    assert failure[0] == item
    assert words in failure[1]
    assert [one.item for one in startup.models] == ["a.mar"]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("x={store}/a.mar", ""),
        ("x=/elsewhere/a.mar", ""),
        ("x=elsewhere/a.mar", ""),
        ("x=file://{store}/a.mar", "allowed_urls=file://.*\n"),
        ("x=file:///{store}/a%2Emar", "allowed_urls=https?://.*,file://{store}/.*,file:///.*\n"),
    ],
)
def test_what_may_be_registered_may_be_started_with(store: Path, item: str, text: str) -> None:
    startup = settled(f"{text}load_models={item}".replace("{store}", str(store)), store).startup
    assert startup.failures == []
    (model,) = startup.models
    assert (model.path, model.source.name) == (store / "a.mar", "x")


def test_a_file_that_a_url_names_and_is_not_there_is_told(store: Path) -> None:
    text = f"allowed_urls=file://.*\nload_models=file://{store}/none.mar"
    assert settled(text, store).startup.failures[0][1].startswith(f"there is nothing at {store}/none.mar")


def test_a_url_that_no_pattern_allows_is_told(store: Path) -> None:
    (failure,) = settled("allowed_urls=https://a/.*\nload_models=https://b/m.mar", store).startup.failures
    assert "does not match any allowed URL" in failure[1]


def test_a_snapshot_goes_before_the_list_and_brings_its_rules(store: Path) -> None:
    snapshot = (
        '{"name": "x", "models": {"m": {"1.0": {"marName": "a.mar", "minWorkers": 4, "batchSize": 2}}}}'
    )
    found = settled(f"model_snapshot={snapshot}\nload_models=all", store)
    assert [("load_models" in notice, "--no-config-snapshots" in notice) for notice in found.notices] == [
        (True, True)
    ]
    assert [(one.item, one.source.name) for one in found.startup.models] == [("a.mar", "m")]
    assert found.rules.of_model("m", "1.0")["batchSize"].value == "2"


def test_the_headers_of_sequences_may_have_other_names(tmp_path: Path) -> None:
    rules = settled("ts_header_key_sequence_id=a\nts_header_key_sequence_end=c\n", tmp_path).rules
    assert rules.sequence_names == SequenceNames("a", "ts_request_sequence_start", "c")


def test_metrics_are_those_of_the_original_unless_a_file_says_otherwise(tmp_path: Path) -> None:
    found = settled("", tmp_path)
    assert found.metrics == MeterSettings(DEFAULTS, MetricsMode.LOG, False)
    assert found.rules.metrics == DEFAULTS.models
    file = tmp_path / "metrics.yaml"
    file.write_text("model_metrics:\n  counter:\n    - {name: A, unit: s, dimensions: []}\n")
    text = f"metrics_mode=PROMETHEUS\nmetrics_config={file}\nmodel_metrics_auto_detect=true\n"
    found = settled(text, tmp_path)
    assert (found.metrics.mode, found.metrics.detects) == (MetricsMode.PROMETHEUS, True)
    assert found.rules.metrics is not None
    assert (list(found.rules.metrics), found.metrics.declared.server) == (["A"], {})


@pytest.mark.parametrize(
    ("content", "place", "said"),
    [
        ("model_metrics: 3\n", "metrics.yaml:1: model_metrics: no mapping", "leave metrics_config out"),
        (None, "config.properties:1: metrics_config: ", "Name a file that can be read"),
    ],
)
def test_a_file_of_metrics_that_cannot_be_used_ends_the_start(
    tmp_path: Path, content: str | None, place: str, said: str
) -> None:
    file = tmp_path / "metrics.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        settled(f"metrics_config={file}\n", tmp_path)
    (finding,) = caught.value.findings
    assert place in str(finding)
    assert said in str(finding)


@pytest.mark.parametrize("place", ["pipe", "/dev/zero"])
def test_what_is_no_file_is_neither_waited_for_nor_read_without_end(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / place
    with pytest.raises(ConfigError, match="not a file"):
        settled(f"metrics_config={file}\n", tmp_path)
    with pytest.raises(ServeError, match="not a file"):
        read_properties(file)
