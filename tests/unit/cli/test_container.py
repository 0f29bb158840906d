"""What a container's first process becomes, by its words, its variables and what has been mounted; and its health."""

from pathlib import Path

import pytest

from trivium.cli.container import MARK, surroundings
from trivium.cli.container_policy import Surroundings, container_start, health_places

TORCHSERVE = ("torchserve", "--start", "--ts-config", "/home/model-server/config.properties")
REPOSITORY = Surroundings(has_repository=True)
STORE, ARCHIVES = Surroundings(has_model_store=True), Surroundings(has_archives=True)
OF_SAGEMAKER = ("--model-store", "/opt/ml/model", "--models", "all", "--disable-token-auth")


@pytest.mark.parametrize(
    ("words", "around", "command"),
    [
        ((), Surroundings(), ("djl-serving",)),
        (("serve",), Surroundings(), ("djl-serving",)),
        (("serve",), STORE, (*TORCHSERVE, "--foreground")),
        (("serve",), Surroundings(has_config=True), (*TORCHSERVE, "--foreground")),
        (("serve",), ARCHIVES, (*TORCHSERVE, *OF_SAGEMAKER, "--foreground")),
        (("serve",), REPOSITORY, ("trivium", "serve", "/opt/ml/model", "--open", "--http-port", "8080")),
        (
            ("serve",),
            Surroundings({"SAGEMAKER_BIND_TO_PORT": "9000"}, has_repository=True),
            ("trivium", "serve", "/opt/ml/model", "--open", "--http-port", "9000"),
        ),
        (("serve", "-m", "a=/b"), STORE, ("djl-serving", "-m", "a=/b")),
        (("serve",), Surroundings({"SERVE_AS": "torchserve"}), (*TORCHSERVE, "--foreground")),
        (("serve",), Surroundings({"SERVE_AS": "djl-serving"}, has_model_store=True), ("djl-serving",)),
        (("torchserve", "--start", "--ncs"), STORE, ("torchserve", "--start", "--ncs", "--foreground")),
        (("torchserve", "--foreground", "--start"), STORE, ("torchserve", "--foreground", "--start")),
        (("torchserve", "--model-store", "x"), STORE, ("torchserve", "--model-store", "x", "--foreground")),
        (("torchserve", "--version"), STORE, ("torchserve", "--version")),
        (("torchserve", "--stop"), STORE, ("torchserve", "--stop")),
        (
            ("tritonserver", "--model-repository=/models"),
            STORE,
            ("tritonserver", "--model-repository=/models"),
        ),
        (("sh", "-c", "true"), Surroundings(), ("sh", "-c", "true")),
        (("trivium", "check", "/models"), Surroundings(), ("trivium", "check", "/models")),
    ],
)
def test_what_is_run(words, around, command) -> None:
    assert container_start(words, around).words == command


@pytest.mark.parametrize(
    ("words", "given", "variables"),
    [
        (("serve",), {}, {"MODEL_SERVER_HOME": "/opt/djl"}),
        (
            ("serve",),
            {"SAGEMAKER_BIND_TO_PORT": "9000"},
            {
                "MODEL_SERVER_HOME": "/opt/djl",
                "SERVING_INFERENCE_ADDRESS": "http://0.0.0.0:9000",
                "SERVING_MANAGEMENT_ADDRESS": "http://0.0.0.0:9000",
            },
        ),
        (
            ("serve",),
            {"SAGEMAKER_BIND_TO_PORT": "9000", "SERVE_AS": "torchserve"},
            {"TS_INFERENCE_ADDRESS": "http://0.0.0.0:9000", "TS_MANAGEMENT_ADDRESS": "http://0.0.0.0:9000"},
        ),
        (("trivium", "serve", "/models"), {}, {"TRIVIUM_HOST": "0.0.0.0"}),
        (("trivium", "check", "/models"), {}, {}),
        (("tritonserver",), {"SAGEMAKER_BIND_TO_PORT": "9000"}, {}),
    ],
)
def test_variables_that_it_gets(words, given, variables) -> None:
    assert container_start(words, Surroundings(given)).variables == variables


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"SERVE_AS": "triton"}, "SERVE_AS is 'triton'; expected one of djl-serving, torchserve, trivium"),
        ({"SAGEMAKER_BIND_TO_PORT": "http"}, "SAGEMAKER_BIND_TO_PORT is 'http'; expected a port"),
    ],
)
def test_variables_that_cannot_be(given, words) -> None:
    with pytest.raises(ValueError, match=words):
        container_start(("serve",), Surroundings(given))


@pytest.mark.parametrize(
    ("files", "variables", "seen"),
    [
        ([], {}, (False, False, False, False)),
        (["home/model-server/model-store/a.mar"], {}, (True, False, False, False)),
        (["home/model-server/model-store/.keep"], {}, (False, False, False, False)),
        (["opt/ml/model/a.mar"], {}, (False, False, True, False)),
        (["opt/ml/model/serving.properties"], {}, (False, False, False, False)),
        (["opt/ml/model/x/config.pbtxt"], {}, (False, False, False, True)),
        (["home/model-server/config.properties"], {}, (False, True, False, False)),
        ([], {"TS_CONFIG_FILE": "/x"}, (False, True, False, False)),
    ],
)
def test_what_is_seen_of_folders(tmp_path: Path, files, variables, seen) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("a=b")
    assert surroundings(variables, tmp_path)[1:] == seen


def test_the_images_own_configuration_is_no_sign_of_torchserve(tmp_path: Path) -> None:
    file = Path(__file__).parents[3] / "docker" / "torchserve.properties"
    assert file.read_text().startswith(MARK)
    (tmp_path / "home/model-server").mkdir(parents=True)
    (tmp_path / "home/model-server/config.properties").write_text(file.read_text())
    assert not surroundings({}, tmp_path).has_config


def test_where_health_is_asked() -> None:
    assert health_places({})[0] == "http://127.0.0.1:8080/ping"
    assert health_places({"SAGEMAKER_BIND_TO_PORT": "9000"})[0] == "http://127.0.0.1:9000/ping"
    assert health_places({"HEALTH_URL": "http://x/y"}) == ("http://x/y",)
