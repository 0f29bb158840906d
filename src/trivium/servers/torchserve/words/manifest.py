"""MAR-INF/MANIFEST.json of a TorchServe archive: what it says, and what is wrong with it.

Source: spec sheet `torchserve`, sections 3.2 and 8.1. Decides nothing about files: whether they are there, the format
sees. The whole document goes to the handler as it is, so unknown keys are no fault.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from trivium.types.findings import Finding, Severity
from trivium.types.registered_names import LONGEST, unfit_name

PLACE = "MAR-INF/MANIFEST.json"
MAX_BYTES = 2**20
RUNTIMES = ("python", "python3")
BUILT_IN = frozenset(
    {
        "base_handler",
        "text_classifier",
        "image_classifier",
        "object_detector",
        "image_segmenter",
        "densenet_handler",
        "dali_image_classifier",
        "vllm_handler",
        "trt_llm_handler",
        "llm_api",
    }
)
"""Handlers that TorchServe ships and archives name without holding them, and `llm_api`, which is ours."""

DEFAULT_VERSION = "1.0"
_MODEL_KEYS = (
    "modelName",
    "modelVersion",
    "handler",
    "serializedFile",
    "modelFile",
    "requirementsFile",
    "configFile",
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a manifest. `document` is all of it; `lines` has the line of each key that was found; names of
    files are relative to the model's folder, and empty where there is none.
    """

    file: str
    document: Mapping[str, object] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    name: str = ""
    version: str = DEFAULT_VERSION
    handler: str = ""
    serialized_file: str = ""
    model_file: str = ""
    requirements_file: str = ""
    config_file: str = ""

    def fault(self, key: str, found: str, expected: str, hint: str) -> Finding:
        """An ERROR at a key of this manifest."""
        return Finding(Severity.ERROR, self.file, self.lines.get(key), key, found, expected, hint)


@dataclass(frozen=True, slots=True)
class HandlerRef:
    """A handler as a manifest names it: a module by its file (`file.py`, `dir/file.py`) or its built-in name, and
    the function in it, empty where none is named.
    """

    file: str
    function: str

    @property
    def name(self) -> str:
        """The module's own name."""
        return PurePosixPath(self.file).name.removesuffix(".py")


def handler_ref(handler: str) -> HandlerRef:
    """`file.py`, `file`, either with `:function` behind it. The file's name always ends in `.py`."""
    file, _, function = handler.partition(":")
    return HandlerRef(file if file.endswith(".py") else f"{file}.py", function.strip())


def read_manifest(file: str, data: bytes) -> Manifest:
    """The manifest, with a finding for each fault; never raises."""
    if len(data) > MAX_BYTES:
        return Manifest(file, findings=(_whole(file, f"more than {MAX_BYTES} bytes"),))
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return Manifest(file, findings=(_whole(file, f"no JSON: {error.msg}", error.lineno),))
    except (ValueError, RecursionError) as error:
        return Manifest(file, findings=(_whole(file, f"no JSON: {error}"),))
    if not isinstance(document, dict):
        return Manifest(file, findings=(_whole(file, "JSON that is no object"),))
    return _checked(Manifest(file, document, _lines(text)))


def _checked(bare: Manifest) -> Manifest:
    findings: list[Finding] = []
    model = bare.document.get("model")
    if not isinstance(model, dict):
        found = "missing" if model is None else f"{model!r}"[:80]
        findings.append(bare.fault("model", found, 'an object: {"modelName": ...}', "Pack the model anew."))
        model = {}
    texts = {key: _text(bare, model, key, findings) for key in _MODEL_KEYS}
    runtime = bare.document.get("runtime")
    if runtime not in RUNTIMES:
        what = "missing" if runtime is None else repr(runtime)[:80]
        hint = (
            "LSP is TorchServe's C++ backend, which is not served: pack the model with a Python handler."
            if runtime == "LSP"
            else 'Write "runtime": "python".'
        )
        findings.append(bare.fault("runtime", what, "python or python3", hint))
    for key in ("serializedFile", "modelFile", "requirementsFile", "configFile", "handler"):
        name = handler_ref(texts[key]).file if key == "handler" and texts[key] else texts[key]
        if name and not _stays_inside(name):
            findings.append(
                bare.fault(
                    f"model.{key}", repr(texts[key]), "a file in the archive", "Name it relative to the top."
                )
            )
    return Manifest(
        bare.file,
        bare.document,
        bare.lines,
        tuple(findings),
        name=texts["modelName"],
        version=texts["modelVersion"],
        handler=texts["handler"],
        serialized_file=texts["serializedFile"],
        model_file=texts["modelFile"],
        requirements_file=texts["requirementsFile"],
        config_file=texts["configFile"],
    )


def _text(manifest: Manifest, model: Mapping[str, object], key: str, findings: list[Finding]) -> str:
    """The text of a key, empty where there is none or it is no text that serves."""
    value = model.get(key)
    if value is None and key not in ("modelName", "modelVersion"):
        return ""
    if isinstance(value, str) and not unfit_name(value):
        return value
    if value == "" and key not in ("modelName", "modelVersion"):
        return ""
    found = "missing" if value is None else repr(value)[:80]
    expected = f"text of 1 to {LONGEST} printable characters"
    findings.append(manifest.fault(f"model.{key}", found, expected, "Correct it, or pack the model anew."))
    return ""


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _lines(text: str) -> dict[str, int]:
    """The line on which each key that matters stands first."""
    found = {}
    for key in ("model", "runtime", *_MODEL_KEYS):
        place = re.search(rf'"{key}"\s*:', text)
        if place:
            name = f"model.{key}" if key in _MODEL_KEYS else key
            found[name] = text.count("\n", 0, place.start()) + 1
    return found


def _whole(file: str, found: str, line: int | None = None) -> Finding:
    hint = "Pack the model anew with torch-model-archiver, or write the file by hand."
    return Finding(Severity.ERROR, file, line, "", found, "a JSON object of at most 1 MiB", hint)
