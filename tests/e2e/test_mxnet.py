"""A digit model of MXNet in the real server, bare and as DJL folders; the environment is built as the refusal says."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest
from tests.e2e.engine_matrix import APART, BODIES, cell
from tests.e2e.test_engine_matrix import asked, judged
from tests.e2e.test_table_models import ask
from tests.harness import mxnet_files
from tests.harness.server_process import COMMAND, ServerProcess, environment, running
from tests.harness.table_models import digits

from trivium import ndlist

ROWS = 20
PROGRAM = Path(__file__).parents[1] / "harness" / "mxnet_program.py"
MODELS = ("net", "net-shaped", "folder", "named", "joined")


class Trained(NamedTuple):
    """The variables of whoever has the environment, a folder with the files, and what MXNet itself answers."""

    variables: Mapping[str, str]
    folder: Path
    answers: np.ndarray


def trivium(*words: str | Path, variables: Mapping[str, str], status: int) -> str:
    done = subprocess.run(
        [*COMMAND, *map(str, words)],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Without the environment the model is refused; the command of the refusal, run as printed, builds it."""
    root = tmp_path_factory.mktemp("mxnet")
    variables = {"XDG_CACHE_HOME": str(root / "cache")}
    (root / "m-symbol.json").write_bytes(mxnet_files.dense())
    (root / "m-0000.params").write_bytes(mxnet_files.weights())
    said = trivium("check", root / "m-symbol.json", variables=variables, status=1)
    printed = re.search(r"Make it with: (trivium .*)", said)
    assert printed, said
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(printed[1]),
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "The package index was not reached" in done.stderr:
        pytest.skip("there is no package index to build the environment from")
    assert done.returncode == 0, done.stderr
    assert "input data" in trivium("check", root / "m-symbol.json", variables=variables, status=0)
    assert "ready" in trivium("env", "list", variables=variables, status=0)
    rows, wanted = digits()
    np.savez(root / "digits.npz", rows=rows, digits=wanted)
    (root / "files").mkdir()
    command = [
        done.stdout.strip(),
        PROGRAM,
        root / "digits.npz",
        root / "files" / "net",
        root / "answers.npy",
    ]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    answers = np.load(root / "answers.npy")[:ROWS]
    assert (answers.argmax(axis=1) == wanted[:ROWS]).mean() > 0.9
    return Trained(variables, root / "files", answers)


def pictures() -> np.ndarray:
    return digits()[0][:ROWS] / np.float32(16)


def folder(root: Path, files: Path, name: str, *lines: str) -> Path:
    made = root / name
    made.mkdir()
    for file in ("net-symbol.json", "net-0002.params", "net-0003.params"):
        shutil.copy(files / file, made / file)
    if lines:
        (made / "serving.properties").write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture(scope="module")
def server(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The model as bare files, one of which tells its shape, and as folders of DJL's."""
    root = tmp_path_factory.mktemp("served")
    files = trained.folder
    shutil.copy(files / "net-0003.params", files / "net-shaped-0000.params")
    paths = [
        files / "net-symbol.json",
        files / "net-shaped-symbol.json",
        folder(root, files, "folder"),
        folder(root, files, "named", "engine=mxNET", "option.epoch=3", "option.modelName=net"),
        folder(root, files, "joined", "engine=MXNet", "batch_size=8", "max_batch_delay=50", "maxWorkers=1"),
        folder(root, files, "early", "engine=MXNet", "option.epoch=2"),
    ]
    damaged = folder(root, files, "damaged", "engine=MXNet")
    cut = damaged / "net-0003.params"
    cut.write_bytes(cut.read_bytes()[:500])
    with running(root / "log", "serve", *paths, damaged, variables=trained.variables) as served:
        yield served


@pytest.fixture(scope="module")
def other(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that stands in for TorchServe."""
    root = tmp_path_factory.mktemp("other")
    named = folder(root, trained.folder, "named", "engine=MXNet", "option.epoch=3", "option.modelName=net")
    words = ("serve", trained.folder / "net-symbol.json", named, "--profile", "torchserve")
    with running(root / "log", *words, variables=trained.variables) as served:
        yield served


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dress", APART["mxnet"])
def test_a_cell_of_the_matrix(
    server: ServerProcess, other: ServerProcess, trained: Trained, dress: str, body: str
) -> None:
    model = {"bare": "net", "DJL": "named"}[dress]
    found = asked(other if body == "TorchServe" else server, model, body, pictures())
    assert judged(found, trained.answers) == cell("mxnet", dress, body), found


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", MODELS[:-1])
def test_v2_names_the_digits(server: ServerProcess, trained: Trained, model: str, route: str) -> None:
    found = ask(server, model, pictures(), route)
    np.testing.assert_allclose(found["softmax_output"], trained.answers, atol=1e-5)


@pytest.mark.parametrize("form", ["tensor/ndlist", "tensor/npz"])
@pytest.mark.parametrize("model", MODELS[:-1])
def test_djl_s_binary_forms_name_the_digits(
    server: ServerProcess, trained: Trained, model: str, form: str
) -> None:
    is_list, body = form == "tensor/ndlist", io.BytesIO()
    np.savez(body, pictures())
    data = ndlist.encode([pictures()]) if is_list else body.getvalue()
    headers = {"Content-Type": form, "Accept": form}
    answer = httpx.post(f"{server.url}/predictions/{model}", content=data, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    if is_list:
        (found,) = ndlist.decode(answer.content)
    else:
        with np.load(io.BytesIO(answer.content)) as arrays:
            (found,) = (arrays[name] for name in arrays.files)
    np.testing.assert_allclose(np.asarray(found), trained.answers, atol=1e-5)


@pytest.mark.parametrize("model", MODELS[:-1])
def test_djl_s_json_names_the_digits(server: ServerProcess, trained: Trained, model: str) -> None:
    answer = httpx.post(f"{server.url}/predictions/{model}", json=pictures().tolist(), timeout=60)
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), trained.answers, atol=1e-5)


def test_requests_of_a_batch_get_their_own_answers_and_a_wrong_one_fails_alone(
    server: ServerProcess, trained: Trained
) -> None:
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(8) as pool:

        def one(row: np.ndarray) -> httpx.Response:
            tensor = {"name": "data", "datatype": "FP32", "shape": [len(row)], "data": row.tolist()}
            return client.post(f"{server.url}/v2/models/joined/infer", json={"inputs": [tensor]})

        wrong = pictures()[0][:5]
        answers = list(pool.map(one, [*pictures(), wrong, *pictures()]))
    failed = answers.pop(ROWS)
    assert failed.status_code == 400
    assert "Shape inconsistent" in failed.text
    found = [answer.json()["outputs"][0]["data"] for answer in answers]
    np.testing.assert_allclose(found, np.concatenate([trained.answers] * 2), atol=1e-5)


def test_the_epoch_that_is_named_counts(server: ServerProcess) -> None:
    found = ask(server, "early", pictures(), "json")
    np.testing.assert_allclose(found["softmax_output"], np.full((ROWS, 10), 0.1), atol=1e-6)


def test_a_damaged_file_is_a_load_error_with_file_and_engine(server: ServerProcess) -> None:
    assert httpx.get(f"{server.url}/v2/models/damaged/ready").status_code != 200
    said = " ".join(server.said().split())
    assert re.search(r"engine mxnet cannot read \S+/damaged/net-0003.params", said), said


def test_integers_are_converted_and_texts_refused(server: ServerProcess) -> None:
    url = f"{server.url}/v2/models/net/infer"
    tensor = {"name": "data", "datatype": "INT32", "shape": [1, 64], "data": [0] * 64}
    assert httpx.post(url, json={"inputs": [tensor]}, timeout=60).status_code == 200
    tensor = {"name": "data", "datatype": "BYTES", "shape": [1, 64], "data": ["0"] * 64}
    answer = httpx.post(url, json={"inputs": [tensor]}, timeout=60)
    assert answer.status_code in (400, 415), answer.text
