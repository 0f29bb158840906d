"""The config.json of a Hugging Face folder: what it says of a causal language model, and why one is not served.

Source: the keys that `PretrainedConfig.save_pretrained` writes. Never raises for what somebody wrote. Pure.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from trivium.formats.checkpoint.documents import JsonFile, read_fields, read_object
from trivium.types.findings import Finding, Severity
from trivium.types.model_tasks import ModelTask, classes_of, does, task_of

MAX_BYTES = 2**20
MAX_TOKENIZER_CONFIG = 2**24
_LONGEST_SHOWN = 80
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
DTYPE_KEYS = ("dtype", "torch_dtype")
_CAUSAL, _OLDER = "ForCausalLM", ("GPT2LMHeadModel",)
_LONGEST_CONTEXT = 2**31 - 1

_TASKS: Mapping[str, str] = {
    "ForSequenceClassification": "classifies texts",
    "ForTokenClassification": "classifies tokens",
    "ForMaskedLM": "fills masks in",
    "ForQuestionAnswering": "finds answers in a text",
    "ForMultipleChoice": "chooses among texts",
    "ForConditionalGeneration": "encodes before it generates, or looks at pictures",
    "WithLMHeadModel": "encodes before it generates",
    "EncoderDecoderModel": "encodes before it generates",
    "MTModel": "translates",
}
"""The end of a class's name -> what such a model does."""

QUANTISED = "quantization_config"
"""The key of config.json by which weights say that they were quantised, and how."""

_PICTURES = ("vision_config", "audio_config")

WAY_OUT = (
    "Serve a causal language model, or this one by a handler: a model.py with DJL's handle(inputs), or an export to "
    "ONNX with a translator."
)


@dataclass(frozen=True, slots=True)
class HfConfig:
    """Holds what the file says. `context` is 0 and `dtype` empty where it says neither; `code` are the classes of its
    own that the model's `auto_map` names. `task` is what the class is for, where that is served.
    """

    file: JsonFile
    architecture: str = ""
    context: int = 0
    context_key: str = ""
    dtype: str = ""
    dtype_key: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    task: ModelTask | None = None


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """Says that other tasks than text generation may be served, and how a user chooses one: all that there are, or
    the one that was `asked` for.
    """

    how: str
    asked: ModelTask | None = None


def read_config(file: str, data: bytes, tasks: TaskChoice | None = None) -> HfConfig:
    """Read a whole file; all that is wrong with it is in `findings`. Without `tasks` only a causal language model is
    right.
    """
    read = read_object(file, data, MAX_BYTES, "Save the model anew: model.save_pretrained(FOLDER).")
    if read.findings:
        return HfConfig(read, findings=read.findings)
    findings: list[Finding] = []
    architecture, task = _architecture(read, findings, tasks)
    context_key, context = _context(read, findings)
    dtype_key, dtype = _dtype(read, findings)
    findings += _quantised(read)
    return HfConfig(
        read,
        architecture,
        context,
        context_key,
        dtype,
        dtype_key,
        code_of(read, findings),
        tuple(findings),
        task,
    )


class _TokenizerConfig(msgspec.Struct):
    """A tokenizer_config.json, as far as it matters."""

    auto_map: msgspec.Raw = msgspec.Raw(b"null")


def read_tokenizer_code(file: str, data: bytes) -> tuple[JsonFile, dict[str, str]]:
    """Read which code of its own a tokenizer_config.json names, which also names every word that was added."""
    told, read = read_fields(file, data, MAX_TOKENIZER_CONFIG, _TokenizerConfig, "Save the tokenizer anew.")
    if told is None:
        return read, {}
    raw = bytes(told.auto_map)
    try:
        document = {"auto_map": json.loads(raw) if len(raw) < MAX_BYTES else raw[:_LONGEST_SHOWN]}
    except (ValueError, RecursionError):
        document = {"auto_map": raw[:_LONGEST_SHOWN]}
    findings: list[Finding] = []
    found = replace(read, document=document)
    code = code_of(found, findings)
    return replace(found, findings=tuple(findings)), code


def code_of(read: JsonFile, findings: list[Finding]) -> dict[str, str]:
    """Return the classes that `auto_map` names, by what they are for. A tokenizer's may be a list."""
    written = read.document.get("auto_map")
    if written is None:
        return {}
    expected = 'an object like {"AutoModelForCausalLM": "modeling.Model"}'
    if not isinstance(written, dict):
        findings.append(read.fault("auto_map", written, expected, "Correct it, or remove it."))
        return {}
    found = {}
    for name, value in written.items():
        classes = value if isinstance(value, list) else [value]
        texts = [one for one in classes if one is not None]
        if not all(isinstance(one, str) for one in texts):
            findings.append(read.fault("auto_map", written, expected, "Correct it, or remove it."))
            return {}
        found[name] = ", ".join(texts)
    return found


def _architecture(
    read: JsonFile, findings: list[Finding], tasks: TaskChoice | None
) -> tuple[str, ModelTask | None]:
    """Return the name of the class, and what it is for; no name where it is not served."""
    key, written = "architectures", read.document.get("architectures")
    expected = f'a list with the name of one class that ends in {_CAUSAL}, like ["LlamaForCausalLM"]'
    is_list = isinstance(written, list) and all(isinstance(one, str) for one in written)
    if not is_list or not written:
        hint = "Save the model anew, which writes it: model.save_pretrained(FOLDER)."
        findings.append(read.fault(key, written, expected, hint))
        return "", None
    assert isinstance(written, list)
    name = next((one for one in written if one.endswith(_CAUSAL) or one in _OLDER), "")
    if tasks is not None and (not name or tasks.asked is not None):
        return _of_task(read, findings, tasks, written[0])
    if name and read.document.get("is_encoder_decoder") is True:
        found = f"{name} with is_encoder_decoder, a model that encodes before it generates"
        findings.append(read.finding("is_encoder_decoder", found, expected, WAY_OUT))
        return "", None
    if name:
        return name, ModelTask.GENERATION
    shown = ", ".join(written)[:80]
    task = next((does for end, does in _TASKS.items() if written[0].endswith(end)), "")
    found = f"{shown}, a model that {task}" if task else f"{shown}, which is no causal language model"
    findings.append(read.finding(key, found, expected, WAY_OUT))
    return "", None


def _of_task(
    read: JsonFile, findings: list[Finding], tasks: TaskChoice, name: str
) -> tuple[str, ModelTask | None]:
    """Return a class and what it is for: what was asked, or what its name tells. A fault where it is not for that."""
    told = task_of(name)
    pictured = next((key for key in _PICTURES if key in read.document), "")
    if pictured:
        found = f"{name[:80]} with {pictured}, a model that looks at more than texts"
        findings.append(read.finding("architectures", found, "a model of texts", WAY_OUT))
        return "", None
    if tasks.asked is not None and not does(name, tasks.asked):
        found = f"{name[:80]}, which is not for {tasks.asked.value}"
        expected = f"a class whose name ends in {' or '.join(classes_of(tasks.asked))}"
        hint = f"{tasks.how} to {told.value}, which it is for." if told else WAY_OUT
        findings.append(read.finding("architectures", found, expected, hint))
        return "", None
    if tasks.asked is None and told is None:
        what_else = next(
            (what for end, what in _TASKS.items() if name.endswith(end)), "tells no task by its name"
        )
        found = f"{name[:80]}, a model that {what_else}"
        findings.append(
            read.finding("architectures", found, "a model of one of the tasks that are served", WAY_OUT)
        )
        return "", None
    return name, tasks.asked or told


def _context(read: JsonFile, findings: list[Finding]) -> tuple[str, int]:
    for key in CONTEXT_KEYS:
        written = read.document.get(key)
        if written is None:
            continue
        if type(written) is int and 0 < written <= _LONGEST_CONTEXT:
            return key, written
        findings.append(
            read.fault(key, written, "a number of tokens, above 0", "Correct it as the model was trained.")
        )
        return key, 0
    return "", 0


def _dtype(read: JsonFile, findings: list[Finding]) -> tuple[str, str]:
    for key in DTYPE_KEYS:
        written = read.document.get(key)
        if written is None:
            continue
        if isinstance(written, str) and len(written) < 32 and written.isprintable():
            return key, written.removeprefix("torch.")
        findings.append(
            read.fault(key, written, 'the name of a data type, like "bfloat16"', "Correct it, or remove it.")
        )
        return key, ""
    return "", ""


def _quantised(read: JsonFile) -> Iterator[Finding]:
    written = read.document.get(QUANTISED)
    if written is None:
        return
    method = written.get("quant_method") if isinstance(written, dict) else written
    found = f"weights quantised by {method!r}"[:80] + ", which is not supported in this version"
    hint = (
        "Serve the checkpoint that was not quantised, or the model as a .gguf file, which is read without a library; "
        "or let vLLM open it, where that is installed: --text-engine vllm, or option.rolling_batch=vllm."
    )
    yield Finding(
        Severity.ERROR,
        read.file,
        read.line(QUANTISED),
        QUANTISED,
        found,
        "plain weights",
        hint,
    )
