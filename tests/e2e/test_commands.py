"""The commands as a person calls them: their refusals, their exit status, what they print."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.commands import USAGE, refusal, trivium
from tests.harness.raw_http import echo_request, get, infer, post
from tests.harness.server_process import SECONDS, ServerProcess, running, serve

from trivium.catalogue import CATALOGUE
from trivium.demo import places


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A repository with one good model."""
    models.identity(tmp_path / "models", "echo", rows=16)
    return tmp_path / "models"


# -- the command itself ------------------------------------------------------------------------------------


def test_version() -> None:
    assert trivium("--version").stdout.strip() == f"trivium, version {CATALOGUE.version}"


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["serve", "--help"], ["check", "--help"], ["demo", "--help"]]
)
def test_help(words: list[str]) -> None:
    done = trivium(*words)
    assert done.returncode == 0
    for word in ("serve", "check", "demo") if len(words) == 1 else (words[0],):
        assert word in done.stdout


@pytest.mark.parametrize("words", [["serv"], ["serve"], ["serve", "x", "--http-prot", "1"], ["check"]])
def test_what_is_no_command(words: list[str]) -> None:
    assert "--help" in refusal(*words, status=USAGE)


# -- serve -------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken(echo: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refusal("serve", echo, "--http-port", str(port))
    assert f"Cannot listen on 127.0.0.1 port {port}" in said
    assert "--http-port" in said


def test_no_such_file(tmp_path: Path) -> None:
    said = refusal("serve", tmp_path / "nowhere")
    assert "No such file" in said
    assert str(tmp_path / "nowhere") in said


def test_nothing_found(tmp_path: Path) -> None:
    assert "The folder is empty" in refusal("serve", tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    for path in (tmp_path, tmp_path / "notes.txt"):
        said = refusal("serve", path)
        assert f"Nothing to serve was found in {path}" in said
        assert "config.pbtxt" in said
        assert ".onnx" in said
    assert "It holds: notes.txt" in refusal("check", tmp_path)


def test_nothing_that_can_be_served(tmp_path: Path) -> None:
    models.misspelt(tmp_path / "models", "misspelt")
    said = refusal("serve", tmp_path / "models", "--http-port", "0")
    assert "misspelt/config.pbtxt:2" in said
    assert "Nothing can be served" in said


def test_two_models_of_one_name(tmp_path: Path, echo: Path) -> None:
    models.identity(tmp_path / "others", "echo")
    with serve(tmp_path / "log", echo, tmp_path / "others") as server:
        assert "a second model named 'echo'" in server.said()
        assert f"The first is in {echo / 'echo'}" in server.said()
        assert infer(server.port, "echo", [[1, 2, 3, 4]] * 2) == [[1, 2, 3, 4]] * 2


def test_beyond_loopback_only_when_told(tmp_path: Path, echo: Path) -> None:
    said = refusal("serve", echo, "--host", "0.0.0.0")
    assert "--host 0.0.0.0 listens beyond this machine" in said
    assert "--open" in said
    with serve(tmp_path / "log", echo, "--host", "0.0.0.0", "--open") as server:
        assert server.is_ready()
        assert "http://0.0.0.0:" in server.said()


WRONG_OPTIONS = {
    "--http-port 70000": ("--http-port", "from 0 to 65535"),
    "--max-connections 0": ("--max-connections", "from 1"),
    "--slowest-rate 0": ("--slowest-rate", "from 1"),
    "--header-timeout nan": ("--header-timeout", "a number from 0"),
    "--drain-timeout -1": ("--drain-timeout", "a number from 0"),
    "--log-level loud": ("--log-level", "one of debug, info, warning, error"),
    "--access-log /proc/nowhere/log": ("access log /proc/nowhere/log", "--access-log"),
}


@pytest.mark.parametrize("option", WRONG_OPTIONS)
def test_options_that_make_no_sense(echo: Path, option: str) -> None:
    said = refusal("serve", echo, *option.split())
    for words in WRONG_OPTIONS[option]:
        assert words in said


WRONG_FILES = {
    "[http]\nprot = 1": "Did you mean 'port' in [http]?",
    "http_prot = 1": "Did you mean 'port' in [http]?",
    "colour = 'red'": "colour: no such option",
    "[http]\nport = 'many'": "http.port: 'many'; expected a whole number",
    "http_port = [1]": "http_port: [1]; expected a whole number",
    "open = 3": "expected true or false",
    "http_port 8080": "not TOML",
}


@pytest.mark.parametrize("line", WRONG_FILES)
def test_a_wrong_configuration(tmp_path: Path, echo: Path, line: str) -> None:
    file = tmp_path / "trivium.toml"
    file.write_text(line)
    said = refusal("serve", echo, "--config", file)
    assert WRONG_FILES[line] in said
    assert str(file) in said


def test_wrong_configurations_elsewhere(tmp_path: Path, echo: Path) -> None:
    assert "Cannot read the configuration" in refusal("serve", echo, "--config", tmp_path / "none.toml")
    said = refusal("serve", echo, TRIVIUM_QUEUE_ITEMS="few")
    assert "environment: TRIVIUM_QUEUE_ITEMS: 'few'; expected a whole number" in said


def test_flags_over_file(tmp_path: Path, echo: Path) -> None:
    file = tmp_path / "trivium.toml"
    file.write_text("max_connections = 7\n[server]\nmax_body_bytes = 10\n[http]\nport = 1\n")
    with serve(tmp_path / "log", echo, "--config", file, "--max-body-bytes", "20") as server:
        assert "max_connections is max_connections in [server]" in server.said()
        for size, status in ((20, 400), (21, 413)):
            assert server.ask(post("/v2/models/echo/infer", bytes(size))).status == status


def test_an_access_log(tmp_path: Path, echo: Path) -> None:
    log = tmp_path / "access"
    with serve(tmp_path / "log", echo, "--access-log", log) as server:
        server.ask(echo_request("echo", [[1, 2, 3, 4]]))
        server.ask(get("/v2/models/none"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/v2/models/echo/infer", 200),
        ("GET", "/v2/models/none", 404),
    ]


def test_a_request_to_paste_per_model(serving: ServerProcess) -> None:
    serving.await_line(re.compile(r"(?:^curl .*\n){8}", re.MULTILINE))  # printed behind the address
    lines = [line for line in serving.said().splitlines() if line.startswith("curl ")]
    assert len(lines) == 8
    for line in lines:
        answer = json.loads(in_shell(line))
        assert "error" not in answer, (line, answer)
        assert {"outputs", "model_name"} <= set(answer) or "versions" in answer


@pytest.mark.parametrize("profile", ["native", "djl", "torchserve", "triton"])
def test_the_requests_to_paste_are_those_of_the_profile(tmp_path: Path, echo: Path, profile: str) -> None:
    handler = places.handlers()[1]
    with serve(tmp_path / "log", echo, handler, "--profile", profile) as server:
        server.await_line(re.compile(r"^Next: .*\n", re.MULTILINE))
        of_handler, of_echo = (line for line in server.said().splitlines() if line.startswith("curl "))
        for_tensors = "/predictions/echo" if profile in ("djl", "torchserve") else "/v2/models/echo/infer"
        assert f"{server.url}{for_tensors}" in of_echo
        answer = json.loads(in_shell(of_echo))
        if profile == "djl":  # DJL answers a body of tensors in its own JSON, a batch outermost
            assert answer == {"predictions": [[0, 0, 0, 0]]}
        else:
            assert answer["outputs"][0]["data"] == [0, 0, 0, 0]
        if profile == "triton":
            assert json.loads(in_shell(of_handler))["name"] == "digits_djl"
        else:
            assert f"{server.url}/predictions/digits_djl" in of_handler
            assert json.loads(in_shell(with_picture(of_handler)))["digit"] == 7


@pytest.mark.parametrize("profile", ["djl", "torchserve"])
@pytest.mark.parametrize("is_handler", [False, True])
def test_the_only_model_is_asked_without_its_name(
    tmp_path: Path, echo: Path, profile: str, is_handler: bool
) -> None:
    with serve(
        tmp_path / "log", places.handlers()[1] if is_handler else echo, "--profile", profile
    ) as server:
        server.await_line(re.compile(r"^Next: .*\n", re.MULTILINE))
        named, nameless = (line for line in server.said().splitlines() if line.startswith("curl "))
        assert f"{server.url}/invocations" in nameless
        answers = [in_shell(with_picture(line)) for line in (named, nameless)]
        assert json.loads(answers[0]) == json.loads(answers[1])


def with_picture(line: str) -> str:
    """The line with a picture in place of the text that a handler gets, of which it cannot be known what it takes."""
    text = "-H 'Content-Type: application/json' "
    if '-d \'{"inputs": "Hello"}\'' not in line:
        return line
    return line.replace(text, "-X POST ").replace('-d \'{"inputs": "Hello"}\'', f"-T {places.pictures()[7]}")


def in_shell(line: str) -> str:
    """What one line prints; curl must be there."""
    if "curl" in line and not shutil.which("curl"):
        pytest.skip("there is no curl on this machine")
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


# -- check -------------------------------------------------------------------------------------------------


def squeezed(text: str) -> str:
    """Without the places where a line was folded."""
    return "".join(text.split())


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_check_of_good_models(repository: Path, columns: str) -> None:
    done = trivium("check", repository, COLUMNS=columns)
    assert done.returncode == 0, done.stdout
    for name in ("add", "bytes", "kinds", "text"):
        assert f"model {name}, version 1" in done.stdout
    assert f"  read from {repository / 'echo' / 'config.pbtxt'}\n" in done.stdout
    assert "max_batch_size" in done.stdout
    assert "config.pbtxt:2\n" in done.stdout
    assert "further values hold by default (--all lists them)" in done.stdout
    assert "batching.max_batch_size" not in done.stdout


def test_check_lists_all_values(repository: Path) -> None:
    folded = squeezed(trivium("check", "--all", repository, COLUMNS="300").stdout)
    assert "config.pbtxt:2(max_batch_size)" in folded
    assert "inputs[0].datatypeFP32auto-completedfromthemodelfile" in folded
    assert "instances[0].always_open1config.pbtxt:2(instance_group[0].count)" in folded
    assert "furthervalues" not in folded


def test_check_names_what_is_not_served_and_passes(tmp_path: Path) -> None:
    group = 'instance_group [ { count: 1 kind: KIND_CPU host_policy: "near" } ]\n'
    models.identity(tmp_path, "placed", extra=group)
    done = trivium("check", tmp_path / "placed")
    assert done.returncode == 0
    assert "notice " in done.stdout
    assert f"{tmp_path}/placed/config.pbtxt:6" in done.stdout


def test_check_of_bad_models(tmp_path: Path) -> None:
    models.add(tmp_path, "good")
    models.misspelt(tmp_path, "misspelt")
    models.corrupt(tmp_path, "cut", 0.5)
    done = trivium("check", tmp_path)
    assert done.returncode == 1
    assert "model good, version 1" in done.stdout
    assert f"{tmp_path}/misspelt/config.pbtxt:2" in done.stdout
    assert "Did you mean max_batch_size?" in done.stdout
    assert f"{tmp_path}/cut/1/model.onnx" in done.stdout
    assert trivium("check", tmp_path / "good").returncode == 0


# -- demo --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("demo") / "log", "demo") as server:
        server.await_line(re.compile(r"/digits/stats\n"))  # the last one, printed behind the address
        yield server


def printed(demo: ServerProcess, *marks: str) -> list[str]:
    """The shell lines that it prints with all these words in them."""
    starts = (sys.executable, "curl ")
    lines = [line for line in demo.said().splitlines() if line.startswith(starts)]
    return [line for line in lines if all(mark in line for mark in marks)]


def test_every_line_of_the_demo_is_tested(demo: ServerProcess) -> None:
    kinds = (("classify", "--model"), ("--json", "curl"), ("curl", "/stats"), ("curl", "-T"))
    assert [len(printed(demo, *marks)) for marks in kinds] == [2, 1, 1, 6]
    assert len(printed(demo)) == 10


def test_the_demo_behind_handlers_takes_the_picture_itself(demo: ServerProcess) -> None:
    for line in printed(demo, "curl", "-T"):
        found = json.loads(in_shell(line))
        if isinstance(found, list):  # of a translator: the most probable classes
            digit = found[0]["className"]
        else:
            digit = found["digit"] if "digit" in found else found["outputs"][0]["data"][0]
        assert f"digit-{digit}.png" in line
        assert "agree" not in found or found["agree"]


def test_the_demo_reads_digits(demo: ServerProcess) -> None:
    for line in printed(demo, "classify", "--model"):
        picture, _, verdict = in_shell(line).strip().partition(": ")
        digit, _, share = verdict.partition(" ")
        assert picture == f"digit-{digit}.png"
        assert float(share.strip("(% )")) > 50


def test_the_demo_by_curl(demo: ServerProcess) -> None:
    (line,) = printed(demo, "--json")
    (output,) = json.loads(in_shell(line))["outputs"]
    assert "digit-3.png" in line
    assert output["data"].index(max(output["data"])) == 3
    assert sum(output["data"]) == pytest.approx(1, abs=1e-5)
    (line,) = printed(demo, "/stats")
    (version,) = json.loads(in_shell(line))["model_stats"]
    assert (version["name"], version["inference_count"] >= 1) == ("digits", True)
