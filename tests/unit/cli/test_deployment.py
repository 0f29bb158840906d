"""What a cluster is told of a folder, and the files that say it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.harness.virtual_models import make_spec

from trivium.cli.deploy import command
from trivium.cli.deploy_files import TARGETS
from trivium.cli.deployment import default_image, deployment_of, grace_seconds, object_name
from trivium.cli.kserve_objects import cluster_files
from trivium.types.spec import Device, InstanceGroup

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "label"),
    [("iris", "iris"), ("My_Model", "my-model"), ("0.5B", "m-0-5b"), ("--", "m"), ("a" * 90, "a" * 40)],
)
def test_names_of_objects(name: str, label: str) -> None:
    assert object_name(name) == label


def deployment(path: Path, model: str = "iris", gpus: tuple[int, ...] = (), **words: str):
    group = InstanceGroup(model, device=Device.GPU if gpus else Device.CPU, device_ids=gpus)
    spec = replace(make_spec(), name=model, groups=(group,), engine="onnx")
    return deployment_of(path, [spec], **words)


def test_memory_and_gpus_come_from_files_and_groups(tmp_path: Path) -> None:
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(2**30)
    found = deployment(tmp_path, gpus=(0, 1))
    assert (found.gpus, found.memory, found.image) == (2, "2304Mi", default_image(1))
    assert found.image.endswith("-cuda")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_yaml_with_the_image_and_the_parameters(target: str, tmp_path: Path) -> None:
    trust = "sklearn.trust_insecure_model_files=true"
    made = TARGETS[target](deployment(tmp_path, image="here/it:7", engine_parameters=trust))
    read = {name: yaml.safe_load(text) for name, text in made.items()}
    assert all(read.values())
    whole = "".join(made.values())
    assert "here/it" in whole
    assert trust in whole


NASTY = "a'b\"c\\d $HOME #e: {f}\nkind: g"


@pytest.mark.parametrize("target", TARGETS)
def test_no_name_of_a_file_changes_what_the_rest_says(target: str, tmp_path: Path) -> None:
    parameters = f"onnx.x={NASTY}"
    plain, odd = (
        {
            name: text
            for made in (
                TARGETS[target](
                    deployment(tmp_path / each, each, name="iris", engine_parameters=f"onnx.x={each}")
                ),
            )
            for name, text in made.items()
        }
        for each in ("plain", NASTY)
    )
    assert shape({name: yaml.safe_load(text) for name, text in plain.items()}) == shape(
        {name: yaml.safe_load(text) for name, text in odd.items()}
    )
    whole = json.dumps([yaml.safe_load(text) for text in odd.values()])
    shown = parameters.replace("$", "$$") if target == "compose" else parameters
    if target == "ray":
        shown = json.loads(json.dumps(shown))
        (application,) = yaml.safe_load(yaml.safe_load(odd["rayservice.yaml"])["spec"]["serveConfigV2"])[
            "applications"
        ]
        assert application["args"]["engine_parameters"] == shown
    else:
        assert json.dumps(shown)[1:-1] in whole


def shape(data: object) -> object:
    """The keys and types of data, without its texts."""
    if isinstance(data, dict):
        return {key: shape(value) for key, value in data.items()}
    if isinstance(data, list):
        return [shape(value) for value in data]
    return type(data)


def test_the_image_has_one_tag_wherever_it_is_named() -> None:
    named: dict[str, set[str]] = {}
    places = [
        ROOT / "Makefile",
        *(path for top in ("docs", "docker", "deploy") for path in (ROOT / top).rglob("*")),
    ]
    for path in places:
        if path.suffix in ("", ".md", ".yaml", ".template", ".sh") and path.is_file():
            for tag in re.findall(r"\btrivium:(\d[\w.]*)-(?:cpu|cuda|@NAME@)", path.read_text()):
                named.setdefault(tag, set()).add(path.name)
    release = default_image(0).removeprefix("trivium:").removesuffix("-cpu")
    assert set(named) == {release}, named
    assert {"Dockerfile", "compose.yaml", "containers.md", "runtimes.yaml"} <= named[release]
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "trivium" / "Chart.yaml").read_text())
    assert chart["appVersion"] == release, "the chart's own image is appVersion-cpu"


@pytest.mark.parametrize("image", ["a b", "x\ny: z", "{{x}}", "-x"])
def test_an_image_is_a_name(image: str, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    done = CliRunner().invoke(command, [str(tmp_path / "models"), "--to", "helm", "--image", image])
    assert done.exit_code == 2
    assert "is no name of an image" in done.output


def test_a_model_whose_name_no_object_may_have_keeps_it(tmp_path: Path) -> None:
    made = TARGETS["kserve"](deployment(tmp_path, "My_Model"))
    (container,) = yaml.safe_load(made["runtime.yaml"])["spec"]["containers"]
    assert "My_Model=/mnt/models" in container["args"]
    made = TARGETS["kserve"](deployment(tmp_path))
    (container,) = yaml.safe_load(made["runtime.yaml"])["spec"]["containers"]
    assert "{{.Name}}=/mnt/models" in container["args"]


def test_the_grace_period_holds_all_that_comes_before_the_end() -> None:
    assert grace_seconds() == 5 + 25 + 5


def test_the_files_of_kserve_are_those_of_the_table() -> None:
    for name, text in cluster_files(default_image(0)).items():
        assert (ROOT / "deploy" / "kserve" / name).read_text() == text
