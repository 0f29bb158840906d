"""Hostile files in every dress of a pickle, and a hostile skops: no marker until the operator names the trust.

Each file would write a marker when it is opened. `check`, `serve`, and a hundred loads over the network, by every
parameter in which a client may say something, leave none; the operator's word then opens each of them.
"""

import base64
import itertools
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import httpx
import joblib
import pytest
from tests.harness.marked_state import MarkedState
from tests.harness.mlflow_folders import Marker, mlmodel, save
from tests.harness.server_process import ServerProcess, environment, running
from tests.harness.table_models import write

ROOT = Path(__file__).parents[2]
TRUSTS = {
    "trust_insecure_model_files": "true",
    "skops_trusted_types": "tests.harness.marked_state.MarkedState",
    "trust_remote_code": "true",
    "trust_file_operations": "true",
}
LOADS = 100
TYPE = "tests.harness.marked_state.MarkedState"
WORD = "sklearn.trust_insecure_model_files=true"


def write_joblib(root: Path, marker: Path) -> Path:
    joblib.dump(Marker(marker), root / "joblib.joblib")
    return root / "joblib.joblib"


def write_cloudpickle(root: Path, marker: Path) -> Path:
    (root / "cloudpickle.pkl").write_bytes(cloudpickle.dumps(Marker(marker)))
    return root / "cloudpickle.pkl"


def write_skops(root: Path, marker: Path) -> Path:
    pytest.importorskip("skops.io").dump(MarkedState(str(marker)), root / "skops.skops")
    return root / "skops.skops"


def write_mlflow(root: Path, marker: Path) -> Path:
    folder = save(root / "mlflow", mlmodel("sklearn", {"pickled_model": "model.pkl"}))
    (folder / "model.pkl").write_bytes(pickle.dumps(Marker(marker)))
    return folder


def write_djl(root: Path, marker: Path) -> Path:
    (root / "djl").mkdir()
    joblib.dump(Marker(marker), root / "djl" / "model.joblib")
    named = "engine=Python\noption.entryPoint=djl_python.sklearn_handler\n"
    (root / "djl" / "serving.properties").write_text(named)
    return root / "djl"


DRESSES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "joblib": (write_joblib, WORD),
    "cloudpickle": (write_cloudpickle, WORD),
    "skops": (write_skops, f"sklearn.skops_trusted_types={TYPE}"),
    "mlflow": (write_mlflow, WORD),
}
"""Name of a model -> what writes it, and the word that opens it."""


def run(log: Path, *words: str | Path, status: int = 0) -> Any:
    return running(
        log,
        "serve",
        *words,
        status=status,
        models_raise=True,
        variables={**environment(), "PYTHONPATH": PATH},
    )


PATH = f"{ROOT / 'src'}:{ROOT}"


class Scene:
    """A server of a good model and of the hostile files, with the markers that none of them may write."""

    def __init__(self, server: ServerProcess, places: dict[str, Path], markers: Path) -> None:
        self.server = server
        self.places = places
        self.markers = markers

    def marks(self) -> list[str]:
        return sorted(one.name for one in self.markers.iterdir())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("hostile")
    (root / "markers").mkdir()
    writers = {**{name: writer for name, (writer, _) in DRESSES.items()}, "djl": write_djl}
    places = {name: writer(root, root / "markers" / name) for name, writer in writers.items()}
    repository = root / "repository"
    good = write(root / "good.json", "xgboost", 2)
    (repository / "forest" / "1").mkdir(parents=True)
    write(repository / "forest" / "1" / "xgboost.json", "xgboost", 2)
    (repository / "forest" / "config.pbtxt").write_text(FOREST)
    with run(root / "log", good, repository, *places.values()) as server:
        yield Scene(server, places, root / "markers")


FOREST = """
backend: "fil"
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [ 30 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
parameters [{ key: "model_type" value { string_value: "xgboost_json" } }]
"""


def load(scene: Scene, model: str, parameters: dict[str, str] | None = None) -> int:
    url = f"{scene.server.url}/v2/repository/models/{model}/load"
    return httpx.post(url, json={"parameters": parameters or {}}, timeout=60).status_code


def overridden(scene: Scene, model: str) -> int:
    """Load with a configuration that names every trust, of the engine that opens pickles."""
    told = ", ".join(f'"{key}": {{"string_value": "{value}"}}' for key, value in TRUSTS.items())
    return load(scene, model, {"config": f'{{"backend": "sklearn", "parameters": {{{told}}}}}'})


def sent(scene: Scene, model: str) -> int:
    """Load from files that are sent along: the hostile one, beside a configuration that names every trust."""
    place = scene.places[model]
    file = (
        place
        if place.is_file()
        else next(one for one in place.iterdir() if one.suffix in (".pkl", ".joblib"))
    )
    data = base64.b64encode(file.read_bytes()).decode()
    told = ", ".join(f'"{key}": {{"string_value": "{value}"}}' for key, value in TRUSTS.items())
    config = f'{{"backend": "sklearn", "parameters": {{{told}}}}}'
    return load(scene, model, {"config": config, f"file:1/{file.name}": data})


def registered(scene: Scene, model: str) -> int:
    """Register by DJL's management route, with every trust in the query and in the model's URL."""
    place = scene.places[model]
    options = {f"option.{key}": value for key, value in TRUSTS.items()}
    url = httpx.URL(str(place), params={**options, **TRUSTS})
    asked = {"url": f"{place}?{url.query.decode()}", "model_name": f"{model}_again", **options, **TRUSTS}
    return httpx.post(f"{scene.server.url}/models", params=asked, timeout=60).status_code


def registered_plainly(scene: Scene, model: str) -> int:
    """Register with every trust in the query alone."""
    options = {f"option.{key}": value for key, value in TRUSTS.items()}
    asked = {"url": str(scene.places[model]), "model_name": f"{model}_plain", **options, **TRUSTS}
    return httpx.post(f"{scene.server.url}/models", params=asked, timeout=60).status_code


WAYS: dict[str, Callable[[Scene, str], int]] = {
    "as it is": lambda scene, model: load(scene, model),
    "with a configuration": overridden,
    "with files": sent,
    "by registration": registered,
    "by a plain registration": registered_plainly,
}


def test_a_hundred_loads_over_the_network_open_nothing(scene: Scene) -> None:
    asked = itertools.islice(itertools.cycle(itertools.product(WAYS, scene.places)), LOADS)
    statuses = [(way, model, WAYS[way](scene, model)) for way, model in asked]
    assert len(statuses) == LOADS
    assert [one for one in statuses if one[2] < 400] == []
    assert scene.marks() == []
    rows = {"name": "input-0", "datatype": "FP32", "shape": [1, 30], "data": [0] * 30}
    answer = httpx.post(f"{scene.server.url}/v2/models/good/infer", json={"inputs": [rows]}, timeout=60)
    assert answer.status_code == 200, answer.text


def test_a_model_that_serves_is_not_loaded_with_a_trust_that_its_files_lack(scene: Scene) -> None:
    config = httpx.get(f"{scene.server.url}/v2/models/forest/config").json()
    url = f"{scene.server.url}/v2/repository/models/forest/load"
    answer = httpx.post(url, json={"parameters": {"config": json.dumps(config)}}, timeout=60)
    assert answer.status_code == 200, answer.text
    config["parameters"]["trust_insecure_model_files"] = {"string_value": "true"}
    answer = httpx.post(url, json={"parameters": {"config": json.dumps(config)}}, timeout=60)
    assert answer.status_code >= 400, answer.text
    assert "trust_insecure_model_files" in answer.text


def test_a_registration_that_names_a_trust_is_refused_with_the_word(scene: Scene) -> None:
    url = f"{scene.places['djl']}?option.trust_insecure_model_files=true"
    answer = httpx.post(f"{scene.server.url}/models", params={"url": url, "model_name": "named"}, timeout=60)
    assert answer.status_code == 403, answer.text
    assert "option.trust_insecure_model_files" in answer.text
    assert "No request may say so" in answer.text


@pytest.mark.parametrize("name", DRESSES)
def test_the_operator_s_word_alone_opens_it(tmp_path: Path, name: str) -> None:
    """The files do write their markers, where they are opened: before the word `check` leaves none, behind it a load
    does, which fails, as none of them holds a model.
    """
    writer, word = DRESSES[name]
    marker = tmp_path / "marker"
    place = writer(tmp_path, marker)
    good = write(tmp_path / "good.json", "xgboost", 2)
    command = [sys.executable, "-m", "trivium.cli.main", "check", str(place)]
    variables = {**environment(), "PYTHONPATH": PATH}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=variables)
    assert done.returncode == 1
    assert "".join(word.split()) in "".join(done.stdout.split())
    assert not marker.exists()
    with run(tmp_path / "log", good, place, "--engine-parameters", word):
        pass
    assert marker.exists()
