"""The command `torchserve` from outside: its options and files, its start in both ways, its end, and wrong starts."""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from tests.harness.certificates import pair
from tests.harness.commands import trivium
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import (
    FREE,
    READY,
    TORCHSERVE,
    TorchServeFolder,
    TorchServeText,
    background,
    said,
    torchserve,
)
from tests.harness.web import body, redirect, web, zipped

from trivium.codecs.java_properties import read

ECHO = """
import os
def handle(data, context):
    if data is None:
        return None
    return [bytes(row.get("body") or row.get("data") or b"", "utf-8") if isinstance(row.get("body"), str)
            else bytes(row.get("body") or row.get("data") or b"") for row in data]
"""
TELLS = """
import json, os
def handle(data, context):
    return data and [json.dumps({"environment": sorted(os.environ), "decode": os.environ["TS_DECODE_INPUT_REQUEST"],
                                 "pixels": context.system_properties["limit_max_image_pixels"]})] * len(data)
"""
FAILS = "raise RuntimeError('no weights here')\n"


@pytest.fixture
def folder(tmp_path: Path) -> TorchServeFolder:
    return TorchServeFolder(tmp_path)


# -- its life ----------------------------------------------------------------------------------------------


def test_an_empty_store_is_served_on_five_ports_of_this_machine(folder: TorchServeFolder) -> None:
    with torchserve(folder) as server:
        assert server.ask("Inference", "GET", "/ping").document == {"status": "Healthy"}
        assert server.ask("Inference", "GET", "/metrics").status == 404
        assert server.ask("Metrics", "GET", "/metrics").status == 200
        assert server.ask("Management", "GET", "/predictions/m").status == 404
        for api in ("gRPC inference", "gRPC management"):
            with grpc.insecure_channel(f"127.0.0.1:{server.port(api)}") as channel:
                call = channel.unary_unary("/no.Such/Method", None, None)
                with pytest.raises(grpc.RpcError) as caught:
                    call(b"", timeout=SECONDS)
                assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        addresses = {each.laddr.ip for each in server.process.net_connections() if each.status == "LISTEN"}
        assert addresses <= {"127.0.0.1", "::1"}


def test_all_of_a_store_loads_once_it_listens_and_what_is_no_model_is_left(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    folder.model("bad", FAILS)
    (folder.store / "README").touch()
    (folder.store / "broken.mar").write_bytes(b"no archive")
    (folder.store / "no_model").mkdir()
    with torchserve(folder, "--models", "all") as server:
        server.serves("one")
        wanted = {"no weights here", "Model one loaded."}
        until(lambda: all(words in server.said() for words in wanted), server.said)
        text = server.said()
        assert text.index("Model server started.") < text.index("Model one loaded.")
        assert server.predict("one", b"hello").body == b"hello"
        assert server.predict("bad").status in (404, 503)
    assert "Failed to load model: bad" in text
    assert "Failed to load model: no_model" in text
    assert re.search("Failed to load model: broken", text)
    assert "README" not in text


def test_the_forms_of_models(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    elsewhere = TorchServeFolder(folder.path / "elsewhere")
    elsewhere.path.mkdir()
    place = elsewhere.model("far", ECHO)
    words = ("--models", "one", "two=one", f"three={place}", "nobody.mar", "../elsewhere/store/far")
    with torchserve(folder, *words) as server:
        for name in ("one", "two", "three"):
            server.serves(name)
        text = server.said()
    assert "Failed to load model: nobody.mar" in text
    assert "leads out of the model store" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_0(folder: TorchServeFolder, number: signal.Signals) -> None:
    with torchserve(folder) as server:
        assert folder.pid_file.read_text() == str(server.process.pid)
        server.signal(number)
        assert server.wait() == 0
        assert "Torchserve stopped." in server.said().splitlines()[-1]


def test_in_the_background_it_returns_once_it_listens_and_stops_by_its_pid_file(
    folder: TorchServeFolder,
) -> None:
    folder.model("one", ECHO)
    with background(folder, "--models", "one") as server:
        key = f"Authorization: Bearer {folder.key('inference')}\r\n"
        server.serves("one", key)
        assert server.predict("one", b"hi", key).body == b"hi"
        refused = said(folder, "--start", "--model-store", folder.store)
        words = "TorchServe is already running, please use torchserve --stop to stop TorchServe."
        assert (refused[0], refused[1].splitlines()) == (1, [words])
        pid = int(folder.pid_file.read_text())
        assert psutil.Process(pid).ppid() != os.getpid()
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert not folder.pid_file.exists()
    assert not (folder.path / "key_file.json").exists()


def test_stop_says_so_at_once_or_waits_in_silence(folder: TorchServeFolder) -> None:
    assert said(folder, "--stop") == (0, "TorchServe is not currently running.\n")
    with torchserve(folder) as server:
        assert said(folder, "--stop") == (0, "TorchServe has stopped.\n")
        assert server.wait() == 0
    with torchserve(folder) as server:
        assert said(folder, "--stop", "--foreground") == (0, "")
        assert server.has_ended()


def test_the_linked_name_and_the_version(folder: TorchServeFolder) -> None:
    assert trivium("link", folder.path / "bin").returncode == 0
    found = shutil.which("torchserve", path=str(folder.path / "bin"))
    assert found
    done = subprocess.run([found, "-v"], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, "TorchServe Version is 0.12.0\n")
    with torchserve(folder, command=[found]):
        assert said(folder, "--stop")[0] == 0


# -- wrong starts ------------------------------------------------------------------------------------------


def test_a_configuration_at_fault_ends_both_starts_with_every_fault(folder: TorchServeFolder) -> None:
    file = folder.configured("job_queue_size=0\nmodel_stroe=x\nmetrics_config=$$NOBODY_SETS_THIS$$\n")
    for way in ((), ("--foreground",)):
        status, output = said(folder, "--start", *way, "--ts-config", file, "--model-store", folder.store)
        assert status == 1
        assert output.startswith("Invalid configuration: ")
        for words in ("given.properties:8: job_queue_size", "Did you mean model_store?", "NOBODY_SETS_THIS"):
            assert words in output
    assert not folder.pid_file.exists()


def test_a_taken_port_fails_both_starts_and_is_named(folder: TorchServeFolder, tmp_path: Path) -> None:
    other = TorchServeFolder(tmp_path / "other")
    other.path.mkdir()
    with torchserve(folder) as server:
        file = other.configured(f"metrics_address=http://127.0.0.1:{server.port('Metrics')}\n")
        for way in ((), ("--foreground",)):
            words = ("--start", *way, "--ncs", "--ts-config", file, "--model-store", other.store)
            status, output = said(other, *words)
            assert status == 1, output
            assert f"127.0.0.1:{server.port('Metrics')} (metrics) is taken" in output
            assert not READY.search(output)
            assert not other.pid_file.exists()
        port = server.port("gRPC management")
        file.write_text(file.read_text().replace("grpc_inference_port=0", f"grpc_inference_port={port}"))
        file.write_text(file.read_text().replace(f":{server.port('Metrics')}", ":0"))
        status, output = said(other, *words)
        assert (status, f"127.0.0.1:{port} (gRPC) is taken" in output) == (1, True), output
        assert "Choose another in the configuration" in output
        assert not READY.search(output)
        assert [
            path.name for path in other.path.iterdir() if path.name.startswith(("trivium", ".model"))
        ] == []
        assert server.ask("Inference", "GET", "/ping").document == {"status": "Healthy"}
        status, output = said(other, "--stop")
        assert (status, output) == (0, "TorchServe is not currently running.\n")


@pytest.mark.parametrize(
    "text",
    ["", "no number", "999999999", str(os.getpid())],
    ids=["empty", "text", "nobody", "another program"],
)
def test_a_stale_or_foreign_pid_file_is_taken_away(folder: TorchServeFolder, text: str) -> None:
    folder.pid_file.write_text(text)
    with torchserve(folder) as server:
        assert server.said().startswith("Removing orphan pid file.\n")
        assert folder.pid_file.read_text() == str(server.process.pid)
    folder.pid_file.write_text(text)
    found = "Removing orphan pid file.\nTorchServe is not currently running.\n"
    assert said(folder, "--stop") == (0, found)
    assert not folder.pid_file.exists()


def test_a_pid_file_that_cannot_be_written_is_told(folder: TorchServeFolder) -> None:
    folder.pid_file.mkdir()
    for words in (("--start", "--model-store", folder.store), ("--stop",)):
        status, output = said(folder, *words)
        assert status == 1
        assert "The pid file" in output
        assert "TEMP" in output


def test_keys_that_cannot_be_written_end_it(folder: TorchServeFolder) -> None:
    (folder.path / "key_file.json").mkdir()
    words = ("--start", "--ncs", "--ts-config", folder.configured(), "--model-store", folder.store)
    for way in ((), ("--foreground",)):
        status, output = said(folder, *words, *way)
        assert status == 1
        assert "The keys cannot be written to" in output
        assert not folder.pid_file.exists()


def test_of_two_starts_at_once_one_serves(folder: TorchServeFolder) -> None:
    file = folder.configured()
    words = (
        *TORCHSERVE,
        "--start",
        "--foreground",
        "--ncs",
        "--ts-config",
        file,
        "--model-store",
        folder.store,
    )
    logs = [folder.path / f"log{number}" for number in range(2)]
    both = []
    for log in logs:
        with log.open("wb") as output:
            line = [*map(str, words)]
            env = folder.variables({})
            both.append(
                subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=folder.path)
            )
    try:
        until(lambda: any(each.poll() is not None for each in both), lambda: logs[0].read_text())
        (loser,) = [each for each in both if each.poll() is not None]
        (winner,) = [each for each in both if each is not loser]
        said_by = dict(zip(both, logs, strict=True))
        until(lambda: bool(READY.search(said_by[winner].read_text())), said_by[winner].read_text)
        assert (loser.returncode, "already running" in said_by[loser].read_text()) == (1, True)
        assert folder.pid_file.read_text() == str(winner.pid)
        winner.terminate()
        assert winner.wait(SECONDS) == 0
    finally:
        for each in both:
            each.kill()
            each.wait()


def test_a_signal_while_models_load_stops_it_and_leaves_nothing(folder: TorchServeFolder) -> None:
    folder.model("slow", "import time\nprint('I begin', flush=True)\ntime.sleep(600)\n")
    with torchserve(folder, "--models", "slow") as server:
        until(lambda: "I begin" in server.said(), server.said)
        family = server.process.children(recursive=True)
        assert family
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        until(lambda: not any(each.is_running() for each in family), server.said)


def _is_said(server: TorchServeText, text: str) -> bool:
    return text in server.said()


def test_a_full_disk_under_its_logs_stops_nothing(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO + "print('I am loaded', flush=True)\n")
    (folder.path / "logs").mkdir()
    names = ("ts_log.log", "model_log.log", "access_log.log", "ts_metrics.log", "model_metrics.log")
    for name in names:
        (folder.path / "logs" / name).symlink_to("/dev/full")
    with torchserve(folder, "--models", "one") as server:
        server.serves("one")
        for name in names:
            until(
                partial(_is_said, server, f"lines of {name} are lost: No space left on device"), server.said
            )
            assert server.predict("one", b"hi").body == b"hi"
    assert server.said().count(" are lost: ") == len(names)
    assert server.said().count("this is said once") == len(names)


def test_a_model_by_its_url_at_the_start_opens_that_url_alone(folder: TorchServeFolder) -> None:
    place = folder.model("far", ECHO)
    archive = zipped(
        {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    )
    shutil.rmtree(place)
    with web({"/far.mar": body(archive), "/away.mar": redirect("http://169.254.169.254/x.mar")}) as elsewhere:
        url = f"http://127.0.0.1:{elsewhere.port}"
        words = ("--enable-model-api", "--models", f"near={url}/far.mar", f"{url}/away.mar")
        with torchserve(folder, *words) as server:
            server.serves("near")
            until(lambda: "Failed to load model: away" in server.said(), server.said)
            assert server.ask("Management", "POST", f"/models?url={url}/far.mar&model_name=x").status == 404


# -- keys and what is open ---------------------------------------------------------------------------------


def test_every_port_has_its_key_and_renewal_ends_the_old_one(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    with torchserve(folder, "--models", "one", text="") as server:
        bearer = {
            name: f"Authorization: Bearer {folder.key(name)}\r\n"
            for name in ("inference", "management", "API")
        }
        server.serves("one", bearer["inference"])
        refused = server.predict("one")
        assert (refused.status, refused.document["type"]) == (400, "InvalidKeyException")
        assert "www-authenticate" not in refused.fields
        assert server.predict("one", fields=bearer["management"]).status == 400
        assert server.ask("Management", "GET", "/models", fields=bearer["inference"]).status == 400
        assert server.ask("Management", "GET", "/models", fields=bearer["management"]).status == 200
        assert server.ask("Metrics", "GET", "/metrics").status == 200
        assert (
            server.ask("Management", "GET", "/token?type=inference", fields=bearer["inference"]).status == 400
        )
        answer = server.ask("Management", "GET", "/token?type=inference", fields=bearer["API"])
        assert (answer.status, answer.body) == (200, b"\n")
        assert server.predict("one", fields=bearer["inference"]).status == 400
        assert (
            server.predict("one", fields=f"Authorization: Bearer {folder.key('inference')}\r\n").status == 200
        )
        assert stat.S_IMODE((folder.path / "key_file.json").stat().st_mode) == 0o600
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ServerLive", None, None)
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=SECONDS)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            call(b"", metadata=[("authorization", f"Bearer {folder.key('inference')}")], timeout=SECONDS)
    logs = "".join(path.read_text() for path in (folder.path / "logs").iterdir()) + server.said()
    for name in ("inference", "management", "API"):
        assert folder.key(name) not in logs
    assert bearer["inference"].split()[-1] not in logs


def test_models_are_registered_where_the_model_api_is_on_alone(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    with torchserve(folder) as server:
        assert server.ask("Management", "POST", "/models?url=one&initial_workers=1").status == 405
    with torchserve(folder, "--enable-model-api") as server:
        assert server.ask("Management", "POST", "/models?url=one&initial_workers=1").status == 200
        assert server.predict("one", b"hi").body == b"hi"
        assert server.ask("Management", "POST", "/models?url=https://example.com/m.mar").status == 404


def test_who_is_reached_by_others_without_keys_is_told_loudly(folder: TorchServeFolder) -> None:
    wide = "inference_address=http://0.0.0.0:0\n"
    with torchserve(folder, text=wide) as server:
        assert "The token check is off" not in server.said()
    with torchserve(folder, "--disable-token-auth", text=wide) as server:
        assert "The token check is off, and 0.0.0.0 is reached from other machines" in server.said()
        assert "Leave out --disable-token-auth" in server.said()


# -- what a configuration does -----------------------------------------------------------------------------


def test_workers_see_what_the_configuration_says_and_not_what_it_hides(folder: TorchServeFolder) -> None:
    folder.model("tells", TELLS)
    text = (
        "disable_token_authorization=true\nblacklist_env_vars=.*SECRET.*|EXACT\ndecode_input_request=false\n"
        "limit_max_image_pixels=false\nload_models=tells\n"
        'models={"tells": {"1.0": {"minWorkers": 2, "maxWorkers": 2}}}\n'
    )
    variables = {"MY_SECRET_KEY": "x", "EXACT": "x", "NOT_EXACT": "x"}
    with torchserve(folder, text=text, variables=variables) as server:
        server.serves("tells")
        document = json.loads(server.predict("tells").body)
        assert (document["decode"], document["pixels"]) == ("false", False)
        assert "NOT_EXACT" in document["environment"]
        assert not {"MY_SECRET_KEY", "EXACT"} & set(document["environment"])
        (about,) = server.ask("Management", "GET", "/models/tells").document
        assert (about["minWorkers"], about["maxWorkers"]) == (2, 2)


def test_where_the_configuration_comes_from(folder: TorchServeFolder) -> None:
    free = folder.configured("disable_token_authorization=true\nmax_request_size=1111\n").read_text()
    (folder.path / "config.properties").write_text(free.replace("1111", "2222"))
    (folder.path / "by_variable").write_text(free.replace("1111", "3333"))
    snapshots = folder.path / "logs" / "config"
    snapshots.mkdir(parents=True)
    (snapshots / "20200101000000000-startup.cfg").write_text(free.replace("1111", "4444"))
    (snapshots / "20200102000000000-shutdown.cfg").write_text(free.replace("1111", "5555"))

    def largest(*words: str | Path, **variables: str) -> str:
        command = (*TORCHSERVE, "--foreground", "--model-store", folder.store, *words)
        log = folder.path / "found"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*map(str, command)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=folder.variables(variables),
                cwd=folder.path,
            )
        try:
            until(lambda: bool(READY.search(log.read_text())) or process.poll() is not None, log.read_text)
        finally:
            process.terminate()
            process.wait(SECONDS)
        match = re.search(r"Maximum Request Size: (\d+)", log.read_text())
        assert match, log.read_text()
        return match[1]

    given = ("--ts-config", folder.path / "given.properties")
    assert largest("--ncs") == "2222"
    assert largest() == "5555"
    assert largest(*given) == "1111"
    assert largest(*given, TS_CONFIG_FILE=str(folder.path / "by_variable")) == "3333"


@contextlib.contextmanager
def resumed(folder: TorchServeFolder, *words: str) -> Iterator[TorchServeText]:
    """A server that is started without a configuration, from what it finds."""
    log = folder.path / "resumed"
    line = [*TORCHSERVE, "--start", "--foreground", "--model-store", str(folder.store), *words]
    with log.open("wb") as output:
        env = folder.variables({})
        process = subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=folder.path)
    try:
        server = TorchServeText(log)
        until(lambda: bool(READY.search(server.said())) or process.poll() is not None, server.said)
        yield server
        process.terminate()
        assert process.wait(SECONDS) == 0, server.said()
    finally:
        process.kill()
        process.wait()


def snapshots(folder: TorchServeFolder, kind: str) -> list[dict[str, Any]]:
    """The models of the snapshots of one kind, by their time."""
    found = []
    for path in sorted((folder.path / "logs" / "config").glob(f"*-{kind}.cfg")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        entries = read(path.name, path.read_bytes()).entries
        document = json.loads(entries["model_snapshot"].value)
        assert document["name"] == path.name
        found.append(document["models"])
    return found


def test_a_snapshot_of_each_change_and_the_next_start_resumes_it(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    folder.model("two", ECHO, "batchSize: 4\n")
    (folder.path / "config.properties").write_text(
        FREE + "disable_token_authorization=true\nenable_model_api=true\ncors_allowed_origin=a\\\\b\n"
    )
    with resumed(folder, "--models", "one") as server:
        server.serves("one")
        until(lambda: len(snapshots(folder, "startup")) == 1, server.said)
        assert snapshots(folder, "startup")[0].keys() == {"one"}
        assert server.ask("Management", "POST", "/models?url=two&initial_workers=1").status == 200
        until(lambda: len(snapshots(folder, "snapshot")) == 1, server.said)
        assert server.ask("Management", "PUT", "/models/one?min_worker=2&synchronous=true").status == 200
        until(lambda: len(snapshots(folder, "snapshot")) == 2, server.said)
    (last,) = snapshots(folder, "shutdown")
    assert last["one"]["1.0"] | {"minWorkers": 2, "maxWorkers": 2, "marName": "one"} == last["one"]["1.0"]
    assert last["two"]["1.0"] | {"batchSize": 4, "defaultVersion": True} == last["two"]["1.0"]
    with resumed(folder, "--models", "nobody") as server:
        for name in ("one", "two"):
            server.serves(name)
        assert "(--models) has no effect: the snapshot goes before it" in server.said()
        (about,) = server.ask("Management", "GET", "/models/one").document
        assert (about["minWorkers"], len(about["workers"])) == (2, 2)
        assert server.predict("one").fields["access-control-allow-origin"] == "a\\b"
    with resumed(folder, "--ncs") as server:
        assert server.predict("one").status == 404


def test_a_snapshot_that_cannot_be_written_stops_nothing(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    (folder.path / "logs").mkdir()
    (folder.path / "logs" / "config").symlink_to("/dev/full")
    (folder.path / "config.properties").write_text(FREE + "disable_token_authorization=true\n")
    with resumed(folder, "--models", "one") as server:
        server.serves("one")
        until(lambda: "The snapshot logs/config/" in server.said(), server.said)
        assert server.predict("one").status == 200


def test_a_request_that_is_too_large_is_an_empty_413(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    text = "disable_token_authorization=true\nmax_request_size=100\ncors_allowed_origin=https://a.example\n"
    with torchserve(folder, "--models", "one", text=text) as server:
        server.serves("one")
        answer = server.predict("one", b"x" * 101)
        assert (answer.status, answer.body) == (413, b"")
        assert server.predict("one").fields["access-control-allow-origin"] == "https://a.example"


def test_a_worker_that_does_not_come_back_within_its_time_is_given_up(folder: TorchServeFolder) -> None:
    mark = folder.path / "mark"
    code = f"import os\nif os.path.exists({str(mark)!r}):\n    raise RuntimeError('not again')\n"
    code += f"def handle(data, context):\n    if data:\n        open({str(mark)!r}, 'w').close()\n        os._exit(3)\n"
    folder.model("once", code, "maxRetryTimeoutInSec: 0\n")
    with torchserve(folder, "--models", "once") as server:
        until(lambda: "Model once loaded" in server.said(), server.said)
        assert server.predict("once").status == 500
        until(lambda: server.ask("Inference", "GET", "/ping").status == 500, server.said)
        answer = server.predict("once")
        assert (answer.status, "has no worker to serve" in answer.body.decode()) == (503, True)
        assert "given up after 0 s of failures in a row" in server.said()


def test_an_answer_that_is_too_large_fails_and_its_worker_lives(folder: TorchServeFolder) -> None:
    folder.model("one", "import os\nPID = str(os.getpid()).encode()\n" + ECHO.replace('b"")', "PID)"))
    text = "disable_token_authorization=true\nmax_response_size=100\n"
    with torchserve(folder, "--models", "one", text=text) as server:
        server.serves("one")
        process = server.predict("one", b"").body
        assert server.predict("one", b"x" * 100).body == b"x" * 100
        answer = server.predict("one", b"x" * 101)
        assert (answer.status, json.loads(answer.body)["message"]) == (500, "Worker died.")
        assert server.predict("one", b"").body == process


def test_what_a_model_has_in_work_too_long_after_its_end_is_ended(folder: TorchServeFolder) -> None:
    gate = folder.path / "gate"
    code = f"import os, time\ndef handle(data, context):\n    while data and not os.path.exists({str(gate)!r}):\n"
    folder.model(
        "waits",
        f"{code}        open({f'{gate}.begun'!r}, 'w').close()\n        time.sleep(0.005)\n    return data\n",
    )
    text = "disable_token_authorization=true\nenable_model_api=true\nunregister_model_timeout=0\n"
    with torchserve(folder, "--models", "waits", text=text) as server, ThreadPoolExecutor(1) as pool:
        until(lambda: "Model waits loaded" in server.said(), server.said)
        waits = pool.submit(server.predict, "waits")
        until(Path(f"{gate}.begun").exists, server.said)
        assert server.ask("Management", "DELETE", "/models/waits").status == 200
        answer = waits.result()
        assert (answer.status, "was unloaded" in json.loads(answer.body)["message"]) == (503, True)
        gate.touch()


@pytest.mark.parametrize("is_given", [True, False])
def test_https_by_files_or_by_a_pair_of_its_own(folder: TorchServeFolder, is_given: bool) -> None:
    text = "disable_token_authorization=true\ninference_address=https://127.0.0.1:0\n"
    check = ["-k"]
    if is_given:
        certificate, key = pair(folder.path, "given")
        text += f"certificate_file={certificate}\nprivate_key_file={key}\n"
        check = ["--cacert", certificate]
    with torchserve(folder, text=text) as server:
        url = f"https://localhost:{server.port('Inference')}/ping"
        done = subprocess.run(
            ["curl", "-sS", *check, "--resolve", f"localhost:{server.port('Inference')}:127.0.0.1", url],
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        assert json.loads(done.stdout) == {"status": "Healthy"}
        kept = list(folder.path.glob("trivium-torchserve-*/*key.pem"))
        assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == ([] if is_given else [0o600])
    assert not list(folder.path.glob("trivium-torchserve-*"))


def test_logs_lie_where_they_are_told_to_and_a_folder_that_cannot_be_is_no_end(
    folder: TorchServeFolder,
) -> None:
    folder.model("one", ECHO + "print('I am loaded')\n")
    elsewhere, metrics = folder.path / "elsewhere", folder.path / "metrics"
    variables = {"LOG_LOCATION": str(elsewhere), "METRICS_LOCATION": str(metrics)}
    with torchserve(folder, "--models", "one", variables=variables) as server:
        server.serves("one")
    logs = {path.name: path.read_text() for path in elsewhere.iterdir()}
    assert logs.keys() == {"ts_log.log", "model_log.log", "access_log.log"}
    assert {path.name for path in metrics.iterdir()} == {"ts_metrics.log", "model_metrics.log"}
    line = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} \[INFO \] \S+ \S+ - "
    assert re.search(line + "Model one loaded.$", logs["ts_log.log"], re.MULTILINE)
    assert "I am loaded" in logs["model_log.log"]
    for name in ("MODEL_LOG - I am loaded", "ACCESS_LOG - /127.0.0.1", "TS_METRICS - Requests2XX.Count:1.0"):
        assert name in logs["ts_log.log"]
        assert name in server.said()
    assert "/predictions/one" in logs["access_log.log"]
    (folder.path / "file").touch()
    variables = dict.fromkeys(variables, str(folder.path / "file"))
    with torchserve(folder, variables=variables) as server:
        for name in variables:
            assert re.search(rf"No log files are written: .*by the variable {name}\.", server.said())
        assert server.ask("Inference", "GET", "/ping").status == 200


def test_what_has_no_effect_is_told_at_the_start(folder: TorchServeFolder) -> None:
    words = ("--log-config", folder.configured(), "--plugins-path", "/x", "--workflow-store", folder.store)
    lines = "job_queue_size=3\nnumber_of_netty_threads=7\njob_queue_size=4\n"
    with torchserve(folder, *words, text=lines) as server:
        text = server.said()
    for name in (
        "--log-config",
        "plugins_path",
        "workflow_store",
        "number_of_netty_threads=7",
        "job_queue_size",
    ):
        assert re.search(rf"\[WARN \].*{re.escape(name)}", text), text


# -- other commands ----------------------------------------------------------------------------------------


def test_a_store_with_other_files_is_served_by_serve_too_and_they_are_named(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    (folder.store / "README").touch()
    file = folder.store / "config.properties"
    file.write_text("inference_address=http://127.0.0.1:8080\n")
    done = trivium("check", folder.store)
    assert done.returncode == 0, done.stdout
    assert "left alone: README, config.properties" in " ".join(done.stdout.split())
    for words in (("serve", file), ("serve", "--config", file, folder.store)):
        done = trivium(*words)
        assert done.returncode == 1
        assert "trivium torchserve --ts-config" in done.stdout


def test_the_originals_launcher_starts_and_stops_it(folder: TorchServeFolder) -> None:
    """`ts.launcher` of the original's wheel does this: it reads until the ready line, and goes on reading."""
    folder.model("one", ECHO)
    assert trivium("link", folder.path / "bin").returncode == 0
    words = [
        folder.path / "bin" / "torchserve",
        "--start",
        "--model-store",
        folder.store,
        "--models",
        "one",
        "--ncs",
    ]
    words += ["--disable-token-auth", "--ts-config", folder.configured()]
    variables = folder.variables({"PATH": f"{folder.path / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    with subprocess.Popen(
        [*map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables,
        cwd=folder.path,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("Model server started" in line for line in process.stdout)
        assert process.wait(SECONDS) == 0
        assert said(folder, "--stop", "--foreground") == (0, "")
        assert "Torchserve stopped." in process.stdout.read()


def test_python_minus_m_works_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trivium.cli.main", "torchserve", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stdout == "TorchServe Version is 0.12.0\n"
