"""DJL folders of language models without a handler: whether a folder is one, and its options as the engine's settings.

DJL runs them by handlers of its own (vLLM, lmi-dist, ...); here one engine serves them all. Source: spec sheets `djl`,
sections 11.1 and 11.2, and `llm`. Errors gather in the settings.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from trivium.fetchers.hub_policy import hub_uri
from trivium.formats.checkpoint.checkpoint import CheckpointReading, form_of, names_in, read_checkpoint
from trivium.formats.checkpoint.config import TaskChoice
from trivium.formats.checkpoint.names import CONFIG, GGUF, is_folder
from trivium.servers.djl.folder.engine_choice import Choice
from trivium.servers.djl.folder.engine_words import WORDS, word_of
from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.folder.lmi_mode import (
    BATCH,
    ENTRY,
    is_asynchronous,
    judge_runtime,
    names_vllm,
    text_engine,
)
from trivium.servers.djl.folder.static_batching import judge_static, static_parameters, task_asked
from trivium.servers.djl.folder.vllm_parameters import vllm_parameters
from trivium.servers.djl.words.detection import detect, find_file
from trivium.servers.djl.words.engines import (
    LANGUAGE_MODEL,
    NAMES,
    OPENVINO_MODEL,
    PYTHON,
    TASK_MODEL,
    VLLM_MODEL,
)
from trivium.servers.djl.words.language_model_keys import SERVED_NAME
from trivium.servers.djl.words.lmi_runtimes import HANDLERS
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.types.errors import ServeError
from trivium.types.model_tasks import ModelTask
from trivium.types.spec import Defaults, Origin
from trivium.types.text_engines import VLLM, WeightForm

_MODEL_ID = "option.model_id"
_REVISION = "option.revision"
_STORES = ("s3://",)
_TRUST, _TGI = "option.trust_remote_code", "option.tgi_compat"
_PROCESSORS, _NAME = "option.logits_processors", f"option.{SERVED_NAME}"
_LORA = "option.enable_lora"
_ADAPTER_NUMBERS = ("max_loras", "max_lora_rank", "max_cpu_loras")
_TENSOR = "option.tensor_parallel_degree"
_SLOTS = ("option.max_rolling_batch_size", "option.max_num_sequences", "option.max_num_seqs")
_CHUNK = ("option.max_rolling_batch_prefill_tokens", "option.max_num_batched_tokens")
_CONTEXT = ("option.max_model_len", "option.n_positions", "option.max_tokens")
_INPUT, _OUTPUT = "option.max_input_len", "option.max_output_len"


def is_language_model(settings: DjlSettings, folder: DjlModelFolder) -> bool:
    """Does DJL serve this folder by a handler of its own for language models? A model.py goes before that."""
    engine = settings.text(["engine"]).value.lower()
    if engine and NAMES.get(engine, (None, ""))[0] is not PYTHON:
        return False
    entry = settings.text([ENTRY]).value
    if entry:
        return entry in HANDLERS
    if find_file(folder.files, folder.prefixes, PYTHON.suffixes):
        return False
    detected = detect(folder.files, folder.prefixes)
    if detected is not None and (detected.is_served or detected.built_in not in ("", *HANDLERS)):
        return False
    return CONFIG in folder.files or any(bool(settings.text([key]).value) for key in (BATCH, _MODEL_ID))


def is_weights(path: Path) -> bool:
    """Tell whether a folder holds a language model and no settings. Raises OSError."""
    return is_folder(names_in(path), path.name)


def choose(settings: DjlSettings, folder: DjlModelFolder, defaults: Defaults) -> Choice | None:
    """Return the engine, the file of weights and the engine's settings; None, and errors in `settings`, where there is
    none. Raises OSError.
    """
    mode = is_asynchronous(settings)
    root = _root(settings, folder, defaults)
    if root is None:
        return None
    trusts = settings.switch(_TRUST)  # or HF_TRUST_REMOTE_CODE: see `dialects.djl.layers`
    asked = task_asked(settings)
    tasks = TaskChoice("Set option.task", asked.value)
    gguf = _gguf(folder, root.value)
    made = read_checkpoint(root.value, trusts.value, f"write {_TRUST}=true", gguf, tasks)
    is_static = made.task is not ModelTask.GENERATION or (
        bool(made.entry) and _is_static(settings, made, mode)
    )
    form = form_of(made.entry)
    is_exported = form is WeightForm.OPENVINO
    if is_static and is_exported:
        _refuse_static(settings)
    chosen = text_engine(settings, form, defaults)
    is_vllm = not is_static and chosen.name == VLLM
    settings.findings += (made.opened_by(VLLM) if is_vllm else made).findings
    if is_static:
        judge_static(settings, made)
    else:
        judge_runtime(settings, mode, chosen)
    if not is_vllm:
        _judge_devices(settings, defaults.gpus)
    entry = Placed(made.entry, Origin(str(root.value / made.entry), ""))
    rule = Placed("", Origin("a language model has no handler", ""))
    plain = Placed(False, rule.origin)
    if is_static:
        return Choice(
            *(Placed(TASK_MODEL, _why(settings)), entry, rule, plain, root),
            *(static_parameters(settings, made, asked), made),
        )
    parameters = _parameters(settings, mode, is_vllm)
    if is_vllm:
        parameters = {**parameters, **vllm_parameters(settings, defaults.gpus)}
    why = _why(settings) if not is_vllm or names_vllm(settings) else Origin(chosen.why, "")
    generating = VLLM_MODEL if is_vllm else OPENVINO_MODEL if is_exported else LANGUAGE_MODEL
    engine = Placed(generating, why)
    return Choice(engine, entry, rule, plain, root, parameters, made)


def _is_static(settings: DjlSettings, made: CheckpointReading, mode: Placed[bool]) -> bool:
    """Is a causal language model to be batched statically: by its own word, or by a batch's size without one?"""
    if made.entry.lower().endswith(GGUF) or (mode.value and mode.origin.key):
        return False
    word = settings.text([BATCH]).value.lower()
    sizes = (settings.number([key], 1).value for key in ("batch_size", "max_dynamic_batch_size"))
    return word == "disable" or (not word and any(size > 1 for size in sizes))


def _refuse_static(settings: DjlSettings) -> None:
    """Refuse to batch weights of OpenVINO statically: they are computed in rolling batches alone."""
    for key in (BATCH, "batch_size", "max_dynamic_batch_size"):
        written = settings.text([key])
        if written.value:
            found = f"{key}={written.value}, and the weights are files of OpenVINO, which are never batched statically"
            hint = "Write option.rolling_batch=auto, or serve the model's safetensors."
            settings.fault(key, found, "rolling batches", hint)
            return


def _why(settings: DjlSettings) -> Origin:
    """Return which line makes the folder a language model."""
    for key in (BATCH, ENTRY, _MODEL_ID):
        if (text := settings.text([key])).value:
            return text.origin
    return Origin(f"the file {CONFIG}", "")


def _judge_devices(settings: DjlSettings, gpus: int) -> None:
    written = settings.text([_TENSOR]).value.lower()
    degree = max(gpus, 1) if written == "max" else settings.number([_TENSOR], 1).value
    if degree > 1:
        found = f"{_TENSOR}={written} has no effect: a language model runs on one device in this version"
        settings.notice(_TENSOR, found, "Where it does not fit, let a model.py spread it.")


def _found_elsewhere(settings: DjlSettings, folder: DjlModelFolder, defaults: Defaults) -> Path | None:
    """Return the folder of weights that a URI or an id of the Hugging Face hub names, and that were fetched; None for
    what is none, and for what nobody fetches. Raises why they cannot be had.
    """
    name = settings.text([_MODEL_ID]).value
    uri = name if name.startswith(_STORES) else hub_uri(name, settings.text([_REVISION]).value)
    if not uri or ("://" not in name and (folder.path / name.partition("/")[0]).exists()):
        return None
    return defaults.elsewhere(uri, settings.switch(_TRUST).value)


def _root(settings: DjlSettings, folder: DjlModelFolder, defaults: Defaults) -> Placed[Path] | None:
    """Return the folder of the weights: that of `option.model_id`, or the model's own."""
    written = settings.text([_MODEL_ID])
    if not written.value:
        return Placed(folder.path, Origin(str(folder.path), ""))
    expected = "the path of a folder with config.json and safetensors, or with a .gguf file"
    try:
        fetched = _found_elsewhere(settings, folder, defaults)
    except ServeError as error:
        found = f"{_MODEL_ID}={written.value[:200]}: {error.message}"
        settings.fault(_MODEL_ID, found, expected, "Or download it, and give the path of its folder.")
        return None
    if fetched is not None:
        return Placed(fetched, written.origin)
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


def _parameters(settings: DjlSettings, mode: Placed[bool], is_vllm: bool) -> Mapping[str, Placed[str]]:
    """Return what the options say to the engine, but for those that only vLLM reads."""
    found: dict[str, Placed[str]] = {}
    if mode.value:
        found["async_mode"] = Placed("true", mode.origin)
    for name, setting in (
        ("slots", _number(settings, _SLOTS)),
        ("prefill_chunk", _number(settings, _CHUNK)),
        ("max_context", _context(settings)),
        *((name, _number(settings, (f"option.{name}",))) for name in _ADAPTER_NUMBERS),
    ):
        if setting is not None:
            found[name] = setting
    for key, name in ((_TRUST, "trust_remote_code"), (_TGI, "tgi_compat"), (_LORA, "enable_lora")):
        if settings.text([key]).value:
            switch = settings.switch(key)
            found[name] = Placed(str(switch.value).lower(), switch.origin)
    for key, name in ((_PROCESSORS, "logits_processors"), (_NAME, SERVED_NAME)):
        if (named := settings.text([key])).value:
            found[name] = named
    for key, words in WORDS.items():
        if is_vllm and words.parameter == "quantize":
            continue
        word = word_of(settings, key)
        if word is not None and (word.value != "none" or words.parameter not in found):
            found[words.parameter] = word
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
