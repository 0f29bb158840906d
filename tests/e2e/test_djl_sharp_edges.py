"""Sharp edges of DJL Serving, each by its number in section 14 of the sheet, on the real command.

Those of translators and binary mode are in `test_djl_translated_edges`, those of language models (15, 16) are not
there. What a table of rules can say better has its number in unit tests: 5 (deaths), 6 (error rates), 13 (NDList), 20
(devices, and degrees).
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.djl_table.models import MIRROR
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.raw_http import connect, post, read_answer
from tests.harness.server_process import until

HANDLER = """
import os, time
from djl_python import Output
told = {}


def handle(inputs):
    if inputs.is_empty():
        told.update(inputs.get_properties())
        return None
    word = inputs.get_as_string()
    if word == "die":
        os._exit(3)
    if word == "sleep":
        while not os.path.exists(told["gate"]):
            time.sleep(0.01)
    if word == "keys":
        return Output().add_as_json([sorted(told), sorted(inputs.get_properties())])
    return Output().add(told.get("stamp", word))
"""
BATCHED = """
import json
from djl_python import Output


def handle(inputs):
    if inputs.is_empty():
        return None
    output = Output()
    words = [each.get_as_string() for each in inputs.get_batches()]
    if "wait" in words and len(words) == 1:
        import time
        time.sleep(0.2)
    keys = inputs.get_content().get_keys()
    for index, word in enumerate(words):
        if word == "short":
            return Output().add("one", batch_index=0)
        output.add(json.dumps([inputs.is_batch(), keys]), key="data", batch_index=index)
    return output
"""
LORA = """
from djl_python import Output


def register_adapter(inputs):
    return Output().set_message("Adapter registered")


def handle(inputs):
    return None if inputs.is_empty() else Output().add("served")
"""


def folder(root: Path, name: str, code: str, *lines: str) -> Path:
    place = root / name
    place.mkdir(parents=True)
    (place / "model.py").write_text(code)
    (place / "serving.properties").write_text("\n".join(("minWorkers=1", "maxWorkers=1", *lines)) + "\n")
    return place


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[DjlServing]:
    root = tmp_path_factory.mktemp("edges")
    store = root / "store"
    folder(store, "mirror", MIRROR)
    folder(store, "plain", HANDLER, "topK=3", "stamp=file")
    folder(store, "bert-base.v2", HANDLER)
    folder(store, "one", HANDLER, "job_queue_size=1", f"gate={gate}")
    folder(store, "batched", BATCHED, "batch_size=4", "max_batch_delay=100")
    folder(store, "lora", LORA, "option.enable_lora=true")
    variables = {"ARGS_STAMP": "environment", "SERVING_JOB_QUEUE_SIZE": "77"}
    with djl_serving(root / "log", "-s", store, variables=variables) as running:
        yield running


def infer(server: DjlServing, model: str, body: bytes = b"x", query: str = "", fields: str = "") -> Any:
    return server.infer("POST", f"/predictions/{model}{query}", body, fields)


def described(server: DjlServing, model: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.manage("GET", f"/models/{model}").document
    return [each["models"][0] for each in found]


def test_edge_1_the_query_is_content_and_headers_are_properties(server: DjlServing) -> None:
    """Even a GET without a body is not empty: its `data` is."""
    said = server.infer("GET", "/predictions/mirror?a=1&a=2", fields="x-own: 7\r\n").document
    assert said["content"] == [["a", "1"], ["a", "2"], ["data", ""]]
    assert said["properties"]["x-own"] == "7"
    assert "a" not in said["properties"]


def test_edge_2_settings_are_told_at_the_start_alone(server: DjlServing) -> None:
    first, later = infer(server, "bert_base_v2", b"keys").document
    assert "minWorkers" in first
    assert "minWorkers" not in later
    assert {"requestId", "handler", "device_id", "model_dir"} <= set(later)


def test_edges_3_and_4_an_error_closes_and_what_an_answer_carries(server: DjlServing) -> None:
    with connect(server.port) as plug:
        plug.sendall(post("/predictions/plain", b"x"))
        answer = read_answer(plug)
        assert (answer.status, answer.body) == (200, b"file")
        assert "content-type" not in answer.fields
        plug.sendall(post("/predictions/nobody", b"x") + post("/predictions/plain", b"x"))
        refusal = read_answer(plug)
        assert (refusal.status, refusal.fields["connection"]) == (404, "close")
        assert plug.recv(100) == b""


def test_edge_7_full_is_one_place_left_and_all_workers_busy(server: DjlServing, gate: Path) -> None:
    """A queue of one refuses at once where its only worker is busy."""
    gate.unlink(missing_ok=True)
    with connect(server.port) as plug:
        plug.sendall(post("/predictions/one", b"sleep"))
        until(lambda: infer(server, "one", b"x").status == 503, server.said)
        refusal = infer(server, "one", b"x").document
        assert refusal["type"] == "WlmCapacityException"
        assert refusal["message"] == "Worker queue capacity exceeded for model: one"
        gate.touch()
        assert read_answer(plug).status == 200


def test_edge_8_names_and_meanings_of_the_bounds_of_workers(server: DjlServing) -> None:
    """`min_worker` by REST, `minWorkers` in files; -1 leaves a bound as it is."""
    answer = server.manage("PUT", "/models/plain?min_worker=-1&max_worker=3")
    assert "min workers:-1 max workers:3" in answer.document["status"]
    (group,) = described(server, "plain")[0]["workerGroups"]
    assert (group["minWorkers"], group["maxWorkers"], group["device"]["deviceType"]) == (1, 3, "cpu")
    server.manage("PUT", "/models/plain?min_worker=1&max_worker=1")


def test_edge_9_versions_share_an_endpoint_in_turns(server: DjlServing, tmp_path: Path) -> None:
    for version in ("", "&model_version=v1"):
        stamp = version[-2:] or "none"
        place = folder(tmp_path, f"m-{stamp}", HANDLER, f"stamp={stamp}")
        assert server.manage("POST", f"/models?url={place}&model_name=turns{version}").status == 200
    assert {infer(server, "turns").body for _ in range(4)} == {b"none", b"v1"}
    assert infer(server, "turns/v1").body == b"v1"
    assert len(described(server, "turns")) == 2
    again = server.manage("POST", f"/models?url={tmp_path}/m-none&model_name=turns")
    assert (again.status, again.document["type"]) == (409, "BadRequestException")
    assert server.manage("DELETE", "/models/turns").status == 200
    assert infer(server, "turns").status == 404


def test_edge_10_the_environment_goes_before_the_server_s_file_and_behind_the_model_s(
    server: DjlServing,
) -> None:
    """`SERVING_*` beats the file and the flags; `OPTION_*` and `ARGS_*` lose to serving.properties."""
    assert described(server, "plain")[0]["queueSize"] == 77
    assert described(server, "one")[0]["queueSize"] == 1
    assert infer(server, "plain").body == b"file"
    assert infer(server, "bert_base_v2").body == b"environment"


def test_edge_11_an_inferred_name_has_underscores(server: DjlServing) -> None:
    assert infer(server, "bert_base_v2").status == 200
    assert infer(server, "bert-base.v2").status == 404


def test_edge_12_a_loose_file_makes_the_store_one_model_and_a_nested_folder_is_unwrapped(
    tmp_path: Path,
) -> None:
    folder(tmp_path / "store", "a", HANDLER, "stamp=a")
    (tmp_path / "store" / "model.py").write_text(HANDLER)
    nested = folder(tmp_path / "outer", "inner", HANDLER, "stamp=inner").parent
    with djl_serving(tmp_path / "log", "-s", tmp_path / "store") as server:
        assert [row["modelName"] for row in server.manage("GET", "/models").document["models"]] == ["store"]
        assert "the store itself is taken for one model" in server.said()
        assert server.manage("POST", f"/models?url={nested}").status == 200
        assert infer(server, "outer").body == b"inner"


def test_edge_14_keys_of_a_batch_and_one_that_is_alone(server: DjlServing) -> None:
    alone, keys = infer(server, "batched").document
    assert (alone, keys) == (False, ["data"])
    plugs = [connect(server.port) for _ in range(3)]
    for plug, word in zip(plugs, (b"wait", b"a", b"b"), strict=True):
        plug.sendall(post("/predictions/batched", word))
        time.sleep(0.05 if word == b"wait" else 0)
    said = [json.loads(read_answer(plug).body) for plug in plugs]
    assert [True, ["batch_000.data", "batch_001.data"]] in said or any(len(keys) == 3 for _, keys in said)
    for plug in plugs:
        plug.sendall(post("/predictions/batched", b"short"))
    refused = [read_answer(plug) for plug in plugs]
    assert any("Batch output size mismatch" in one.body.decode() for one in refused if one.status == 400)
    for plug in plugs:
        plug.close()


def test_edge_18_a_token_is_a_uuid_with_an_index_and_202_is_not_yet(server: DjlServing, gate: Path) -> None:
    gate.unlink(missing_ok=True)
    first = infer(server, "one", b"sleep", fields="x-synchronous: false\r\n")
    token = first.fields["x-next-token"]
    assert (first.status, first.body, len(token)) == (200, b"", 36)
    waiting = infer(server, "one", b"", fields=f"x-starting-token: {token}\r\n")
    assert (waiting.status, waiting.fields["x-next-token"]) == (202, token)
    gate.touch()

    def fetched() -> bool:
        answer = infer(server, "one", b"", fields=f"x-starting-token: {token}\r\n")
        return answer.status == 200 and answer.body == b"environment" and "x-next-token" not in answer.fields

    until(fetched, server.said)


def test_edge_19_packages_that_cannot_be_had_fail_no_load_and_a_handler_that_raises_does(
    tmp_path: Path,
) -> None:
    place = folder(tmp_path, "m", HANDLER)
    (place / "requirements.txt").write_text("./nowhere.whl\n")
    variables = {"DJL_VENV_DIR": str(tmp_path / "venv"), "PIP_NO_INDEX": "1", "DJL_OFFLINE": "true"}
    with djl_serving(tmp_path / "log", "-m", place, variables=variables) as server:
        assert infer(server, "m").status == 200
        broken = folder(tmp_path, "broken", "def handle(inputs):\n    raise ValueError('no weights')\n")
        refusal = server.manage("POST", f"/models?url={broken}")
        assert (refusal.status, refusal.document["type"]) == (500, "EngineException")
        assert "no weights" in refusal.document["message"]


def test_edge_21_adapters_need_their_switch_and_an_unknown_one_never_reaches_python(
    server: DjlServing,
) -> None:
    assert (
        server.manage("POST", "/models/plain/adapters?name=a&src=/a").document["message"]
        == "LoRA is not enabled."
    )
    refusal = infer(server, "lora", query="?adapter=none")
    assert refusal.status == 424
    assert refusal.document["error"] == "The adapter none has not been registered"
    assert infer(server, "plain", query="?adapter=none").status == 200


def test_edge_22_there_is_no_description_and_kserve_has_two_words_for_a_version(server: DjlServing) -> None:
    for path in ("/", "/predictions/plain"):
        answer = server.infer("OPTIONS", path)
        assert (answer.status, answer.body) == (200, b"{}\n")
    for word in ("version", "versions"):
        path = f"/v2/models/plain/{word}/1/ready"
        assert (path, server.infer("GET", path).status) == (path, 200)
    assert server.infer("GET", "/v2/models/nobody/ready").status == 424
    assert server.infer("GET", "/v2/models/nobody").status == 404


def test_edge_23_a_folder_with_a_workflow_is_one_wherever_it_is_posted(
    server: DjlServing, tmp_path: Path
) -> None:
    place = folder(tmp_path, "flow", HANDLER)
    definition = {"models": {"inner": "{model_dir}/../plain"}, "workflow": {"out": ["inner", "in"]}}
    (place / "workflow.json").write_text(json.dumps(definition))
    folder(tmp_path, "plain", HANDLER)
    for where in ("models", "workflows"):
        assert server.manage("POST", f"/{where}?url={place}").status == 200
        assert server.infer("POST", "/predictions/flow", b"x").status == 200
        assert server.infer("POST", "/predictions/inner", b"x").status == 200
        assert server.manage("DELETE", "/models/flow").status == 200


def test_edge_24_no_workers_by_rest_stop_a_model_and_in_a_file_mean_nothing(tmp_path: Path) -> None:
    place = folder(tmp_path, "m", HANDLER)
    (place / "serving.properties").write_text("maxWorkers=0\n")
    with djl_serving(tmp_path / "log", "-m", place) as server:
        assert infer(server, "m").status == 200
        assert server.manage("PUT", "/models/m?min_worker=0&max_worker=0").status == 200
        until(lambda: infer(server, "m").status == 503, server.said)
        refusal = infer(server, "m").document
        assert refusal["type"] == "WlmShutdownException"
        assert refusal["message"] == "All model workers has been shutdown: m"


def test_edge_5_what_a_crash_is_and_that_one_can_be_enough(tmp_path: Path) -> None:
    """424 for an exception, 204 for None and 507 for memory are rows of the table."""
    place = folder(tmp_path, "m", HANDLER, "retry_threshold=0")
    with djl_serving(tmp_path / "log", "-m", place) as server:
        died = infer(server, "m", b"die")
        assert (died.status, died.document["type"]) == (503, "WlmException")
        until(lambda: server.infer("GET", "/ping").status == 500, server.said)
        assert server.infer("GET", "/ping").document == {"m": {"status": "FAILED"}}
        assert infer(server, "m").document["message"] == "Model is not ready: m"
