"""Weights of a causal language model as they lie on a disk, whichever format names their folder.

Finds the file that the engine opens and judges what is small: config.json, the index of the weights, the first bytes of
each piece. Tensors and the words of a tokenizer are the engine's, in a process of its own. Must not know any format's
settings but whether code of the folder is trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trivium.files import open_file
from trivium.formats.checkpoint import gguf, names
from trivium.formats.checkpoint.config import MAX_BYTES as MAX_CONFIG
from trivium.formats.checkpoint.config import (
    MAX_TOKENIZER_CONFIG,
    QUANTISED,
    HfConfig,
    TaskChoice,
    read_config,
    read_tokenizer_code,
)
from trivium.formats.checkpoint.documents import JsonFile, read_object
from trivium.formats.checkpoint.weights import LENGTH, MAX_INDEX, header_fault, lacking, read_index
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.model_tasks import ModelTask
from trivium.types.spec import Origin
from trivium.types.text_engines import VLLM, WeightForm

ENGINE, TASK_ENGINE = "hf", "hf-tasks"
"""Engines of what is here: of causal language models in rolling batches, and of all tasks by whole calls."""

_SENTENCES = "modules.json"
"""Of a folder that sentence-transformers wrote: its vectors are those of whole texts."""

_TOKENIZER_CONFIG = "tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class CheckpointReading:
    """One model's weights: `entry` is the file in the folder that the engine opens. `details` are what the files say of
    the model, each with its origin; `context` is 0 where they do not say how many tokens it was trained with. `task` is
    what it is for.
    """

    entry: str
    context: int = 0
    details: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    task: ModelTask = ModelTask.GENERATION

    def origin(self) -> dict[str, Origin]:
        """Return where each detail was found, by its field in a spec."""
        return {f"details[{name}]": place for name, place in self.origins.items()}

    def opened_by(self, engine: str) -> "CheckpointReading":
        """Return it with the faults that an engine has with it: vLLM opens weights that were quantised beforehand."""
        if engine != VLLM:
            return self
        return replace(self, findings=tuple(one for one in self.findings if one.key != QUANTISED))


def read_checkpoint(
    folder: Path, trusts_code: bool, trust: str, entry: str = "", tasks: TaskChoice | None = None
) -> CheckpointReading:
    """Read the weights of a folder; all that is wrong with them is in `findings`. `trust` says how a user has the
    folder's own code run; `entry` is the GGUF file, where one is meant; `tasks` are served, where not text generation
    alone. Raises OSError.
    """
    if entry:
        return _gguf(folder / entry)
    files = frozenset(one.name for one in folder.iterdir() if not one.is_dir())
    if names.CONFIG in files:
        return _folder(folder, files, trusts_code, trust, tasks)
    if names.ADAPTER in files:
        return CheckpointReading("", findings=(_adapter_fault(folder),))
    models = names.gguf_files(files)
    if len(models) == 1:
        return _gguf(folder / models[0])
    found = (
        f"{len(models)} of .gguf files: {', '.join(models[:5])}"
        if models
        else "no config.json and no .gguf file"
    )
    hint = "Keep one of them in the folder." if models else "Put the model's files into it."
    fault = _fault(folder, found, "a Hugging Face folder, or one .gguf file", hint)
    return CheckpointReading("", findings=(fault,))


def _adapter_fault(folder: Path) -> Finding:
    """Return the finding for a folder that only changes another model. Raises OSError."""
    read = read_object(*_read(folder / names.ADAPTER, MAX_CONFIG), MAX_CONFIG, "")
    base = read.document.get("base_model_name_or_path")
    of = f" of {base[:80]!r}" if isinstance(base, str) else ""
    return _fault(
        folder / names.ADAPTER,
        f"an adapter{of} (LoRA), which changes a model and is none by itself",
        f"a folder with {names.CONFIG} and all weights",
        "Serve its base, with this folder as adapters/NAME in the base's folder. Or merge it into its base once: "
        "AutoPeftModelForCausalLM.from_pretrained(FOLDER).merge_and_unload().save_pretrained(NEW), with the "
        "tokenizer's files; then serve NEW.",
    )


def names_in(folder: Path) -> frozenset[str]:
    """Return the names of a folder's entries, without the hidden ones. Raises OSError."""
    return frozenset(one.name for one in folder.iterdir() if not one.name.startswith("."))


def checked(checkpoint: CheckpointReading) -> CheckpointReading:
    """Return it if nothing is wrong with it. Raises ConfigError with all that is."""
    if any(one.severity is Severity.ERROR for one in checkpoint.findings):
        raise ConfigError(checkpoint.findings)
    return checkpoint


def _gguf(path: Path) -> CheckpointReading:
    if names.is_piece(path.name):
        hint = "Join the pieces: llama-gguf-split --merge FIRST-PIECE MODEL.gguf."
        fault = _fault(path, "one piece of a model that is split over several files", "one .gguf file", hint)
        return CheckpointReading(path.name, findings=(fault,))
    with open_file(path) as file:
        size = path.stat().st_size
        head = gguf.read_head(str(path), file.read(gguf.HEAD_BYTES), size)
    found: dict[str, tuple[str | int, Origin]] = {
        "architecture": (head.architecture, Origin(str(path), "general.architecture")),
        "trained_context": (head.context, Origin(str(path), head.context_key)),
    }
    return _made(path.name, head.context, found, head.findings)


def _folder(
    folder: Path, files: frozenset[str], trusts_code: bool, trust: str, tasks: TaskChoice | None
) -> CheckpointReading:
    config = read_config(*_read(folder / names.CONFIG, MAX_CONFIG), tasks)
    findings = [*config.findings]
    if not config.file.findings:
        findings += _code_faults(folder, files, config, trusts_code, trust)
    findings += _weight_faults(folder, files)
    if not any(name in files for name in names.TOKENIZERS):
        expected = "tokenizer.json, or another tokenizer that transformers reads"
        hint = "Save it with the model: AutoTokenizer.from_pretrained(...).save_pretrained(FOLDER)."
        findings.append(_fault(folder, "no tokenizer", expected, hint))

    def found_at(key: str) -> Origin:
        return Origin(config.file.file, key, config.file.line(key))

    found: dict[str, tuple[str | int, Origin]] = {
        "architecture": (config.architecture, found_at("architectures")),
        "trained_context": (config.context, found_at(config.context_key)),
        "stored_dtype": (config.dtype, found_at(config.dtype_key)),
    }
    entry = names.OPENVINO if is_exported(files) else names.CONFIG
    made = _made(entry, config.context, found, findings)
    task = config.task or ModelTask.GENERATION
    is_asked = tasks is not None and tasks.asked is not None
    if task is ModelTask.FEATURES and _SENTENCES in files and not is_asked:
        task = ModelTask.EMBEDDING
    if is_exported(files) and (is_asked or task is not ModelTask.GENERATION):
        made = replace(made, findings=(*made.findings, _exported_task_fault(folder, task)))
    return replace(made, task=task)


def _exported_task_fault(folder: Path, task: ModelTask) -> Finding:
    found = f"weights of OpenVINO for the task {task.value}, by whole calls"
    expected = "weights of OpenVINO for text-generation, which is served in rolling batches, or safetensors"
    hint = "Serve the model's safetensors, from which it was exported; or its graph alone, as a model of tensors."
    return _fault(folder / names.OPENVINO, found, expected, hint)


def _made(
    entry: str, context: int, found: Mapping[str, tuple[str | int, Origin]], findings: Sequence[Finding]
) -> CheckpointReading:
    details = {name: str(value) for name, (value, _) in found.items() if value}
    return CheckpointReading(
        entry, context, details, {name: found[name][1] for name in details}, tuple(findings)
    )


def form_of(entry: str) -> WeightForm:
    """Return the form in which the weights lie whose entry this is."""
    if entry == names.OPENVINO:
        return WeightForm.OPENVINO
    return WeightForm.GGUF if entry.lower().endswith(names.GGUF) else WeightForm.SAFETENSORS


def is_exported(files: frozenset[str]) -> bool:
    """Tell whether the weights of a folder with these files are OpenVINO's: it has no others that are served."""
    return names.OPENVINO in files and not names.has_safetensors(files)


def _exported_faults(folder: Path, files: frozenset[str]) -> list[Finding]:
    weights = Path(names.OPENVINO).with_suffix(".bin").name
    if weights in files:
        return []
    found = f"{names.OPENVINO} without its weights"
    return [_fault(folder / weights, found, f"{names.OPENVINO} and {weights}", "Copy that file, too.")]


def _weight_faults(folder: Path, files: frozenset[str]) -> list[Finding]:
    if is_exported(files):
        return _exported_faults(folder, files)
    if names.INDEX in files:
        index = folder / names.INDEX
        pieces, faults = read_index(*_read(index, MAX_INDEX))
        there = {piece: piece in files for piece in pieces}
        return [*faults, *lacking(str(index), there), *_heads(folder, [one for one in pieces if there[one]])]
    if names.WEIGHTS in files:
        return _heads(folder, [names.WEIGHTS])
    expected = f"{names.WEIGHTS}, or {names.INDEX} and the files that it names"
    pickled = names.pickled(files)
    if pickled and not names.has_safetensors(files):
        found = f"{', '.join(pickled[:3])}: pickled weights run code when they are opened, and are not loaded"
        hint = (
            'Convert them once, where you trust them: python -c "from transformers import AutoModelForCausalLM as M; '
            f"M.from_pretrained({str(folder)!r}).save_pretrained('NEW')\", with transformers 4; copy the tokenizer's "
            "files to NEW, too."
        )
        return [_fault(folder / pickled[0], found, expected, hint)]
    others = sorted(name for name in files if name.endswith(".safetensors"))
    found = f"weights under other names: {', '.join(others[:3])}" if others else "no weights"
    return [_fault(folder, found, expected, "Save the model anew: model.save_pretrained(FOLDER).")]


def _heads(folder: Path, pieces: list[str]) -> list[Finding]:
    faults = []
    for piece in pieces:
        path = folder / piece
        with open_file(path) as file:
            fault = header_fault(str(path), file.read(LENGTH + 1), path.stat().st_size)
        faults += [fault] if fault else []
    return faults[:10]


def _code_faults(
    folder: Path, files: frozenset[str], config: HfConfig, trusts_code: bool, trust: str
) -> list[Finding]:
    """Return what stands against code that the folder brings: that nobody trusts it, or that it lies elsewhere."""
    findings: list[Finding] = []
    owners: list[tuple[JsonFile, Mapping[str, str]]] = [(config.file, config.code)]
    if _TOKENIZER_CONFIG in files:
        read, own = read_tokenizer_code(*_read(folder / _TOKENIZER_CONFIG, MAX_TOKENIZER_CONFIG))
        findings += read.findings
        owners.append((read, own))
    for file, code in owners:
        shown = "; ".join(f"{name}: {value}" for name, value in code.items())[:120]
        if code and not trusts_code:
            found = f"code of the model's own ({shown}), which would run as the server's user"
            hint = f"If you trust the folder, {trust}; where transformers knows the architecture, remove auto_map."
            findings.append(
                file.finding("auto_map", found, "a model that transformers knows by itself", hint)
            )
        elif any("--" in value for value in code.values()):
            found, hint = (
                f"{shown}: code on a hub, which is not fetched",
                "Add the files, and name them without --.",
            )
            findings.append(file.finding("auto_map", found, "Python files of the folder", hint))
    return findings


def _read(path: Path, most: int) -> tuple[str, bytes]:
    with open_file(path) as file:
        return str(path), file.read(most + 1)


def _fault(place: Path, found: str, expected: str, hint: str) -> Finding:
    return Finding(Severity.ERROR, str(place), None, "", found, expected, hint)
