"""`trivium check` of many language models: one process asks for all, and one that ends it fails alone and is named."""

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest
from tests.harness.language_models import write
from tests.harness.server_process import COMMAND, environment

MANY, BAD = 20, 10
_ENDS = """import os
from transformers import PretrainedConfig

os._exit(9)


class OddConfig(PretrainedConfig):
    model_type = "odd"
"""
_WAITS = """import os


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        open(os.environ["RELEASE"]).read()
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [1]})
        return config

    def execute(self, requests):
        return []
"""
TRUSTED = ("--engine-parameters", "hf.trust_remote_code=true")
SECONDS = 300


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("weights") / "m", "llama")


def laid_out(weights: Path, root: Path, count: int, bad: int | None = None) -> list[Path]:
    """So many folders of a language model, of which one ends whoever reads it."""
    folders = []
    for number in range(count):
        folder = root / f"m{number:02d}"
        folder.mkdir(parents=True)
        for file in weights.iterdir():
            os.link(file, folder / file.name)
        folders.append(folder)
    if bad is not None:
        config = json.loads((weights / "config.json").read_text())
        config |= {"model_type": "odd", "auto_map": {"AutoConfig": "configuration_odd.OddConfig"}}
        (folders[bad] / "config.json").unlink()
        (folders[bad] / "config.json").write_text(json.dumps(config))
        (folders[bad] / "configuration_odd.py").write_text(_ENDS)
    return folders


def test_one_that_ends_its_reader_fails_alone_and_is_named(weights: Path, tmp_path: Path) -> None:
    folders = laid_out(weights, tmp_path / "models", MANY, BAD)
    done = subprocess.run(
        (*COMMAND, "check", *TRUSTED, *folders),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    for number, folder in enumerate(folders):
        word = (
            f"cannot be served: model {folder.name} in {folder}"
            if number == BAD
            else f"model {folder.name}, "
        )
        assert [line for line in lines if line.startswith(word)], (word, done.stdout)
    assert sum(line.startswith("cannot be served") for line in lines) == 1
    said = " ".join(done.stdout.split())
    assert f"The process that reads {folders[BAD]}/config.json for model 'm10' ended with status 9" in said


def test_each_further_one_costs_less_than_a_tenth_of_the_first(weights: Path, tmp_path: Path) -> None:
    def spent(*folders: Path) -> float:
        """Processor seconds of a check and its children."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (*COMMAND, "check", *folders)
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment(), timeout=SECONDS, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    folders = laid_out(weights, tmp_path / "models", MANY)
    one, many = spent(folders[0]), spent(*folders)
    print(f"one: {one:.2f} s, {MANY}: {many:.2f} s")
    assert (many - one) / (MANY - 1) < one / 10


def test_models_are_said_while_others_are_still_read(weights: Path, tmp_path: Path) -> None:
    folder, pipe = laid_out(weights, tmp_path / "models", 1)[0], tmp_path / "slow"
    slow = pipe / "m"
    (slow / "1").mkdir(parents=True)
    (slow / "config.pbtxt").write_text('backend: "python"\nmax_batch_size: 1\n')
    (slow / "1" / "model.py").write_text(_WAITS)
    release = tmp_path / "release"
    os.mkfifo(release)
    command = (*COMMAND, "check", folder, slow)
    variables = {**environment(), "RELEASE": str(release)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("model m00, ")  # the other one waits for us
        release.write_text("go on")
        rest = process.stdout.read()
    assert process.returncode == 0, rest
    assert "model m, version 1" in rest
