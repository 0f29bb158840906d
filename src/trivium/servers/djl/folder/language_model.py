"""DJL folders of language models without a handler: whether a folder is one, and its options as the engine's settings.

DJL runs them by handlers of its own (vLLM, lmi-dist, ...); here one engine serves them all. Source: spec sheets `djl`,
sections 11.1 and 11.2, and `llm`. Errors gather in the settings.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from trivium.formats.checkpoint.checkpoint import CheckpointReading, names_in, read_checkpoint
from trivium.formats.checkpoint.config import TaskChoice
from trivium.formats.checkpoint.names import CONFIG, GGUF, is_folder
from trivium.servers.djl.folder.engine_choice import Choice
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.folder.static_batching import dtype_of, judge_static, static_parameters, task_asked
from trivium.servers.djl.words.detection import detect, find_file
from trivium.servers.djl.words.engines import LANGUAGE_MODEL, NAMES, PYTHON, TASK_MODEL
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.model_tasks import ModelTask
from trivium.types.spec import Defaults, Origin

_BATCH, _ENTRY, _MODEL_ID = "option.rolling_batch", "option.entryPoint", "option.model_id"
_ASYNC = "option.async_mode"
_TRUST, _FORMATTER, _TGI = (
    f"option.{name}" for name in ("trust_remote_code", "output_formatter", "tgi_compat")
)
_PROCESSORS = "option.logits_processors"
_TENSOR = "option.tensor_parallel_degree"
_BUILT_IN = ("djl_python.huggingface", "djl_python.deepspeed", "djl_python.lmi_vllm.vllm_async_service")
"""DJL's handlers of language models whose models the engine serves."""

_UNSERVED = {
    "djl_python.tensorrt_llm": "TensorRT-LLM",
    "djl_python.transformers_neuronx": "Transformers-NeuronX",
    "djl_python.transformers-neuronx": "Transformers-NeuronX",
}
_OURS = ("auto", "scheduler")
_FORMATTERS = ("json", "jsonlines", "sse")
_SLOTS = ("option.max_rolling_batch_size", "option.max_num_sequences", "option.max_num_seqs")
_CHUNK = ("option.max_rolling_batch_prefill_tokens", "option.max_num_batched_tokens")
_CONTEXT = ("option.max_model_len", "option.n_positions", "option.max_tokens")
_INPUT, _OUTPUT = "option.max_input_len", "option.max_output_len"
_WAY_OUT = "Write option.rolling_batch=auto, or load the model in a model.py."


def is_language_model(settings: DjlSettings, folder: DjlModelFolder) -> bool:
    """Does DJL serve this folder by a handler of its own for language models? A model.py goes before that."""
    engine = settings.text(["engine"]).value.lower()
    if engine and NAMES.get(engine, (None, ""))[0] is not PYTHON:
        return False
    entry = settings.text([_ENTRY]).value
    if entry:
        return entry in _BUILT_IN or entry in _UNSERVED
    if find_file(folder.files, folder.prefixes, PYTHON.suffixes):
        return False
    detected = detect(folder.files, folder.prefixes)
    if detected is not None and (detected.is_served or detected.built_in not in ("", *_BUILT_IN)):
        return False
    return CONFIG in folder.files or any(bool(settings.text([key]).value) for key in (_BATCH, _MODEL_ID))


def is_weights(path: Path) -> bool:
    """Tell whether a folder holds a language model and no settings. Raises OSError."""
    return is_folder(names_in(path), path.name)


def choose(settings: DjlSettings, folder: DjlModelFolder, defaults: Defaults) -> Choice | None:
    """Return the engine, the file of weights and the engine's settings; None, and errors in `settings`, where there is
    none. Raises OSError.
    """
    _judge_runtime(settings)
    _judge_devices(settings, defaults.gpus)
    root = _root(settings, folder)
    if root is None:
        return None
    trusts = settings.switch(_TRUST)  # or HF_TRUST_REMOTE_CODE: see `dialects.djl.layers`
    asked = task_asked(settings)
    tasks = TaskChoice("Set option.task", asked.value)
    gguf = _gguf(folder, root.value)
    made = read_checkpoint(root.value, trusts.value, f"write {_TRUST}=true", gguf, tasks)
    settings.findings += made.findings
    is_static = made.task is not ModelTask.GENERATION or (bool(made.entry) and _is_static(settings, made))
    if is_static:
        judge_static(settings, made)
    else:
        _judge_batching(settings)
    entry = Placed(made.entry, Origin(str(root.value / made.entry), ""))
    rule = Placed("", Origin("a language model has no handler", ""))
    plain = Placed(False, rule.origin)
    engine = Placed(TASK_MODEL if is_static else LANGUAGE_MODEL, _why(settings))
    parameters = static_parameters(settings, made, asked) if is_static else _parameters(settings)
    return Choice(engine, entry, rule, plain, root, parameters, made)


def _is_static(settings: DjlSettings, made: CheckpointReading) -> bool:
    """Is a causal language model to be batched statically: by its own word, or by a batch's size without one?"""
    word = settings.text([_BATCH]).value.lower()
    if made.entry.lower().endswith(GGUF) or settings.switch(_ASYNC).value:
        return False
    sizes = (settings.number([key], 1).value for key in ("batch_size", "max_dynamic_batch_size"))
    return word == "disable" or (not word and any(size > 1 for size in sizes))


def _why(settings: DjlSettings) -> Origin:
    """Return which line makes the folder a language model."""
    for key in (_BATCH, _ENTRY, _MODEL_ID):
        if (text := settings.text([key])).value:
            return text.origin
    return Origin(f"the file {CONFIG}", "")


def _judge_runtime(settings: DjlSettings) -> None:
    batch, entry = settings.text([_BATCH]), settings.text([_ENTRY])
    runtime = _UNSERVED.get(entry.value, "")
    if runtime or batch.value.lower() == "trtllm":
        key, text = (_ENTRY, entry.value) if runtime else (_BATCH, batch.value)
        found = f"{key}={text}: {runtime or 'TensorRT-LLM'} is not supported in this version"
        settings.fault(key, found, "auto, scheduler, vllm, lmi-dist or deepspeed", _WAY_OUT)


def _judge_batching(settings: DjlSettings) -> None:
    batch = settings.text([_BATCH])
    word = batch.value.lower()
    if word == "trtllm" or settings.text([_ENTRY]).value in _UNSERVED:
        return
    if word == "disable" and settings.switch(_ASYNC).value:
        settings.notice(
            _BATCH, f"{_BATCH}=disable with {_ASYNC}=true: requests run together as they come, as with auto"
        )
    elif word == "disable":
        found = f"{_BATCH}=disable: static batching of a .gguf file is not supported in this version"
        settings.fault(_BATCH, found, "auto, or no such line", _WAY_OUT)
    elif not word:
        settings.notice(
            "", f"without {_BATCH} DJL batches statically; here requests join and leave at every step"
        )
    elif word not in _OURS:
        found = (
            f"{_BATCH}={batch.value} is served by the engine {LANGUAGE_MODEL.engine}, on the CPU or one GPU"
        )
        settings.notice(_BATCH, found, "Write auto to leave the choice open.")


def _judge_devices(settings: DjlSettings, gpus: int) -> None:
    written = settings.text([_TENSOR]).value.lower()
    degree = max(gpus, 1) if written == "max" else settings.number([_TENSOR], 1).value
    if degree > 1:
        found = f"{_TENSOR}={written} has no effect: a language model runs on one device in this version"
        settings.notice(_TENSOR, found, "Where it does not fit, let a model.py spread it.")


def _root(settings: DjlSettings, folder: DjlModelFolder) -> Placed[Path] | None:
    """Return the folder of the weights: that of `option.model_id`, or the model's own."""
    written = settings.text([_MODEL_ID])
    if not written.value:
        return Placed(folder.path, Origin(str(folder.path), ""))
    expected = "the path of a folder with config.json and safetensors, or with a .gguf file"
    found = ""
    if "://" in written.value:
        found = "which is not fetched"
    elif ".." in PurePosixPath(written.value).parts:
        found = f"which leads out of {folder.path}"
    if found:
        text, hint = (
            f"{_MODEL_ID}={written.value[:200]}, {found}",
            "Download it, and give the path of its folder.",
        )
        settings.fault(_MODEL_ID, text, expected, hint)
        return None
    try:
        path = folder.path / written.value
        if path.is_dir():
            return Placed(path, written.origin)
    except (OSError, ValueError):
        pass
    is_id = written.value.count("/") < 2 and not written.value.startswith(("/", "."))
    why = "an id of the Hugging Face hub, which is not asked" if is_id else "where there is no folder"
    hint = (
        f"Download it where the network is: hf download {written.value} --local-dir FOLDER, and give that path."
        if is_id and written.value.isprintable()
        else "Correct the path; it begins with / or at the model's folder."
    )
    settings.fault(_MODEL_ID, f"{_MODEL_ID}={written.value[:200]}, {why}", expected, hint)
    return None


def _gguf(folder: DjlModelFolder, root: Path) -> str:
    """Return the GGUF file named after the folder, where there are several and no config.json."""
    if root != folder.path or CONFIG in folder.files:
        return ""
    return find_file(folder.files, folder.prefixes, (GGUF,))


def _parameters(settings: DjlSettings) -> Mapping[str, Placed[str]]:
    found: dict[str, Placed[str]] = {}
    for name, setting in (
        ("slots", _number(settings, _SLOTS)),
        ("prefill_chunk", _number(settings, _CHUNK)),
        ("max_context", _context(settings)),
    ):
        if setting is not None:
            found[name] = setting
    if (dtype := dtype_of(settings)) is not None:
        found["dtype"] = dtype
    for key, name in ((_TRUST, "trust_remote_code"), (_TGI, "tgi_compat")):
        if settings.text([key]).value:
            switch = settings.switch(key)
            found[name] = Placed(str(switch.value).lower(), switch.origin)
    processors = settings.text([_PROCESSORS])
    if processors.value:
        found["logits_processors"] = processors
    formatter = settings.text([_FORMATTER])
    if formatter.value:
        if formatter.value.lower() not in _FORMATTERS:
            text = f"{_FORMATTER}={formatter.value[:80]}, which is not supported in this version"
            settings.fault(_FORMATTER, text, ", ".join(_FORMATTERS), "Write one of them, or remove the line.")
        found["output_formatter"] = Placed(formatter.value.lower(), formatter.origin)
    return found


def _number(settings: DjlSettings, keys: Sequence[str]) -> Placed[str] | None:
    """Return the number that one of these spellings gives; they may not contradict each other."""
    given = {key: number for key in keys if (number := settings.number([key], 0)).value}
    values = {number.value for number in given.values()}
    if len(values) > 1:
        found = " and ".join(f"{key}={number.value}" for key, number in given.items())
        settings.fault(next(iter(given)), found, "one number: they mean the same", "Remove all but one.")
    first = next(iter(given.values()), None)
    return None if first is None else Placed(str(first.value), first.origin)


def _context(settings: DjlSettings) -> Placed[str] | None:
    """Return the longest prompt and answer together: by a key of its own, or as the sum of both."""
    whole = _number(settings, _CONTEXT)
    parts = [settings.number([key], 0) for key in (_INPUT, _OUTPUT)]
    if all(part.value for part in parts):
        total = sum(part.value for part in parts)
        if whole is not None and whole.value != str(total):
            found = f"{whole.origin.key}={whole.value}, and {_INPUT} and {_OUTPUT} together are {total}"
            settings.fault(
                whole.origin.key, found, "one number: they mean the same", "Remove one of the two."
            )
        return whole or Placed(str(total), parts[0].origin)
    for key, part in zip((_INPUT, _OUTPUT), parts, strict=True):
        if part.value:
            other = _OUTPUT if key == _INPUT else _INPUT
            settings.notice(
                key, f"{key}={part.value} has no effect without {other}: both together are the context"
            )
    return whole
