"""Lines of a model's requirements.txt that are more than a package's name: each is served, or refused by a sentence."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.harness import python_packages as packages
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.web import body, web

WHEEL = f"{packages.PYTHON}-1.0-py3-none-any.whl"
_PACKAGE = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": f"""
import pathlib, shutil
WHEEL = {WHEEL!r}
def build_wheel(folder, settings=None, metadata=None):
    shutil.copy(pathlib.Path(__file__).parent / WHEEL, folder)
    return WHEEL
build_editable = build_wheel
""",
}
"""A source package that brings its wheel: nothing has to be fetched to build it."""

SERVED: Mapping[str, str] = {
    "nested": "-r more/others.txt\n",
    "constrained": "-c constraints.txt\n--no-index\n--find-links local_wheels\ntiny-stamp\n",
    "editable": "-e ./package\n",
    "folder": "./package\n",
    "file_url": "tiny-stamp @ file://{folder}/local_wheels/{wheel}\n",
    "url": "{web}/files/{wheel}\n",
    "index": "--index-url {web}/simple\n--trusted-host 127.0.0.1\ntiny-stamp==1.0\n",
    "extra_index": "--extra-index-url {web}/simple\ntiny-stamp==1.0\n",
    "git": "git+file://{folder}/repository\n",
    "editable_git": "-e git+file://{folder}/repository#egg=tiny-stamp\n",
}
REFUSED: Mapping[str, str] = {
    "no_file": "-r absent.txt\n",
    "outside": "-r ../../../../../../../../etc/hostname\n",
    "nothing_to_edit": "-e .\n",
    "no_option": "--target /tmp\ntiny-stamp\n",
    "no_url": "http://127.0.0.1:9/{wheel}\n",
    "not_there": "{web}/files/none-1.0-py3-none-any.whl\n",
    "no_index_there": "--index-url http://127.0.0.1:9/simple\ntiny-stamp\n",
    "no_repository": "git+file://{folder}/absent\n",
    "no_git_server": "git+https://127.0.0.1:9/x.git\n",
    "another_scheme": "svn+https://127.0.0.1:9/x\n",
}


def model(store: Path, name: str, text: str, url: str, code: str) -> None:
    """A model with these requirements, and all that one of them may name."""
    folder = packages.model(store, name, "", code=code)
    packages.wheel(folder / "local_wheels", "1.0")
    (folder / "constraints.txt").write_text("tiny-stamp==1.0\n")
    (folder / "more").mkdir()
    (folder / "more" / "others.txt").write_text(f"./local_wheels/{WHEEL}\n")
    for place in ("package", "repository"):
        (folder / place).mkdir()
        for file, content in _PACKAGE.items():
            (folder / place / file).write_text(content)
        shutil.copy(folder / "local_wheels" / WHEEL, folder / place)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder / "repository"))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    filled = text.replace("{folder}", str(folder)).replace("{web}", url).replace("{wheel}", WHEEL)
    (folder / "requirements.txt").write_text(filled)


def stamp(server: DjlServing, name: str) -> str:
    answer = server.infer("POST", f"/predictions/{name}", b"x")
    assert answer.status == 200, (name, answer, server.said())
    return str(answer.document[0])


def play(tmp_path: Path, served: list[str], refused: list[str]) -> None:
    """Serve them all; those whose lines are refused are told of, and serve without their packages."""
    store, place = tmp_path / "store", tmp_path / "environments"
    place.mkdir()
    wheel = packages.wheel(tmp_path, "1.0").read_bytes()
    link = f'<a href="/files/{WHEEL}">{WHEEL}</a>'.encode()
    answers = {
        f"/files/{WHEEL}": body(wheel),
        "/simple/tiny-stamp/": body(link, **{"content-type": "text/html"}),
    }
    with web(answers) as site:
        for name in served:
            model(store, name, SERVED[name], site.url, packages.NEEDS)
        for name in refused:
            model(store, name, REFUSED[name], site.url, packages.DOES_NOT_NEED)
        variables = {
            **{"DJL_VENV_DIR": str(place), "PIP_RETRIES": "0", "PIP_TIMEOUT": "5", "PIP_FIND_LINKS": ""},
            **{"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        }
        before = packages.own_packages()
        with djl_serving(tmp_path / "log", "-s", store, variables=variables) as server:
            assert {name: stamp(server, name) for name in served} == dict.fromkeys(served, "1.0")
            for name in refused:
                assert server.infer("POST", f"/predictions/{name}", b"x").body == b"served"
                told = [
                    line
                    for line in server.said().splitlines()
                    if f"{name}/requirements.txt could not" in line
                ]
                assert len(told) == 1, (name, server.said())
                assert "pip ended with status" in told[0]
                assert "its last words: " in told[0]
                assert "Correct the file" in told[0]
        assert packages.own_packages() == before
        assert list(place.iterdir()) == []


def test_some_of_each(tmp_path: Path) -> None:
    play(tmp_path, ["nested", "editable", "url"], ["no_file", "no_option"])


@pytest.mark.soak
def test_every_kind_of_line(tmp_path: Path) -> None:
    play(tmp_path, list(SERVED), list(REFUSED))
