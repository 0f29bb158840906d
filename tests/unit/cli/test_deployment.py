"""What a cluster is told of a folder, and the files that say it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.harness.virtual_models import make_spec

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


def deployment(path: Path, name: str = "iris", gpus: tuple[int, ...] = (), **words: str):
    group = InstanceGroup(name, device=Device.GPU if gpus else Device.CPU, device_ids=gpus)
    spec = replace(make_spec(), name=name, groups=(group,), engine="onnx")
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
    made = TARGETS[target](deployment(tmp_path / "a'b", image="here/it:7", engine_parameters=trust))
    read = {name: yaml.safe_load(text) for name, text in made.items()}
    assert all(read.values())
    whole = "".join(made.values())
    assert "here/it" in whole
    assert (trust in whole) == (target != "ray")


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
