"""The first process of a container: runs the command that `container_policy` chooses in its own place.

`python -m trivium.cli.container WORDS...` becomes that command, so that signals and the exit status are the command's.
With the word `healthcheck` it asks the server of this container whether it lives, and says so by its exit status.
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.cli.container_policy import (
    CONFIG,
    SAGEMAKER_MODELS,
    ContainerStart,
    Surroundings,
    container_start,
    health_places,
)

HEALTH = "healthcheck"
MODEL_STORE = "/home/model-server/model-store"
MARK = "# Of Trivium's image"
"""How the image's own configuration of TorchServe begins: another one has been mounted over it."""
_SECONDS = 2.0
_NOT_FOUND, _NOT_RUN = 127, 126
"""Exit statuses of a shell for a command that is not there, and for one that cannot be run."""


def main(words: Sequence[str]) -> int:
    """Become the command, or return the exit status of what is done here."""
    if list(words) == [HEALTH]:
        return 0 if is_alive(health_places(os.environ)) else 1
    try:
        start = container_start(words, surroundings(os.environ, Path("/")))
    except ValueError as error:
        return _refused(str(error), 1)
    for note in start.notes:
        print(note, file=sys.stderr, flush=True)  # noqa: T201 - nothing else of a command has begun
    return _become(start)


def surroundings(variables: Mapping[str, str], root: Path) -> Surroundings:
    """Look at what a container has been given, whose files are below this folder."""
    return Surroundings(
        variables,
        has_model_store=any(_entries(root / MODEL_STORE[1:])),
        has_config="TS_CONFIG_FILE" in variables or _is_foreign(root / CONFIG[1:]),
        has_archives=any(each.suffix == ".mar" for each in _entries(root / SAGEMAKER_MODELS[1:])),
        has_repository=any(
            (each / "config.pbtxt").is_file() for each in _entries(root / SAGEMAKER_MODELS[1:])
        ),
    )


def is_alive(places: Sequence[str]) -> bool:
    """Tell whether a server answers at any of these addresses, if only to ask for a key."""
    for place in places:
        try:
            with urllib.request.urlopen(place, timeout=_SECONDS) as answer:
                return bool(answer.status < 500)
        except urllib.error.HTTPError as error:
            return error.code < 500
        except (OSError, ValueError):
            continue
    return False


def _entries(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if not each.name.startswith(".")]
    except OSError:
        return []


def _is_foreign(file: Path) -> bool:
    try:
        return not file.read_text(errors="replace").startswith(MARK)
    except OSError:
        return False


def _become(start: ContainerStart) -> int:
    environment = {**start.variables, **os.environ}
    try:
        os.execvpe(start.words[0], start.words, environment)
    except FileNotFoundError:
        known = "serve, trivium, tritonserver, torchserve, djl-serving"
        return _refused(
            f"There is no command {start.words[0]!r} in this image. Begin with one of {known}.", _NOT_FOUND
        )
    except OSError as error:
        return _refused(f"{start.words[0]} cannot be run: {error.strerror}.", _NOT_RUN)


def _refused(words: str, status: int) -> int:
    print(words, file=sys.stderr)  # noqa: T201 - nothing else of a command has begun
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
