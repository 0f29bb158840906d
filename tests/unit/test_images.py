"""The Dockerfiles of the images: made of their one template, so that they differ in base and PyTorch alone."""

import importlib.util
import json
from pathlib import Path

import pytest
import yaml
from tests.harness.image import ROOT, instructions

DOCKER = ROOT / "docker"
DOCKERFILES = {name: (DOCKER / name / "Dockerfile").read_text() for name in ("cpu", "cuda")}


def made(name: str) -> str:
    """What the template comes to."""
    found = importlib.util.spec_from_file_location("images", DOCKER / "images.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    text: str = module.dockerfile(name)
    return text


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_dockerfile_is_what_the_template_comes_to(name: str) -> None:
    assert DOCKERFILES[name] == made(name), "run `python docker/images.py`"


def test_images_differ_in_base_and_pytorch_alone() -> None:
    cpu, cuda = (list(instructions(DOCKERFILES[name])) for name in ("cpu", "cuda"))
    differing = [each for each in cpu if each not in cuda], [each for each in cuda if each not in cpu]
    for side in differing:
        assert {each.word for each in side} <= {"FROM", "ARG", "RUN"}
        assert all(" torch" in each.text for each in side if each.word == "RUN")
        assert sum(each.word == "RUN" for each in side) == 1
        assert sum(each.word == "FROM" for each in side) == 1
    assert [each.word for each in cpu if each.word not in ("ARG",)] == [
        each.word for each in cuda if each.word not in ("ARG",)
    ]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_last_stage(name: str) -> None:
    every = list(instructions(DOCKERFILES[name]))
    last = every[max(i for i, each in enumerate(every) if each.word == "FROM") :]
    words = {each.word: each.text for each in last}
    assert len([each for each in every if each.word == "FROM"]) >= 3
    user, group = words["USER"].split(":")
    assert int(user) > 0, "a number, so that Kubernetes sees that it is not root's"
    assert group == "0"
    assert json.loads(words["ENTRYPOINT"]) == ["/usr/local/bin/dockerd-entrypoint.sh"]
    assert "healthcheck" in words["HEALTHCHECK"]
    assert not [
        each
        for each in every
        if any(word in each.text for word in ("gcc", "g++", "build-essential", "clang"))
    ]
    assert not [each for each in last if "pip" in each.text.split()]


def test_what_an_image_is_built_of_is_let_in() -> None:
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for each in instructions(DOCKERFILES["cpu"]):
        if each.word == "COPY" and "--from" not in each.text:
            for source in each.text.split()[:-1]:
                assert any(Path(source).match(pattern) for pattern in let_in), f"{source} is kept out"
                assert (ROOT / source).exists()


def test_compose_names_files_that_are_there() -> None:
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    assert set(services) == {"trivium", "prometheus", "grafana"}
    for service in services.values():
        assert service["read_only"] is True
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DOCKER / source).exists(), source


def test_prometheus_asks_where_the_server_answers() -> None:
    jobs = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())["scrape_configs"]
    assert jobs[0]["static_configs"] == [{"targets": ["trivium:8080"]}]
