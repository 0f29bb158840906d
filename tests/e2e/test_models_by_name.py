"""Models by name: a hub on loopback that a real server, `trivium pull`, `list` and `rm` ask, and S3 beside it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.harness.djl_folders import make
from tests.harness.djl_serving import djl_serving
from tests.harness.hub import Hub, HubRepository, folder_files, hub, variables
from tests.harness.language_models import write
from tests.harness.llm_folders import EMPTY_WEIGHTS
from tests.harness.raw_http import post
from tests.harness.server_process import COMMAND, SECONDS, ServerProcess, environment, running, started, until
from tests.harness.web import s3, web

SMALL = {"config.json": b"{}", "model.safetensors": EMPTY_WEIGHTS, "tokenizer.json": b'{"version": "1.0"}'}
LONG = 25 * 10**6
"""Bytes of a file of which the library writes more than one piece."""

SECRET = "hf_token_of_a_test"
FAST = ("--engine-parameters", "hf.threads=1,hf.max_context=64,hf.slots=2")
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("tiny")
    write(folder, "llama")
    return folder_files(folder)


@pytest.fixture
def repositories(tiny: dict[str, bytes]) -> dict[str, HubRepository]:
    extra = {"pytorch_model.bin": b"pickle", "README.md": b"#", "evil.py": b"raise SystemExit"}
    return {
        "acme/tiny": HubRepository({**tiny, **extra}, refs=("main", "v1")),
        "acme/gated": HubRepository(SMALL, token=SECRET, status=403),
        "acme/private": HubRepository(SMALL, token=SECRET, status=401, code="RepoNotFound"),
        "acme/huge": HubRepository(SMALL, announced={"model.safetensors": 10**13}),
        "acme/many": HubRepository(SMALL, listed=20_000),
        "acme/long": HubRepository({**SMALL, "model.safetensors": os.urandom(LONG)}),
        "acme/odd": HubRepository({**SMALL, "../../evil.json": b"{}", "a/../../b.json": b"{}"}),
    }


@pytest.fixture
def running_hub(repositories: dict[str, HubRepository]) -> Iterator[Hub]:
    with hub(repositories) as one:
        yield one


def trivium(
    *words: str | Path, given: Mapping[str, str], folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**environment(), **given},
        cwd=folder,
        check=False,
    )


def refused(*words: str, given: Mapping[str, str], folder: Path | None = None) -> str:
    done = trivium(*words, given=given, folder=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


def answer(server: ServerProcess, model: str) -> str:
    asked = {"model": model, "prompt": "def ", "max_tokens": 4, "temperature": 0}
    found = server.ask(post("/v1/completions", json.dumps(asked).encode()))
    assert found.status == 200, found
    text: str = found.document["choices"][0]["text"]
    return text


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if not path.is_dir()}


# -- serving ---------------------------------------------------------------------------------------------


def test_a_model_is_served_by_its_name_and_offline_from_the_cache(running_hub: Hub, tmp_path: Path) -> None:
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    scratch.mkdir()
    given = variables(running_hub.url, home, HF_TOKEN=SECRET, TMPDIR=str(scratch))
    with running(tmp_path / "first", "serve", "acme/tiny@v1", *FAST, variables=given) as server:
        until(server.is_ready, server.said)
        text = answer(server, "tiny")
        (served,) = scratch.glob("*/fetched-*/files/tiny")
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= files_of(served)
        assert not {"evil.py", "pytorch_model.bin", "README.md"} & files_of(served)
        assert all(file.resolve().is_relative_to(home) for file in served.iterdir())
        said = server.said()
        assert "hf://acme/tiny@v1" in said
        assert "fetching acme/tiny@v1: 0 bytes of " in said
        assert SECRET not in said
    assert not {"evil.py", "pytorch_model.bin", "README.md"} & set(running_hub.files())
    assert running_hub.tokens == {f"Bearer {SECRET}"}
    assert not list(scratch.glob("*/fetched-*"))
    running_hub.asked.clear()
    offline = {**given, "HF_HUB_OFFLINE": "1"}
    with running(tmp_path / "second", "serve", "hf://acme/tiny@v1", *FAST, variables=offline) as server:
        until(server.is_ready, server.said)
        assert answer(server, "tiny") == text
    assert running_hub.asked == []
    with running(
        tmp_path / "third", "serve", "acme/tiny@v1", *FAST, variables={**given, "HF_ENDPOINT": NOBODY}
    ) as server:
        until(server.is_ready, server.said)
        assert "is taken from the cache as it is" in server.said()


def test_a_registration_needs_the_servers_permission(running_hub: Hub, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    given = variables(running_hub.url, tmp_path / "home")
    for place, status in (("", 403), ("hf://acme/other", 403), ("hf://acme", 200)):
        own = {**given, "TRIVIUM_FETCH_FROM": place}
        with djl_serving(tmp_path / "log", "-s", str(store), variables=own) as server:
            found = server.manage("POST", "/models?url=hf://acme/tiny&model_name=m")
            assert found.status == status, found
            if status == 200:
                assert server.status_of("m") == "Healthy"
            else:
                assert running_hub.asked == []
    large = variables(
        running_hub.url, tmp_path / "home2", TRIVIUM_FETCH_FROM="hf", TRIVIUM_FETCH_BYTES="1000"
    )
    with djl_serving(tmp_path / "log", "-s", str(store), variables=large) as server:
        found = server.manage("POST", "/models?url=hf://acme/tiny&model_name=m")
        assert found.status == 413, found
        assert not list(tmp_path.glob("home2/hub/*/blobs/*"))


def test_files_of_djl_name_models_of_the_hub_and_of_s3(
    running_hub: Hub, tiny: dict[str, bytes], tmp_path: Path
) -> None:
    made = make(
        tmp_path, "lmi", "option.rolling_batch=auto", "option.model_id=acme/tiny", "option.revision=v1"
    )
    given = variables(running_hub.url, tmp_path / "home", COLUMNS="300")
    said = refused("check", str(made), given=given)
    assert "option.model_id=acme/tiny: hf://acme/tiny is not among the places" in said
    assert running_hub.asked == []
    for own in (
        {**given, "TRIVIUM_FETCH_FROM": "hf"},
        {**given, "TRIVIUM_FETCH_FROM": "hf", "HF_HUB_OFFLINE": "1"},
    ):
        done = trivium("check", made, given=own)
        assert done.returncode == 0, done.stdout + done.stderr
    far = make(tmp_path, "far", "option.rolling_batch=auto", "option.model_id=s3://bucket/models/tiny")
    objects = {f"bucket/models/tiny/{name}": data for name, data in tiny.items()}
    with web(s3(objects)) as store:
        aws = {
            **given,
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        assert "option.model_id=s3://bucket/models/tiny" in refused("check", str(far), given=aws)
        assert store.asked == []
        for words in ((far, "--fetch-from", "s3://bucket"), ("s3://bucket/models/tiny",)):
            done = trivium("check", *words, given=aws)
            assert done.returncode == 0, done.stdout + done.stderr


def test_the_variable_of_lmi_names_a_model(running_hub: Hub, tmp_path: Path) -> None:
    given = variables(running_hub.url, tmp_path / "home", HF_MODEL_ID="acme/tiny")
    with djl_serving(tmp_path / "log", variables=given) as server:
        until(lambda: server.status_of("tiny") == "Healthy", server.said)
        body = json.dumps({"inputs": "def ", "parameters": {"max_new_tokens": 3}}).encode()
        found = server.infer("POST", "/predictions/tiny", body, "Content-Type: application/json\r\n")
        assert (found.status, "generated_text" in found.document) == (200, True), found


# -- the cache --------------------------------------------------------------------------------------------


def test_pull_list_and_rm(running_hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    given = variables(running_hub.url, home)
    assert "No models in" in trivium("list", given=given).stdout
    done = trivium("pull", "acme/tiny", given=given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("acme/tiny: ")
    assert str(home) in done.stdout
    assert trivium("pull", "acme/tiny@v1", given=given).returncode == 0
    assert "evil.py" not in running_hub.files()
    assert running_hub.files().count("model.safetensors") == 1
    assert trivium("pull", "--trust-remote-code", "acme/tiny", given=given).returncode == 0
    assert "evil.py" in running_hub.files()
    listed = trivium("list", given=given).stdout
    assert "acme/tiny" in listed
    assert "main, v1" in listed
    assert "Did you mean acme/tiny?" in refused("rm", "acme/tinyy", given=given)
    assert "it has main, v1" in refused("rm", "acme/tiny@v7", given=given)
    done = trivium("rm", "acme/tiny", given=given)
    assert (done.returncode, "acme/tiny removed" in done.stdout) == (0, True)
    assert not list((home / "hub").glob("models--*"))


def test_code_in_the_cache_is_not_served_without_trust(running_hub: Hub, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    given = variables(running_hub.url, tmp_path / "home", TMPDIR=str(scratch))
    assert trivium("pull", "--trust-remote-code", "acme/tiny", given=given).returncode == 0
    for trust, has_code in (("false", False), ("true", True)):
        parameters = f"{FAST[1]},hf.trust_remote_code={trust}"
        words = ("acme/tiny", "--engine-parameters", parameters)
        with running(tmp_path / "log", "serve", *words, variables=given) as server:
            until(server.is_ready, server.said)
            (served,) = scratch.glob("*/fetched-*/files/tiny")
            assert ((served / "evil.py").exists()) is has_code


def test_a_link_that_leads_out_of_the_cache_is_not_followed(running_hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    given = variables(running_hub.url, home)
    assert trivium("pull", "acme/tiny", given=given).returncode == 0
    (config,) = (home / "hub").glob("models--acme--tiny/snapshots/*/config.json")
    config.unlink()
    config.symlink_to("/etc/passwd")
    said = refused("check", "acme/tiny", given={**given, "HF_HUB_OFFLINE": "1", "COLUMNS": "300"})
    assert "its link leads elsewhere" in said


def test_a_cut_connection_is_gone_on_with(
    running_hub: Hub, repositories: dict[str, HubRepository], tmp_path: Path
) -> None:
    repositories["acme/long"].cuts["model.safetensors"] = 1
    done = trivium("pull", "acme/long", given=variables(running_hub.url, tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    ranges = [asked for _, path, asked in running_hub.asked if path.endswith("model.safetensors") and asked]
    assert ranges, running_hub.asked
    (weights,) = tmp_path.glob("home/hub/*/snapshots/*/model.safetensors")
    assert weights.read_bytes() == repositories["acme/long"].files["model.safetensors"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_fetch_ends_with_who_asked_and_goes_on_with_what_lacks(
    number: signal.Signals, running_hub: Hub, repositories: dict[str, HubRepository], tmp_path: Path
) -> None:
    repositories["acme/long"].holds.add("model.safetensors")
    given = variables(running_hub.url, tmp_path / "home")
    blobs = tmp_path / "home" / "hub" / "models--acme--long" / "blobs"

    def unfinished() -> list[Path]:
        return [path for path in blobs.glob("*.incomplete") if path.stat().st_size > 0]

    def is_under_way() -> bool:
        return bool(unfinished()) and {"config.json", "tokenizer.json"} <= set(running_hub.files())

    with started(
        tmp_path / "log", *COMMAND, "pull", "acme/long", variables={**environment(), **given}
    ) as process:
        until(is_under_way, lambda: str(running_hub.asked))
        process.send_signal(number)
        process.wait(SECONDS)
    fetching = tmp_path / "home"
    until(lambda: not _processes_with(str(fetching)), lambda: "it goes on")
    repositories["acme/long"].holds.clear()
    running_hub.asked.clear()
    assert trivium("pull", "acme/long", given=given).returncode == 0
    assert "model.safetensors" in running_hub.files()


def _processes_with(home: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"HF_HOME={home}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("acme/none", {}, "has no model acme/none, or does not show it"),
        ("acme/private", {}, "or set HF_TOKEN to a token that may read it"),
        ("acme/tiny@v7", {}, "acme/tiny has no revision 'v7'"),
        ("acme/gated", {}, "no token is set"),
        ("acme/gated", {"HF_TOKEN": "hf_other_token"}, "the token that is set has no access to it"),
        ("acme/huge", {}, "10 TB are to be fetched"),
        ("acme/many", {}, "lists more than 10000 files"),
        ("acme/absent", {"HF_ENDPOINT": NOBODY}, "cannot be reached ([Errno 111] Connection refused)"),
        ("acme/absent", {"HF_ENDPOINT": "http://hub.invalid"}, "http://hub.invalid cannot be reached"),
        ("acme/absent", {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE says that the hub is not asked"),
    ],
)
def test_each_refusal_has_its_sentence(
    name: str, more: dict[str, str], words: str, running_hub: Hub, tmp_path: Path
) -> None:
    given = variables(running_hub.url, tmp_path / "home", **more)
    began = time.monotonic()
    said = refused("pull", name, given=given)
    assert words in said
    assert time.monotonic() - began < SECONDS / 2
    assert "hf_other_token" not in said
    assert running_hub.files() == []


def test_a_full_disk_is_told(running_hub: Hub, tmp_path: Path) -> None:
    """By a bound on the size of files, which fails as a full disk does."""
    given = {**environment(), **variables(running_hub.url, tmp_path / "home")}
    words = " ".join(COMMAND)
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1000; trap '' XFSZ; exec {words} pull acme/long"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=given,
        check=False,
    )
    assert done.returncode == 1
    assert "acme/long could not be fetched" in " ".join(done.stderr.split())
    assert not list(tmp_path.glob("home/hub/*/blobs/*.incomplete"))


def test_names_that_lead_out_are_not_fetched(running_hub: Hub, tmp_path: Path) -> None:
    done = trivium("pull", "acme/odd", given=variables(running_hub.url, tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    assert sorted(running_hub.files()) == sorted(SMALL)
    assert not list(tmp_path.rglob("evil.json"))


def test_what_is_there_goes_first_and_a_mistyped_path_asks_nobody(
    running_hub: Hub, tiny: dict[str, bytes], tmp_path: Path
) -> None:
    given = variables(running_hub.url, tmp_path / "home", COLUMNS="300")
    folder = tmp_path / "acme" / "tiny"
    folder.mkdir(parents=True)
    for name, data in tiny.items():
        (folder / name).write_bytes(data)
    done = trivium("check", "acme/tiny", given=given, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for command in ("serve", "check"):
        said = refused(command, "acme/tinny", given=given, folder=tmp_path)
        assert "No such file or directory: acme/tinny. Did you mean acme/tiny?" in said
    assert "No such file or directory" in refused("serve", "tiny", given=given, folder=tmp_path)
    assert running_hub.asked == []


def test_without_the_library_the_refusal_says_how_to_install_it(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from trivium.cli.main import main; main(['pull', 'acme/tiny'])"
    )
    done: Any = subprocess.run(
        [COMMAND[0], "-c", program],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1
    assert "huggingface_hub, which is not installed" in done.stderr
