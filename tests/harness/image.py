"""An image without a container engine: what its Dockerfile says, done in a copy of this machine's files.

The copy is an overlay over the root folder, in a mount namespace of its own: the lines that install run there as they
stand, and the entry point runs there as another user, while nothing can be written but /tmp. What this machine has
installed shows through, as a base image's files would. For root on Linux alone; `reason` says why not.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
INSTALLING = 1500.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDED = ("unshare", "setpriv", "chroot", "apt-get")
_PASSED = re.compile(r"pip_.*|.*_proxy|ssl_cert_file", re.IGNORECASE)
"""Variables of this machine without which nothing could be fetched."""

_QUICK = {"PIP_CONSTRAINT": "/tmp/constraints.txt", "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "20"}
"""For a machine that has PyTorch in a folder, and does not reach PyTorch's own index."""


class Instruction(NamedTuple):
    """One instruction of a Dockerfile: its word, and all that follows, continuation lines joined."""

    word: str
    text: str


def instructions(dockerfile: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; comments are left out."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if line.strip():
            word, _, text = line.strip().partition(" ")
            yield Instruction(word.upper(), text.strip())


def reason() -> str:
    """Say why no image can be made here; empty where one can."""
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    if lacking:
        return f"there is no {lacking[0]}"
    if os.geteuid() != 0:
        return "who is not root may not mount"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        return "this kernel gives no mount namespace"
    return ""


class Image:
    """The image of one Dockerfile, in a folder that holds what differs from this machine's files."""

    def __init__(self, dockerfile: str, place: Path) -> None:
        self._all = list(instructions(dockerfile))
        self._last = self._all[max(i for i, each in enumerate(self._all) if each.word == "FROM") :]
        self._folders = {name: place / name for name in ("changed", "work", "root", "scratch")}
        for folder in self._folders.values():
            folder.mkdir(parents=True)
        self._folders["scratch"].chmod(0o1777)

    @property
    def scratch(self) -> Path:
        """Return the folder that is /tmp inside."""
        return self._folders["scratch"]

    @property
    def variables(self) -> Mapping[str, str]:
        """Return what the last stage sets for whatever runs in it."""
        words = [word for each in self._last if each.word == "ENV" for word in shlex.split(each.text)]
        return dict(word.split("=", 1) for word in words)

    def last(self, word: str) -> str:
        """Return what the last stage says by this word."""
        return next(each.text for each in reversed(self._last) if each.word == word)

    def build(self, arguments: Mapping[str, str]) -> None:
        """Run every line that installs, with these in place of the Dockerfile's own arguments. What is copied from one
        stage to another lies at the same place in both, and here it is one place.
        """
        script = ["set -e"]
        for each in self._all:
            if each.word == "ARG":
                name, _, default = each.text.partition("=")
                script.append(f"{name}={shlex.quote(arguments.get(name, default))}")
            elif each.word == "COPY":
                self._copy(each.text)
            elif each.word == "RUN":
                script.append(f"( {each.text} )")
        (self._folders["scratch"] / "constraints.txt").write_text("torch==2.13.0\n")
        passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
        done = self._inside(
            ["sh", "-c", "\n".join(script)],
            {**passed, **_QUICK, "PATH": _PATH, "HOME": "/root"},
        )
        ended = subprocess.run(done, capture_output=True, text=True, timeout=INSTALLING, check=False)
        assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"

    def start(
        self, words: Sequence[str], variables: Mapping[str, str], log: Path
    ) -> "subprocess.Popen[bytes]":
        """Start the entry point with these words, as a user without a name in the group 0, on a root that is read-only
        but for /tmp.
        """
        command = [*json.loads(self.last("ENTRYPOINT")), *words]
        user = [
            "setpriv",
            "--reuid=54321",
            "--regid=0",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        inside = self._inside(
            ["env", "-C", self.last("WORKDIR"), *user, *command],
            {**self.variables, **variables},
            is_read_only=True,
        )
        with log.open("wb") as file:
            return subprocess.Popen(inside, stdout=file, stderr=file)

    def run(
        self, words: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in it to its end, by its variables."""
        inside = self._inside(words, {**self.variables, **(variables or {})}, is_read_only=True)
        return subprocess.run(inside, capture_output=True, text=True, timeout=120, check=False)

    def put(self, source: Path, place: str) -> None:
        """Mount a copy of a folder or file there, for whatever starts from now on."""
        target = self._folders["changed"] / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def take(self, place: str) -> None:
        """Empty a folder again."""
        target = self._folders["changed"] / place.lstrip("/")
        for entry in target.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _copy(self, text: str) -> None:
        if text.startswith("--from="):
            _, source, target = text.split()
            assert source == target, "each stage has it at the same place"
            return
        *sources, target = text.split()
        for source in sources:
            self.put(ROOT / source, f"{target}{source}" if target.endswith("/") else target)

    def _inside(
        self, words: Sequence[str], variables: Mapping[str, str], is_read_only: bool = False
    ) -> list[str]:
        root, changed, work, scratch = (
            shlex.quote(str(self._folders[name])) for name in ("root", "changed", "work", "scratch")
        )
        mounts = [
            f"mount -t overlay overlay -o lowerdir=/,upperdir={changed},workdir={work} {root}",
            f"mount --rbind /proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
            f"mount --bind {scratch} {root}/tmp",
            f"mount -o remount,bind,ro {root}" if is_read_only else "true",
            f'exec chroot {root} "$@"',
        ]
        env = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        return ["unshare", "-m", "sh", "-ec", "\n".join(mounts), "sh", *env, *words]
