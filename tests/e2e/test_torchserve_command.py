"""The command `torchserve` from outside: its options and files, its start in both ways, its end, and wrong starts."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import psutil
import pytest
from tests.harness.commands import trivium
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import (
    READY,
    TorchServeFolder,
    background,
    said,
    torchserve,
)

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
        until(lambda: "no weights here" in server.said(), server.said)
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


@pytest.mark.parametrize(
    ("words", "variables", "status", "first"),
    [
        (("--start",), {}, 1, "Missing mandatory parameter --model-store"),
        ((), {}, 1, "Missing mandatory parameter --model-store"),
        (("--model-store", "/nowhere"), {}, 1, "--model-store directory not found: /nowhere"),
        (("--ts-config", "/nowhere"), {}, 1, "--ts-config file not found: /nowhere"),
        (("--log-config", "/nowhere"), {}, 1, "--log-config file not found: /nowhere"),
        (("--cpp-log-config", "/nowhere"), {}, 1, "--cpp-log-config file not found: /nowhere"),
        (("--workflow-store", "/nowhere"), {}, 1, "--workflow-store directory not found: /nowhere"),
        (("--start", "--stop"), {}, 2, "usage: torchserve"),
        (("--strat",), {}, 2, "usage: torchserve"),
        ((), {"TS_CONFIG_FILE": "/nowhere"}, 1, "TS_CONFIG_FILE file not found: /nowhere"),
        (
            ("--model-store", "."),
            {"TEMP": "/nowhere"},
            1,
            "Invalid temp directory: /nowhere, please check TEMP",
        ),
        (("--help",), {}, 0, "usage: torchserve"),
    ],
)
def test_a_wrong_start_has_the_originals_status_and_first_line(
    folder: TorchServeFolder, words: tuple[str, ...], variables: dict[str, str], status: int, first: str
) -> None:
    got, output = said(folder, *words, variables=variables)
    assert (got, output.startswith(first), "Traceback" in output) == (status, True, False), output


def test_a_configuration_at_fault_ends_both_starts_with_every_fault(folder: TorchServeFolder) -> None:
    file = folder.configured("job_queue_size=0\nmodel_stroe=x\nmetrics_config=$$NOBODY_SETS_THIS$$\n")
    for way in ((), ("--foreground",)):
        status, output = said(folder, "--start", *way, "--ts-config", file, "--model-store", folder.store)
        assert status == 1
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
        assert ("TorchServe did not start" in output) is False
        status, output = said(other, "--stop")
        assert (status, output) == (0, "TorchServe is not currently running.\n")


@pytest.mark.parametrize("text", ["", "no number", "999999999", str(os.getpid())])
def test_a_stale_or_foreign_pid_file_is_taken_away(folder: TorchServeFolder, text: str) -> None:
    folder.pid_file.write_text(text)
    with torchserve(folder) as server:
        assert server.said().startswith("Removing orphan pid file.\n")
        assert folder.pid_file.read_text() == str(server.process.pid)
    folder.pid_file.write_text(text)
    assert said(folder, "--stop") == (0, "TorchServe is not currently running.\n")
    assert not folder.pid_file.exists()


def test_a_pid_file_that_cannot_be_written_is_told(folder: TorchServeFolder) -> None:
    folder.pid_file.mkdir()
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
