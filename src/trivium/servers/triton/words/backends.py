"""Chooses the backend of a model: by platform, backend, file name, or what lies in the first version folder.

The table and its order are the original's (sheet "triton", section 2.4, step A). Pure: file names come in.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from trivium.codecs.near_names import near
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.findings import Change, Finding
from trivium.types.unserved import UNSERVED, WEIGHTS

PRIVATE_REGIONS = ("triton_python_backend_shm_region_",)
"""Keys of shared memory begin so that the original's Python backend keeps for itself (sheet `triton`, section 4.10)."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend, the platform that names it too (may be empty) and the file it opens (empty: needs none).

    `engine` is ours; `cpu_instances` holds for a CPU group without a count; `completes` says whether inputs
    and outputs may be left to the model file; `needs_tensors` whether there must be some at all;
    `tells_shapes` whether its engine takes inputs that tell of requests' shapes; `leaves_open` whether its files may
    tell a tensor's name alone, so that datatype and shape are those of each request; `keeps_dims` whether a model
    is not completed to batch where its configured dims have the first dimension of the file; `decouples`: a request may
    have several responses.
    """

    name: str
    platform: str = ""
    filename: str = ""
    engine: str = ""
    cpu_instances: int = 1
    completes: bool = False
    needs_tensors: bool = True
    tells_shapes: bool = False
    leaves_open: bool = False
    keeps_dims: bool = False
    decouples: bool = False

    @property
    def engine_name(self) -> str:
        return self.engine or self.name


ENSEMBLE = Backend("", "ensemble", engine="ensemble")
"""No backend: a graph of other models."""

FOREST, GENERATES = "fil", "vllm"
KINDS_OF_FOREST: Mapping[str, Backend] = {
    "xgboost": Backend(FOREST, "", "xgboost.model", engine="xgboost"),
    "xgboost_json": Backend(FOREST, "", "xgboost.json", engine="xgboost"),
    "xgboost_ubj": Backend(FOREST, "", "xgboost.ubj", engine="xgboost"),
    "lightgbm": Backend(FOREST, "", "model.txt", engine="lightgbm"),
}
"""A `model_type` of the backend `fil` -> the file that it opens, and by what."""

BACKENDS = (
    Backend("tensorrt", "tensorrt_plan", "model.plan"),
    Backend(
        "onnxruntime",
        "onnxruntime_onnx",
        "model.onnx",
        engine="onnx",
        cpu_instances=2,
        completes=True,
        tells_shapes=True,
    ),
    Backend("openvino", "", "model.xml", completes=True, keeps_dims=True),
    Backend("pytorch", "pytorch_libtorch", "model.pt", engine="torch", tells_shapes=True, leaves_open=True),
    Backend("pytorch", "torch_aoti", "model.pt2", engine="torch", tells_shapes=True),
    Backend("python", "", "model.py", engine="python-triton", needs_tensors=False, decouples=True),
    Backend(GENERATES, "", "model.json", needs_tensors=False, decouples=True),
    Backend("tensorflow", "tensorflow_savedmodel", "model.savedmodel", cpu_instances=2, completes=True),
    Backend("tensorflow", "tensorflow_graphdef", "model.graphdef", cpu_instances=2, completes=True),
    *KINDS_OF_FOREST.values(),
)
_ALIKE = 0.85
"""How like a known backend's name one must be to be taken for a slip: others may be of engines that were added."""

_OF_OTHER_LAYOUTS = ("python-", "workflow")
"""How names of backends begin that we print for models whose files no config.pbtxt describes."""
_TO_ONNX = 'Convert the model to ONNX{}, and write backend: "onnxruntime".'
WAYS_OUT: Mapping[str, str] = {
    "tensorrt": _TO_ONNX.format(": a plan runs on the GPU alone that it was made for"),
    "dali": 'Write its steps as a model with backend: "python".',
    "tensorrtllm": WEIGHTS,
    **{
        name: row.way_out
        for row in UNSERVED
        for name in (row.library.lower(), *row.names)
        if name != "tensorrt"
    },
}
"""Backend of the original that nothing here stands for -> what to do instead."""

_ALIASES = {"libtorch": "pytorch_libtorch"}
_NAMES = sorted({backend.name for backend in BACKENDS})
_RECOGNISED = tuple(backend for backend in BACKENDS if backend.name not in (FOREST, GENERATES))
MODEL_FILES = frozenset(backend.filename for backend in _RECOGNISED)
"""File names by which a version folder is recognised; those of `fil` and `vllm` are too common to be one."""


def choose_backend(text: ConfigText, model: str, files: Collection[str]) -> Backend | Finding:
    """The backend of a model folder named `model`, whose first version folder holds `files`; or why not."""
    config = text.config
    if config.HasField("ensemble_scheduling") or config.platform == ENSEMBLE.platform:
        return _ensemble(text)
    if config.platform:
        return _by_platform(text)
    if config.backend.startswith(_OF_OTHER_LAYOUTS):
        return text.fault(
            "backend",
            f"the backend {config.backend}, which runs what lies in a folder of another layout",
            f"one of {', '.join(_NAMES)}, or another's name",
            "Serve that folder as it is: a config.pbtxt does not describe its files.",
        )
    if config.backend == FOREST and (kind := config.parameters["model_type"].string_value):
        return KINDS_OF_FOREST.get(kind, KINDS_OF_FOREST["xgboost"])
    if config.backend:
        rows = [backend for backend in BACKENDS if backend.name == config.backend]
        if rows:
            return _best(rows, config.default_model_filename, files)
        meant = near(config.backend.lower(), (*_NAMES, *WAYS_OUT), _ALIKE)
        return _misspelt(text, meant) if meant else Backend(config.backend)
    for clue in ({config.default_model_filename}, files):
        for backend in _RECOGNISED:
            if backend.filename in clue:
                return backend
    _, _, suffix = model.rpartition(".")
    if suffix != model and suffix:
        return next((b for b in BACKENDS if b.name == suffix), Backend(suffix, filename=f"model.{suffix}"))
    there = ", ".join(sorted(files)) or "nothing"
    return text.fault(
        "backend",
        f"neither backend nor platform, and no model file that tells (the first version folder has {there})",
        f"backend: one of {', '.join(_NAMES)}, or another's name",
        'Add backend: "onnxruntime" or whichever serves the file.',
    )


def without_engine(text: ConfigText, backend: Backend, model: str, version: str) -> Finding | None:
    """Name a backend that there is nothing for, with the way out; None for any other. No more is to be said then."""
    if backend.name not in WAYS_OUT:
        return None
    key = "platform" if text.config.platform and not text.config.backend else "backend"
    served = ", ".join(sorted({each.name for each in BACKENDS if each.name not in WAYS_OUT}))
    found = f"the backend {backend.name}, which is not supported in this version"
    fault = text.fault(key, found, f"one of {served}, or an ensemble", WAYS_OUT[backend.name])
    facts = {"model": model, "version": version, "engine": backend.name}
    return replace(fault, info=ErrorInfo.of(reasons.NO_ENGINE, **facts))


def _misspelt(text: ConfigText, meant: str) -> Finding:
    found = f"the backend {text.config.backend[:80]}"
    change = Change(value=f'"{meant}"')
    return text.fault("backend", found, f"one of {', '.join(_NAMES)}", f"Did you mean {meant}?", change)


def _ensemble(text: ConfigText) -> Backend | Finding:
    config = text.config
    if not config.HasField("ensemble_scheduling"):
        hint = "Add ensemble_scheduling { step [ ... ] }, or correct the platform."
        return text.fault("platform", "the platform ensemble without ensemble_scheduling", "its steps", hint)
    if config.backend or config.platform not in ("", ENSEMBLE.platform):
        found = f"an ensemble with the backend {config.backend or config.platform}"
        key = "backend" if config.backend else "platform"
        expected, hint = 'platform: "ensemble" alone', "Remove it: the steps have their own."
        return text.fault(key, found, expected, hint, Change())
    return ENSEMBLE


def _by_platform(text: ConfigText) -> Backend | Finding:
    platform, name = text.config.platform, text.config.backend
    known = {backend.platform: backend for backend in BACKENDS if backend.platform}
    backend = known.get(_ALIASES.get(platform, platform))
    if backend is not None and name in ("", backend.name):
        return backend
    if backend is None and name and name not in _NAMES:
        return Backend(name, platform)
    if name:
        expected = backend.name if backend else f"a platform of {name}"
        hint = f'Write backend: "{backend.name}".' if backend else "Remove platform: backend is enough."
        change = Change("backend", value=f'"{backend.name}"') if backend else Change()
        found = f"the platform {platform} with the backend {name}"
        return text.fault("platform", found, expected, hint, change)
    meant = near(platform, known)
    mends = (Change(value=f'"{meant}"'),) if meant else ()
    hint = f"Did you mean {meant}?" if meant else "Write backend instead, with the backend's name."
    expected = f"one of {', '.join(sorted(known))}"
    return text.fault("platform", f"the platform {platform}", expected, hint, *mends)


def _best(rows: list[Backend], filename: str, files: Collection[str]) -> Backend:
    """Return the row of a backend with several file kinds whose file is named or there, else the first."""
    for clue in ({filename}, files):
        for backend in rows:
            if backend.filename in clue:
                return backend
    return rows[0]
