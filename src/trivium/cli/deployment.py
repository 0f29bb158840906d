"""Sums up a folder of models for a cluster: how much memory and how many GPUs they need, and what serves them.

Read from the specs that `trivium check` shows. Pure but for the sizes of files. Must not know how a target writes it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from trivium.codecs.visible_text import visible
from trivium.config.options import GeneralConfig
from trivium.types.spec import Device, ModelSpec

PRE_STOP = 5
"""Seconds for which a pod that ends still serves, until every proxy has heard that it ends."""

LAST_SECONDS = 5
"""Seconds behind `--drain-timeout` in which the process is gone, whatever hangs."""

_STEP = 256 * 2**20
_BASE = 768 * 2**20
_PER_BYTE = 1.3
_LONGEST = 40
_MLMODEL = "MLmodel"

ENGINE_FORMATS = {
    "onnx": "onnx",
    "torch": "pytorch",
    "sklearn": "sklearn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "tensorflow": "tensorflow",
    "paddle": "paddle",
    "hf": "huggingface",
    "hf-tasks": "huggingface",
    "vllm": "huggingface",
    "openvino-llm": "huggingface",
    "python-mlflow": "mlflow",
}
"""Engine -> what KServe calls the format of a single model that it opens."""

ANY_FORMAT = "trivium"
"""The format of a folder of models, or of one that has no name at KServe."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Holds what every target has to know of one folder of models."""

    name: str
    """Of the objects: a DNS label."""

    path: Path
    """The folder or file, on this machine."""

    models: tuple[str, ...]
    """Names under which clients ask."""

    kserve_format: str
    """What KServe calls it."""

    size: int
    """Bytes of the models' files."""

    gpus: int
    """GPUs that a replica needs."""

    image: str
    engine_parameters: str = ""
    """`--engine-parameters`, as somebody gave it."""

    @property
    def memory(self) -> str:
        """Memory of a replica, as Kubernetes writes it: the files with some room, and the server itself."""
        steps = -(-(_BASE + int(self.size * _PER_BYTE)) // _STEP)
        return f"{steps * _STEP // 2**20}Mi"

    @property
    def is_single(self) -> bool:
        """Tell whether a name can be given to it."""
        return len(self.models) == 1

    @property
    def place(self) -> str:
        """The folder or file, as a comment of one line may show it."""
        return in_comment(str(self.path))

    @property
    def why_memory(self) -> str:
        """Say where the figure comes from."""
        return f"768 MiB for the server, and 1.3 times the {self.size / 2**20:.1f} MiB of the models' files"


def grace_seconds(drain: float = GeneralConfig().drain_timeout) -> int:
    """Return the seconds after which Kubernetes may kill a pod: it serves on, drains, and is gone."""
    return PRE_STOP + int(drain) + LAST_SECONDS


def default_image(gpus: int) -> str:
    """Return the tag that docs/containers.md builds an image by: this version's, for processors or for GPUs."""
    release = ".".join(version("trivium").split(".")[:2])
    return f"trivium:{release}-{'cuda' if gpus else 'cpu'}"


def quoted(text: str) -> str:
    """Return any text as a scalar of YAML, on one line."""
    return json.dumps(text, ensure_ascii=False)


def in_comment(text: str) -> str:
    """Return any text so that it stands on one line."""
    return " ".join(visible(text).splitlines())


def object_name(text: str) -> str:
    """Return the nearest DNS label: what an object of Kubernetes may be called."""
    label = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
    return label if label[:1].isalpha() else f"m-{label}".strip("-")


def deployment_of(
    path: Path, specs: Sequence[ModelSpec], image: str = "", name: str = "", engine_parameters: str = ""
) -> Deployment:
    """Return what a cluster has to know of these models, all in one folder or file."""
    models = tuple(dict.fromkeys(spec.name for spec in specs))
    gpus = max((_gpus_of(spec) for spec in specs), default=0)
    return Deployment(
        name=object_name(name or (models[0] if len(models) == 1 else path.resolve().name)),
        path=path,
        models=models,
        kserve_format=_format_of(path, specs) if len(models) == 1 else ANY_FORMAT,
        size=sum(each.stat().st_size for each in set(_files(path, specs))),
        gpus=gpus,
        image=image or default_image(gpus),
        engine_parameters=engine_parameters,
    )


def _format_of(path: Path, specs: Sequence[ModelSpec]) -> str:
    if (path / _MLMODEL).is_file():
        return ENGINE_FORMATS["python-mlflow"]
    return ENGINE_FORMATS.get(specs[0].engine, ANY_FORMAT)


def _gpus_of(spec: ModelSpec) -> int:
    groups = [group for group in spec.groups if group.device is Device.GPU]
    return max((max((*group.device_ids, 0)) + 1 for group in groups), default=0)


def _files(path: Path, specs: Sequence[ModelSpec]) -> Iterator[Path]:
    """Yield the files of the models: all below a folder that was given, or the file with its neighbours of the same
    name.
    """
    if path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_file())
    elif path.is_file():
        yield path
        yield from path.parent.glob(f"{path.stem}.*")
    else:  # a handler's class behind its file
        yield from {spec.root / spec.entry for spec in specs if (spec.root / spec.entry).is_file()}
