"""What DJL's configuration makes of a server: listeners, defaults of models, and the models it starts with."""

from pathlib import Path

import pytest

from trivium.catalogue import CATALOGUE
from trivium.codecs.java_properties import read
from trivium.servers.djl.command import settings
from trivium.servers.djl.command.life import apis
from trivium.servers.djl.command.report import summary
from trivium.servers.djl.command.settings import ServingSettings, settle
from trivium.servers.djl.command.sources import gather
from trivium.servers.djl.wire.config import DjlConfig
from trivium.types.errors import ConfigError, ServeError


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRIVIUM_KEYS", "TRIVIUM_HOST"):
        monkeypatch.delenv(name, raising=False)


def settled(home: Path, text: str = "", models: tuple[str, ...] = (), **environment: str) -> ServingSettings:
    sources = gather(read("config.properties", text.encode()), models, "", environment)
    return settle(CATALOGUE, sources, environment, home)


def refusal(home: Path, text: str = "", models: tuple[str, ...] = (), **environment: str) -> str:
    with pytest.raises(ServeError) as caught:
        settled(home, text, models, **environment)
    return caught.value.message


def store(root: Path, *folders: str) -> Path:
    place = root / "store"
    for name in folders:
        (place / name).mkdir(parents=True)
        (place / name / "model.py").write_text("")
    return place


# -- listeners ---------------------------------------------------------------------------------------------


def test_one_address_serves_both_apis(tmp_path: Path) -> None:
    found = settled(tmp_path)
    config = found.loaded.config
    assert (config.server.host, config.http.port, config.management.is_on) == ("127.0.0.1", 8080, False)
    assert (config.server.profile, config.grpc.no_grpc) == ("djl", True)
    assert apis({"HTTP": "127.0.0.1:8080"})["HTTP"] == "BOTH"


def test_two_addresses_are_two_listeners(tmp_path: Path) -> None:
    found = settled(tmp_path, "inference_address=http://127.0.0.1:80\nmanagement_address=unix:/run/m")
    config = found.loaded.config
    assert (config.http.port, config.management.socket) == (80, "/run/m")
    words = apis({"HTTP": "127.0.0.1:80", "management": "unix:/run/m"})
    assert (words["HTTP"], words["management"]) == ("INFERENCE", "MANAGEMENT")


def test_management_goes_where_inference_goes_unless_it_is_set(tmp_path: Path) -> None:
    assert not settled(tmp_path, "inference_address=http://127.0.0.1:9000").loaded.config.management.is_on
    assert settled(tmp_path, "management_address=http://127.0.0.1:9000").loaded.config.management.port == 9000


def test_beyond_this_machine_is_told_and_management_can_be_closed(tmp_path: Path) -> None:
    wide = settled(tmp_path, "inference_address=http://0.0.0.0:8080")
    assert "0.0.0.0 is reached from other machines" in wide.notices[-1]
    assert wide.loaded.config.security.open_management
    closed = settled(tmp_path, "inference_address=http://0.0.0.0:8080\ntrivium_management=closed")
    assert not closed.loaded.config.security.open_management


def test_packages_are_installed_as_by_the_original_and_for_clients_where_it_is_said(tmp_path: Path) -> None:
    assert settled(tmp_path).loaded.config.models.install_packages == "start"
    for text, variables in (
        ("trivium_install_packages=ALL", {}),
        ("", {"SERVING_TRIVIUM_INSTALL_PACKAGES": "all"}),
    ):
        assert settled(tmp_path, text, **variables).loaded.config.models.install_packages == "all"
    assert "none, start, all" in refusal(tmp_path, "trivium_install_packages=some")
    rules = settled(tmp_path, DJL_OFFLINE="true", DJL_VENV_DIR="/environments").environments
    assert (rules.is_offline, rules.folder) == (True, Path("/environments"))


def test_tls_takes_pem_files(tmp_path: Path) -> None:
    text = "inference_address=https://127.0.0.1:8443\n"
    config = settled(tmp_path, text + "certificate_file=c.pem\nprivate_key_file=k.pem").loaded.config
    pair = (config.http.tls_certificate, config.http.tls_key)
    assert pair == (str(tmp_path / "c.pem"), str(tmp_path / "k.pem"))
    assert "openssl req -x509" in refusal(tmp_path, text)


def test_tls_takes_a_key_store_of_pkcs12(tmp_path: Path) -> None:
    text = "inference_address=https://127.0.0.1:8443\nkeystore=x.jks\n"
    config = settled(tmp_path, text + "keystore_pass=secret\nkeystore_type=pkcs12").loaded.config
    assert (config.http.tls_certificate, config.http.tls_key) == (str(tmp_path / "x.jks"), "")
    assert config.security.keystore_password == "secret"
    assert settled(tmp_path, text).loaded.config.security.keystore_password == "changeit"
    assert "keytool -importkeystore" in refusal(tmp_path, text + "keystore_type=JKS")


def test_predictions_register_models_where_everybody_may(tmp_path: Path) -> None:
    rule = settled(tmp_path, "model_url_pattern=file:///models/.*").lazy
    assert rule is not None
    assert rule.pattern.pattern == "file:///models/.*"
    assert settled(tmp_path).lazy is None
    wide = "model_url_pattern=.*\ninference_address=http://0.0.0.0:8080\n"
    assert settled(tmp_path, wide).lazy is not None
    assert "trivium_management is closed" in refusal(tmp_path, wide + "trivium_management=closed")
    assert "a regular expression" in refusal(tmp_path, "model_url_pattern=(")


def test_how_long_parts_are_waited_for_and_who_ends_with_its_model(tmp_path: Path) -> None:
    assert settled(tmp_path).loaded.config.http.part_timeout == 120
    assert settled(tmp_path, "chunked_read_timeout=7").loaded.config.http.part_timeout == 7
    assert not settled(tmp_path).fails_fast
    assert settled(tmp_path, SERVING_FAIL_FAST="True").fails_fast


def test_the_rest_of_the_protocol(tmp_path: Path) -> None:
    config = settled(
        tmp_path,
        "max_request_size=7\nallow_multi_status=TRUE\nthrottle_error_http_code=429\nrequest_id_header_key=X-Id\n"
        "cors_allowed_origin=*\nwait_model_loading=false",
    )
    djl = config.loaded.config.own.read(DjlConfig)
    assert (djl.multi_status, djl.statuses, djl.request_id_header) == (True, "throttle=429", "X-Id")
    assert config.loaded.config.server.max_body_bytes == 7
    assert config.loaded.config.http.cors_allowed_origin == "*"
    assert not config.waits


def test_every_fault_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        settled(tmp_path, "batch_sise=1\njob_queue_size=x")
    assert [(one.line, one.key) for one in caught.value.findings] == [
        (1, "batch_sise"),
        (2, "job_queue_size"),
    ]


# -- models ------------------------------------------------------------------------------------------------


def test_each_entry_of_a_store_is_a_model(tmp_path: Path) -> None:
    place = store(tmp_path, "b-1", "a")
    (place / "empty").mkdir()
    (place / "c.zip").write_bytes(b"")
    found = settled(tmp_path, "model_store=store")
    assert [(model.source.name, model.path) for model in found.models] == [
        ("a", place / "a"),
        ("b_1", place / "b-1"),
        ("c", place / "c.zip"),
    ]


@pytest.mark.parametrize("stray", ["notes.txt", ".hidden"])
def test_a_store_with_a_stray_file_is_one_model_and_the_file_is_named(tmp_path: Path, stray: str) -> None:
    place = store(tmp_path, "a")
    (place / stray).write_text("")
    found = settled(tmp_path, "model_store=store")
    assert [model.path for model in found.models] == [place]
    assert stray in found.notices[-1]


def test_none_all_and_no_store(tmp_path: Path) -> None:
    store(tmp_path, "a")
    assert not settled(tmp_path, "model_store=store\nload_models=none").models
    found = settled(tmp_path)
    assert not found.models
    assert "nothing is loaded" in found.notices[-1]
    assert "cannot be read" in refusal(tmp_path, "model_store=nowhere")


def test_models_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    found = settled(tmp_path, models=(f"resnet::Python=file://{tmp_path}/m?topK=1", "m"))
    first, second = found.models
    assert (first.source.name, first.source.engine, first.path) == ("resnet", "Python", tmp_path / "m")
    assert first.source.over["topK"].value == "1"
    assert (second.source.name, second.path) == ("m", tmp_path / "m")


def test_what_is_elsewhere_is_a_source_to_fetch(tmp_path: Path) -> None:
    (model,) = settled(tmp_path, models=("mlp:v1=https://h/m.zip?topK=1",)).models
    assert (model.path, model.source.uri, model.source.is_remote) == (None, "https://h/m.zip", True)
    assert (model.source.name, model.source.version, model.source.over["topK"].value) == ("mlp", "v1", "1")


def test_an_archive_of_a_store_that_is_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    place = store(tmp_path, "a")
    (place / "b.zip").symlink_to(tmp_path / "nowhere")
    assert "Invalid model url" in refusal(tmp_path, "model_store=store")


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = refusal(tmp_path, models=("m=/no/where",))
    assert text.startswith("the command line (-m): Invalid model url: /no/where: there is no file or folder")
    (tmp_path / "org-1").mkdir()
    assert "there is no file or folder" in refusal(tmp_path, models=("org-1/model-7b",))


@pytest.mark.parametrize(
    ("word", "uri", "name"),
    [
        ("org-1/model-7b.v2", "hf://org-1/model-7b.v2", "model-7b.v2"),
        ("m=org-1/model-7b.v2@v1", "hf://org-1/model-7b.v2@v1", "m"),
        ("hf://org-1/model", "hf://org-1/model", "model"),
    ],
)
def test_an_id_of_the_hub_is_fetched_because_the_command_names_it(
    word: str, uri: str, name: str, tmp_path: Path
) -> None:
    (model,) = settled(tmp_path, models=(word,)).models
    assert (model.path, model.source.uri, model.source.name) == (None, uri, name)
    assert (model.source.is_named, model.source.with_code) == (True, False)


def test_the_variables_of_lmi_name_a_model_its_revision_and_its_trust(tmp_path: Path) -> None:
    variables = {"HF_MODEL_ID": "org/model", "HF_REVISION": "v2", "HF_TRUST_REMOTE_CODE": "true"}
    (model,) = settled(tmp_path, **variables).models
    assert (model.source.uri, model.source.name) == ("hf://org/model@v2", "model")
    assert (model.source.is_named, model.source.with_code) == (True, True)


def test_what_cannot_be_fetched_is_refused_with_the_way_out(tmp_path: Path) -> None:
    assert "not fetched" in refusal(tmp_path, models=("jar:x",))


def test_workflows_stand_where_models_stand(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").touch()
    (tmp_path / "folder").mkdir()
    found = settled(tmp_path, models=("https://h/flow.json", "flow.yaml?size=2", "w=folder")).models
    assert [(model.source.name, model.source.is_named_after_uri) for model in found] == [
        ("flow", True),
        ("flow", True),
        ("w", False),
    ]
    assert found[0].source.is_remote
    assert (found[1].path, found[1].source.over["size"].value) == (tmp_path / "flow.yaml", "2")


def test_a_model_of_the_hub_is_refused_and_one_of_this_machine_is_added(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    assert [model.source.name for model in settled(tmp_path, HF_MODEL_ID=str(tmp_path / "own")).models] == [
        "own"
    ]
    assert "Hugging Face hub" in refusal(tmp_path, HF_MODEL_ID="gpt2")


def test_the_variables_of_hugging_face_belong_to_the_model_that_one_of_them_names(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    found = settled(
        tmp_path,
        models=("other",),
        HF_MODEL_ID=str(tmp_path / "own"),
        HF_TASK="text-generation",
        HF_REVISION="main",
    ).models
    told = {model.source.name: {key: one.value for key, one in model.source.under.items()} for model in found}
    assert told == {"other": {}, "own": {"option.task": "text-generation", "option.revision": "main"}}


def test_sagemakers_folder_is_the_store_where_it_is_filled_and_nothing_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "opt"
    monkeypatch.setattr(settings, "SAGEMAKER_STORE", store)
    assert settled(tmp_path).models == []
    store.mkdir()
    assert settled(tmp_path).models == []
    (store / "serving.properties").touch()
    found = settled(tmp_path)
    assert [model.path for model in found.models] == [store]
    assert any(str(store) in notice for notice in found.notices)
    named = settled(tmp_path, HF_MODEL_ID=str(store)).models
    assert [model.path for model in named] == [store]
    (tmp_path / "own").mkdir()
    assert settled(tmp_path, "model_store=own").models == []


def test_the_common_names_of_lmi_are_defaults_of_models(tmp_path: Path) -> None:
    found = settled(
        tmp_path, MAX_BATCH_SIZE="8", MAX_CONCURRENT_REQUESTS="9", MAX_BATCH_PREFILL_TOKENS="1088"
    )
    assert {key: setting.value for key, setting in found.under.items()} == {
        "option.max_rolling_batch_size": "8",
        "job_queue_size": "9",
        "option.max_rolling_batch_prefill_tokens": "1088",
        "reserved_memory_mb": "500",
    }


def test_defaults_of_models_lie_under_their_files(tmp_path: Path) -> None:
    found = settled(
        tmp_path,
        "batch_size=4",
        SERVING_MIN_WORKERS="2",
        OPTION_PREDICT_TIMEOUT="9",
        PREDICT_TIMEOUT="8",
        SERVING_JOB_QUEUE_SIZE="5",
    )
    assert {key: setting.value for key, setting in found.under.items()} == {
        "batch_size": "4",
        "job_queue_size": "5",
        "minWorkers": "2",
        "option.predict_timeout": "9",
        "reserved_memory_mb": "500",
    }


# -- the record --------------------------------------------------------------------------------------------


def test_the_record_has_what_the_originals_has_and_no_secret(tmp_path: Path) -> None:
    text = summary(
        settled(tmp_path, "batch_size=4"), {"HF_TOKEN": "hf_1", "SERVING_X": "1", "HOME": "/h"}, 0, ""
    )
    assert "Default batch_size: 4\n" in text
    assert "Model Store: N/A\n" in text
    assert "HF_TOKEN: ***" in text
    assert "hf_1" not in text
    assert "HOME" not in text
