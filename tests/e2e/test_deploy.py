"""What `trivium deploy` writes, judged by those who read it: Helm and Kubernetes' schemas, KServe's SDK, Compose's
schema, Ray's schema; and by what is served, when the processes are started as it says.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures import boxes
from tests.harness import mlflow_folders, table_models
from tests.harness.commands import refusal, trivium
from tests.harness.digit_networks import write_onnx
from tests.harness.raw_http import ask, get
from tests.harness.server_process import COMMAND, SECONDS, running, until
from tests.harness.task_models import write_task

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
HELM, KSERVE, RAY = (ROOT / f".venv-{name}" / "bin" / "python" for name in ("helm", "kserve", "ray"))
HANDLER = "def handle(inputs):\n    return None\n"


def handler(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(HANDLER)
    (folder / "serving.properties").write_text("engine=Python\n")


def repository(folder: Path, *names: str) -> None:
    for name in names:
        write_onnx(folder / name / "1" / "model.onnx")
        (folder / name / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\n')


FOLDERS: dict[str, tuple[str, Callable[[Path], Any], list[str], str]] = {
    "a file": ("boosted.ubj", lambda path: table_models.write(path, "xgboost"), ["boosted"], "xgboost"),
    "a file with an odd name": ("My_Net.onnx", write_onnx, ["My_Net"], "onnx"),
    "a folder with a file": ("iris", lambda path: write_onnx(path / "net.onnx"), ["iris"], "onnx"),
    "a repository": ("store", lambda path: repository(path, "a", "b"), ["a", "b"], "trivium"),
    "a repository of one": ("store", lambda path: repository(path, "a"), ["a"], "onnx"),
    "a handler": ("words", handler, ["words"], "trivium"),
    "of MLflow": ("flow", mlflow_folders.write_xgboost, ["flow"], "mlflow"),
    "of texts": ("feeling", lambda path: write_task(path, "classes"), ["feeling"], "huggingface"),
}


def deployed(path: Path, target: str, into: Path, *words: str) -> dict[str, Any]:
    """The files that are written, read."""
    done = trivium("deploy", path, "--to", target, "-o", into, *words)
    assert done.returncode == 0, done.stdout
    return {file.name: yaml.safe_load(file.read_text()) for file in into.iterdir()}


def mounted(path: Path, mount: Path) -> Path:
    """The folder as a volume has it: what is in it, or the file."""
    mount.parent.mkdir(parents=True)
    if path.is_dir():
        shutil.copytree(path, mount)
    else:
        mount.mkdir()
        shutil.copy(path, mount)
    return mount


def served(*places: str) -> list[str]:
    """The names under which `trivium serve` would serve these places."""
    done = trivium("check", *places)
    assert done.returncode == 0, done.stdout
    return sorted(
        line.split()[1].rstrip(",") for line in done.stdout.splitlines() if line.startswith("model ")
    )


@pytest.mark.parametrize("kind", FOLDERS)
def test_models_keep_their_names_wherever_they_are_deployed(kind: str, tmp_path: Path) -> None:
    name, write, models, kserve_format = FOLDERS[kind]
    path = tmp_path / name
    write(path)
    mount = mounted(path, tmp_path / "mnt" / "models")
    made = deployed(path, "kserve", tmp_path / "kserve")
    (container,) = made["runtime.yaml"]["spec"]["containers"]
    service = made["inferenceservice.yaml"]
    assert service["spec"]["predictor"]["model"]["modelFormat"] == {"name": kserve_format}
    place = container["args"][2].replace("{{.Name}}", service["metadata"]["name"])
    assert served(place.replace("/mnt/models", str(mount))) == models
    values = deployed(path, "helm", tmp_path / "helm")["values.yaml"]
    assert served(*(each.replace("/models", str(mount)) for each in values["models"]["places"])) == models
    made = deployed(path, "ray", tmp_path / "ray")["rayservice.yaml"]
    (application,) = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"]
    (place,) = application["args"]["paths"]
    pods = [
        made["spec"]["rayClusterConfig"]["headGroupSpec"],
        *made["spec"]["rayClusterConfig"]["workerGroupSpecs"],
    ]
    for each in pods:
        (held,) = each["template"]["spec"]["containers"]
        assert held["volumeMounts"] == [{"name": "models", "mountPath": place, "readOnly": True}]
    there = tmp_path / "volume" / Path(place).name
    there.parent.mkdir()
    mount.rename(there)
    assert served(str(there)) == models


def test_what_compose_starts_answers(tmp_path: Path) -> None:
    path = table_models.write(tmp_path / "it's $HOME" / "boosted.ubj", "xgboost")
    (service,) = deployed(path, "compose", tmp_path / "made")["compose.yaml"]["services"].values()
    (volume,) = service["volumes"]
    assert volume["source"].replace("$$", "$") == str(path)
    words = [word.replace("$$", "$").replace(volume["target"], str(path)) for word in service["command"]]
    assert words[:2] == ["trivium", "serve"]
    with running(tmp_path / "log", *words[1:]) as server:
        until(lambda: ask(server.port, get("/v2/models/boosted/ready")).status == 200, server.said)
    if HELM.exists():
        judged = judge(
            HELM.with_name("check-jsonschema"),
            "--builtin-schema",
            "vendor.compose-spec",
            tmp_path / "made" / "compose.yaml",
        )
        assert judged.returncode == 0, judged.stdout
        wrong = tmp_path / "wrong.yaml"
        wrong.write_text("services: {trivium: {imag: x}}\n")
        assert (
            judge(
                HELM.with_name("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", wrong
            ).returncode
            == 1
        )


def judge(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.skipif(not HELM.exists(), reason="make e2e installs Helm")
@pytest.mark.parametrize("kind", ["a file", "a repository"])
def test_helm_and_kubernetes_take_what_is_written(kind: str, tmp_path: Path) -> None:
    name, write, _, _ = FOLDERS[kind]
    write(tmp_path / name)
    values = deployed(tmp_path / name, "helm", tmp_path / "made", "--gpus", "0")["values.yaml"]
    done = subprocess.run(
        [HELM, HERE / "helm" / "render.py", ROOT / "deploy" / "helm" / "trivium"],
        input=json.dumps([values]),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (objects,) = json.loads(done.stdout.splitlines()[-1])
    (pod,) = (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment")
    assert pod["containers"][0]["args"][2] == values["models"]["places"][0]
    deployed(tmp_path / name, "ray", tmp_path / "ray")
    found = judge(HELM, HERE / "helm" / "pods.py", tmp_path / "ray" / "rayservice.yaml")
    assert (found.returncode, found.stdout) == (0, "2\n"), found.stderr


@pytest.mark.skipif(not RAY.exists(), reason="make ray installs Ray")
def test_ray_takes_what_is_written(tmp_path: Path) -> None:
    repository(tmp_path / "store", "a")
    deployed(tmp_path / "store", "ray", tmp_path / "made", "--engine-parameters", "onnx.threads=1")
    found = judge(RAY, HERE / "helm" / "ray_service.py", tmp_path / "made" / "rayservice.yaml")
    assert found.returncode == 0, found.stderr
    ((names, built),) = json.loads(found.stdout.splitlines()[-1])
    assert names == ["trivium"]
    assert built in (None, "trivium")


@pytest.mark.skipif(not KSERVE.exists(), reason="make e2e installs KServe's SDK")
def test_kserves_sdk_knows_every_word(tmp_path: Path) -> None:
    """Of what is in our folder, and of what is written for a model."""
    table_models.write(tmp_path / "digits.ubj", "xgboost")
    deployed(tmp_path / "digits.ubj", "kserve", tmp_path / "made", "--engine-parameters", "xgboost.threads=1")
    files = [*(ROOT / "deploy" / "kserve").glob("*.yaml"), *(tmp_path / "made").glob("*.yaml")]
    read = judge(KSERVE, HERE / "kserve_client" / "objects.py", *files)
    assert (read.returncode, read.stderr) == (0, "")
    assert read.stdout.splitlines() == ["42"]


def test_nothing_is_written_over_and_nothing_that_cannot_be_served(tmp_path: Path) -> None:
    write_onnx(tmp_path / "net.onnx")
    deployed(tmp_path / "net.onnx", "helm", tmp_path / "made")
    before = (tmp_path / "made" / "values.yaml").read_bytes()
    assert "is there already" in refusal(
        "deploy", tmp_path / "net.onnx", "--to", "helm", "-o", tmp_path / "made"
    )
    assert (tmp_path / "made" / "values.yaml").read_bytes() == before
    (tmp_path / "bad.onnx").write_bytes(b"x")
    assert "Nothing is written" in refusal(
        "deploy", tmp_path / "bad.onnx", "--to", "helm", "-o", tmp_path / "none"
    )
    assert not (tmp_path / "none").exists()


def archive(folder: Path) -> None:
    boxes.torchserve(folder.parent)  # which makes model_store


def test_a_name_that_no_manifest_can_hold_is_said(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff/words"))
    handler(path)
    words = [*COMMAND, "deploy", path, "--to", "compose", "-o", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "UTF-8" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


PAGES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "start": ("words", handler),
    "moving-from-triton": ("models", lambda path: repository(path, "simple")),
    "moving-from-torchserve": ("model_store", archive),
    "moving-from-djl-serving": ("models", lambda path: handler(path / "words")),
    "kubernetes": ("models", lambda path: repository(path, "a", "b")),
}
_COMMAND = re.compile(r"^\$ ((?:trivium deploy|kubectl apply|helm upgrade).*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page(page: str, tmp_path: Path) -> None:
    """What deploys is run; of what is for a cluster the files are there."""
    name, write = PAGES[page]
    write(tmp_path / name)
    commands = _COMMAND.findall((ROOT / "docs" / f"{page}.md").read_text())
    assert any(each.startswith("trivium deploy") for each in commands)
    for each in dict.fromkeys(commands):
        words = shlex.split(each)
        if words[0] == "trivium":
            done = subprocess.run(
                [*COMMAND, *words[1:]],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            continue
        files = [words[at + 1] for at, word in enumerate(words) if word == "-f"]
        charts = [word for word in words if word.startswith("deploy/helm")]
        assert files
        for file in (*files, *charts):
            assert (tmp_path / file).exists() or (ROOT / file).exists(), f"{each}: {file} is not there"
