"""The original's own `ts.launcher`, out of its wheel, and ours find `torchserve` on the PATH: start, register and stop.

It asks port 8081 of this machine, whatever the configuration says, so it runs where no other network is.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.harness.commands import trivium
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import TorchServeFolder, said

ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]
ECHO = "def handle(data, context):\n    return data and [str(row['body']) for row in data]\n"
STORY = """
import json, sys
from ts import launcher
import requests

TEXT = {"Content-Type": "text/plain"}
store, configuration, answers = sys.argv[1:]
launcher.start(
    model_store=store, snapshot_file=configuration, no_config_snapshots=True, disable_token=True, models="one",
    enable_model_api=True,
)
found = {"file": launcher.__file__}
for name, call in (
    ("registered", lambda: launcher.register_model("two", "one")),
    ("again", lambda: launcher.register_model("two", "one")),
    ("with parameters", lambda: launcher.register_model_with_params((("url", "one"), ("model_name", "three")))),
    ("predicted", lambda: requests.post("http://localhost:8080/predictions/two", data="hi", headers=TEXT)),
):
    answer = call()
    found[name] = [answer.status_code, answer.text]
launcher.stop()
open(answers, "w").write(json.dumps(found))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the original's wheel is unpacked into; nothing is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "torchserve==0.12.0"]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    with zipfile.ZipFile(file) as packed:
        packed.extractall(
            folder, [name for name in packed.namelist() if name.endswith((".py", "version.txt"))]
        )
    return folder


@pytest.mark.parametrize("whose", ["original", "ours"])
def test_a_launcher_drives_ours(wheel: Path, tmp_path: Path, whose: str) -> None:
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network of its own")
    folder = TorchServeFolder(tmp_path)
    folder.model("one", ECHO)
    assert trivium("link", tmp_path / "bin").returncode == 0
    configuration = tmp_path / "config.properties"
    configuration.write_text("default_workers_per_model=1\n")
    answers, log = tmp_path / "answers", tmp_path / "log"
    found_first = os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"]))
    place = str(wheel) if whose == "original" else trivium("shims", "torchserve").stdout.strip()
    own = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH", ""))))
    variables = {**folder.variables({}), "PATH": found_first, "PYTHONPATH": own}
    words = [*ALONE, sys.executable, "-c", STORY, folder.store, configuration, answers]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*map(str, words)], stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=tmp_path
        )
    try:
        until(lambda: process.poll() is not None, log.read_text)
    finally:
        process.kill()
        process.wait()
        said(folder, "--stop", "--foreground")  # what a story that failed has left
    assert process.returncode == 0, log.read_text()
    found = json.loads(answers.read_text())
    assert found["file"].startswith(place)
    assert found["registered"][0] == 200
    assert json.loads(found["registered"][1])["status"].startswith(
        'Model "two" Version: 1.0 registered with 1'
    )
    assert found["again"][0] == 409
    assert found["with parameters"][0] == 200
    assert found["predicted"] == [200, "hi"]
    assert "TorchServe is not currently running." in log.read_text()  # it stops one before it starts
    assert "Torchserve stopped." in log.read_text()
    assert not folder.pid_file.exists()
