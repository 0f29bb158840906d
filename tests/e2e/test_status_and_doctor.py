"""`trivium status`, `doctor` and `completion`, as people run them: a real server, real imports, real shells."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.keys import KEYS, key_file
from tests.harness.raw_http import infer
from tests.harness.server_process import COMMAND, SECONDS, environment, serve

from trivium.cli.doctor import LIBRARIES, imported, is_installed
from trivium.machine.extras import install_command


def run(*words: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = {**environment(), **(variables or {})}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=SECONDS * 3, env=env)


def interruptible() -> None:
    """Have Ctrl-C mean what it does on a terminal, also below a program that was started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_server_tells_how_it_does(tmp_path: Path) -> None:
    models.identity(tmp_path / "good", "echo", rows=16)
    with serve(tmp_path / "log", tmp_path / "good") as server:
        infer(server.port, "echo", [[1, 2, 3, 4]])
        done = run("status", server.address)
        assert done.returncode == 0, done.stderr
        assert f"{server.url}: ready" in done.stdout
        assert "1 request, 0 failed" in done.stdout
        document = json.loads(run("status", server.url, "--json").stdout)
        assert document["server"]["ready"] is True
        assert [each["name"] for each in document["models"]] == ["echo"]
    done = run("status", server.url)
    assert done.returncode == 1
    assert "does not answer" in done.stderr


@pytest.mark.parametrize("profile", ["native", "triton"])
def test_a_server_that_is_not_ready_is_told_by_its_exit_status(profile: str, tmp_path: Path) -> None:
    models.add(tmp_path / "models", "adds")
    models.corrupt(tmp_path / "models", "cut", 0.5)
    with serve(tmp_path / "log", tmp_path / "models", "--profile", profile) as server:
        done = run("status", server.url)
    assert done.returncode == 1
    assert "NOT READY" in done.stdout
    assert "ONNX Runtime cannot open" in done.stdout
    assert ("--console" in done.stdout) is (profile == "triton")


def test_a_server_with_keys_wants_one(tmp_path: Path) -> None:
    models.add(tmp_path / "models", "adds")
    keys = key_file(tmp_path / "keys.toml")
    with serve(tmp_path / "log", tmp_path / "models", "--keys", keys) as server:
        refused = run("status", server.url)
        assert refused.returncode == 1
        assert "TRIVIUM_CHAT_KEY" in refused.stderr
        assert run("status", server.url, variables={"TRIVIUM_CHAT_KEY": KEYS["manage"].text}).returncode == 0


def test_watching_goes_on_until_it_is_ended_and_survives_the_server(tmp_path: Path) -> None:
    models.identity(tmp_path / "good", "echo", rows=16)
    with contextlib.ExitStack() as stack:
        with serve(tmp_path / "log", tmp_path / "good") as server:
            command = [*COMMAND, "status", server.url, "--watch", "--json"]
            one, other = (
                stack.enter_context(
                    subprocess.Popen(
                        command,
                        stdout=subprocess.PIPE,
                        text=True,
                        env=environment(),
                        preexec_fn=interruptible,
                    )
                )
                for _ in range(2)
            )
            for watching in (one, other):
                stack.callback(watching.kill)
                looks = [json.loads(next(watching.stdout or iter(()))) for _ in range(2)]
                assert [look["models"][0]["name"] for look in looks] == ["echo", "echo"]
            one.send_signal(signal.SIGINT)
            assert one.wait(SECONDS) == 0
        assert any("does not answer" in json.loads(line).get("error", "") for line in other.stdout or ())
        other.send_signal(signal.SIGINT)
        assert other.wait(SECONDS) == 1


def test_watching_on_a_terminal_shows_the_table_anew(tmp_path: Path) -> None:
    models.identity(tmp_path / "good", "echo", rows=16)
    ours, theirs = os.openpty()
    with serve(tmp_path / "log", tmp_path / "good") as server, open(ours, "rb", buffering=0) as terminal:
        command = [*COMMAND, "status", server.url, "--watch"]
        with (
            subprocess.Popen(command, stdout=theirs, env=environment(), preexec_fn=interruptible) as watching,
            contextlib.ExitStack() as stack,
        ):
            stack.callback(watching.kill)
            os.close(theirs)
            seen = b""
            while seen.count(b"ready") < 2:
                seen += terminal.read(4096)
            watching.send_signal(signal.SIGINT)
            assert watching.wait(SECONDS) == 0
    assert b"echo" in seen


def test_a_doctor_looks_at_this_machine() -> None:
    done = run("doctor", "--json", "--http-port", "0", "--grpc-port", "0")
    found = {each["what"]: each for each in json.loads(done.stdout)}
    assert {"Python", "/dev/shm", "descriptors", "processors", "clock", "GPUs", "onnxruntime"} <= set(found)
    assert all(found[each.module]["verdict"] == "good" for each in LIBRARIES if each.is_required)
    assert done.returncode == any(each["verdict"] == "broken" for each in found.values())


def test_imports_that_fail_die_or_hang_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "lib_good": "__version__ = '7.1'",
        "lib_bad": "raise ImportError('libfoo.so.1: cannot open')",
        "lib_dead": "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
        "lib_hung": "import time; time.sleep(1000)",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    assert imported("lib_good", SECONDS).version == "7.1"
    assert "libfoo.so.1" in imported("lib_bad", SECONDS).fault
    assert imported("lib_dead", SECONDS).signal == "SIGILL"
    assert imported("lib_hung", 0.5).is_late
    assert is_installed("google.protobuf")
    assert not is_installed("google.nothing_of_the_kind")
    assert not is_installed("nothing_of_the_kind")


def test_every_extra_of_the_table_is_one() -> None:
    assert [
        each.module for each in LIBRARIES if each.extra and "trivium[" in install_command(each.extra)
    ] == []


BASH = """source "$1"
compopt() { :; }
shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _trivium; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        done = run("completion", shell)
        assert done.returncode == 0, done.stderr
        (folder / shell).write_text(done.stdout)
    return folder


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("ser", {"serve"}),
        ("status --w", {"--watch"}),
        ("serve --profil", {"--profile"}),
        ("serve --profile tri", {"triton"}),
        ("serve --profile = tri", {"triton"}),
        ("serve fol", {"folder"}),
        ("serve --keys fil", {"file"}),
        ("serve --http-port ", {""}),
        ("completion ", {"bash", "zsh", "fish", "--help"}),
        ("env b", {"build"}),
        ("init --template o", {"onnx"}),
    ],
)
def test_bash_completes(words: str, wanted: set[str], scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    command = ["bash", "-c", BASH, "bash", str(scripts / "bash"), "trivium", *words.split(" ")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=SECONDS)
    assert not done.stderr
    assert set(done.stdout.split("\n")[:-1]) == wanted


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_script(scripts: Path) -> None:
    done = subprocess.run(["zsh", "-n", scripts / "zsh"], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(scripts: Path) -> None:
    text = f"source {scripts / 'fish'}; complete -C 'trivium serve --profile tri'; complete -C 'trivium ser'"
    done = subprocess.run(["fish", "-c", text], capture_output=True, text=True, timeout=SECONDS)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["triton", "serve"]
