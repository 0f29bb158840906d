"""What people report of Ray Serve and KubeRay, staged anew with `trivium.ray:app`: where files are looked for."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import models
from tests.harness.raw_http import ask, get
from tests.harness.server_process import until

pytest.importorskip("ray", reason="Ray is not in this environment; `make ray` makes one that has it.")

from ray import serve
from tests.harness.ray_cluster import RayCluster, ray_cluster

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """A head, and one node for a replica."""
    with ray_cluster(1) as made:
        yield made


def application(path: str, **more: Any) -> dict[str, Any]:
    """One application, of models by a relative path."""
    return {
        "name": "models",
        "route_prefix": "/",
        "import_path": "trivium.ray:app",
        "args": {"paths": [path]},
        "deployments": [{"name": "trivium"}],
        **more,
    }


def test_models_come_in_a_zip_that_the_image_holds(cluster: RayCluster, tmp_path: Path) -> None:
    """kuberay#1086, #510 and ray#33456: the working_dir of a RayService is a zip file beside Ray, not a folder."""
    models.add(tmp_path / "models", "add")
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as packed:
        for file in sorted((tmp_path / "models").rglob("*")):
            packed.write(file, Path("package") / file.relative_to(tmp_path))
    environment = {"working_dir": (tmp_path / "package.zip").as_uri()}
    cluster.deploy(application("models", runtime_env=environment))
    cluster.await_running("models", 1)
    assert ask(cluster.port, get("/v2/models/add")).status == 200


def test_a_path_that_a_node_does_not_have_is_told_as_the_node_sees_it(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """ray#43889 and arcadia#547: who deploys has the files, and the node that serves has not."""
    models.add(tmp_path / "models", "add")
    cluster.deploy(application("models"))

    def told() -> str:
        found = serve.status().applications["models"]
        return "\n".join((found.message, *(each.message for each in found.deployments.values())))

    until(lambda: f"No such file or directory: {Path.cwd()}/models" in told(), told, 120)
    assert "as the working_dir of the runtime_env" in told()
