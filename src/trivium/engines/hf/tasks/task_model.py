"""Opens the model of a task by transformers' Auto class for it, and reads its texts into rows of tokens.

Nothing is fetched, no pickle is read, and code of the folder runs only where that is allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from trivium.codecs.request_fields import field_error
from trivium.engines.hf.folder import unfit
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.tasks.task_options import TaskOptions
from trivium.engines.hf.tasks.task_requests import Question, Text
from trivium.machine.control_group import bound_threads
from trivium.types.errors import Code, ServeError, named
from trivium.types.model_tasks import WRITTEN, ModelTask
from trivium.types.spec import ModelSpec

_AUTO: Mapping[ModelTask, str] = {
    ModelTask.TEXT2TEXT: "AutoModelForSeq2SeqLM",
    ModelTask.SUMMARY: "AutoModelForSeq2SeqLM",
    ModelTask.TRANSLATION: "AutoModelForSeq2SeqLM",
    ModelTask.GENERATION: "AutoModelForCausalLM",
    ModelTask.FEATURES: "AutoModel",
    ModelTask.EMBEDDING: "AutoModel",
    ModelTask.FILL_MASK: "AutoModelForMaskedLM",
    ModelTask.TEXT_CLASSES: "AutoModelForSequenceClassification",
    ModelTask.TOKEN_CLASSES: "AutoModelForTokenClassification",
    ModelTask.QUESTIONS: "AutoModelForQuestionAnswering",
    ModelTask.ZERO_SHOT: "AutoModelForSequenceClassification",
}
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_POSITIONS = ("max_position_embeddings", "n_positions", "max_encoder_position_embeddings")
_SHIFTED = ("roberta", "camembert", "mpnet", "longformer", "esm", "data2vec")
"""Kinds of model whose first position is the one behind that of padding."""

ROWS = 32
"""Rows of one call of the model, whoever asked for them."""

_GENERATES_LEFT = (ModelTask.GENERATION,)

TOKENS = 4096
"""Tokens of one call of several rows: what is computed for each of them is as large as a vocabulary."""

Row = Mapping[str, Any]
"""One text as tokens: what the tokenizer makes of it, without padding."""


@dataclass(frozen=True, slots=True)
class TaskModel:
    """An opened model and its tokenizer. A text has at most `most` tokens; where rows of different lengths cannot be
    told apart, it `is_paddable` no longer, and they are computed one by one. `named` is the task as its operator wrote
    it, under which config.json may have settings.
    """

    model: Any
    tokenizer: Any
    device: torch.device
    task: ModelTask
    named: str
    folder: Path
    most: int
    is_paddable: bool

    def row(self, text: str, pair: str | None = None, truncates: bool = False) -> Row:
        """Return a text as tokens, or a text and a second one. INVALID for one that is too long and is not cut."""
        cut = {"truncation": True, "max_length": self.most} if truncates else {}
        row: Row = dict(self.tokenizer(text, pair, **cut))
        size = len(row["input_ids"])
        if size > self.most:
            words = f"A text of 'inputs' has {size} tokens, and the model takes {self.most}."
            way = (
                'Send a shorter one, or let it be cut: "parameters": {"truncation": true}.'
                if self.task is not ModelTask.QUESTIONS
                else "Send a shorter one."
            )
            raise field_error("inputs", f"{words} {way}")
        if not size:
            raise field_error("inputs", "A text of 'inputs' has no tokens. Send one that is not empty.")
        return row

    def padded(self, rows: Sequence[Row]) -> Mapping[str, torch.Tensor]:
        """Return rows as the tensors of one call."""
        names = [name for name in self.tokenizer.model_input_names if name in rows[0]]
        plain = [{name: row[name] for name in names} for row in rows]
        if len({len(row["input_ids"]) for row in rows}) == 1:
            return {name: torch.tensor([row[name] for row in plain], device=self.device) for name in names}
        made = self.tokenizer.pad(plain, padding=True, return_tensors="pt")
        return {name: made[name].to(self.device) for name in names}

    def call(self, rows: Sequence[Row]) -> Iterator[Mapping[str, torch.Tensor]]:
        """Yield what the model computes for each row; nothing of a call is kept behind its last row."""
        for some in shared([len(row["input_ids"]) for row in rows], ROWS if self.is_paddable else 1):
            outputs = self.model(**self.padded([rows[number] for number in some]))
            tensors = {name: value.float().cpu() for name, value in outputs.items() if torch.is_tensor(value)}
            yield from ({name: value[j] for name, value in tensors.items()} for j in range(len(some)))


def shared(lengths: Sequence[int], most: int) -> Iterator[range]:
    """Yield which neighbours share a call: so many rows at most, and so many tokens with what fills them up."""
    begin, longest = 0, 0
    for number, length in enumerate(lengths):
        longest = max(longest, length)
        count = number - begin + 1
        if count > most or (count > 1 and count * longest > TOKENS):
            yield range(begin, number)
            begin, longest = number, length
    if begin < len(lengths):
        yield range(begin, len(lengths))


def load(spec: ModelSpec, options: TaskOptions, task: ModelTask, device: torch.device) -> TaskModel:
    """Return the opened model, which has computed a text. LOAD_FAILED, OUT_OF_MEMORY or UNSUPPORTED."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    else:
        bound_threads(torch)
    folder = (spec.root / spec.entry).parent
    code = FolderCode(spec.name, options.trust_remote_code)
    dtype = _DTYPES.get(options.dtype) or ("auto" if device.type == "cuda" else torch.float32)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **code.of_library())
        model, info = getattr(transformers, _AUTO[task]).from_pretrained(
            folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **code.of_library()
        )
    except ServeError:
        raise
    except Exception as error:
        raise _unopened(spec, task, error) from error
    if missing := [name for name in sorted(info["missing_keys"]) if not _is_spare(name)]:
        raise unfit(
            spec,
            f"its files lack {len(missing)} of the weights of {type(model).__name__}, such as '{missing[0]}'. Serve a "
            f"model that was trained for {task.value}, or set the task that this one is for.",
        )
    model = model.to(device).eval().requires_grad_(False)
    pads = _pad(tokenizer, model, task)
    most = _most(tokenizer, model.config, options)
    written = spec.parameters.get("task", task.value)
    made = TaskModel(model, tokenizer, device, task, written, folder, most, pads)
    _judge(spec, made)
    return made


def _is_spare(name: str) -> bool:
    """Is it a weight that no answer is computed from: the pooler of a model whose states are asked for?"""
    return "pooler." in name


def _pad(tokenizer: Any, model: Any, task: ModelTask) -> bool:
    """Have the tokenizer pad where the task wants it, and tell whether it may."""
    generates = task in _GENERATES_LEFT
    tokenizer.padding_side = "left" if generates else "right"
    if tokenizer.pad_token_id is not None:
        return True
    if generates and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token  # its mask tells them apart
        return True
    return False


def _most(tokenizer: Any, config: Any, options: TaskOptions) -> int:
    """Return the tokens that a text may have: by the model's positions and by the tokenizer's word."""
    if hasattr(config, "relative_attention_num_buckets") and not hasattr(config, _POSITIONS[0]):
        return options.max_input_tokens  # its positions are relative, and what files say of them is no bound
    known = next((value for name in _POSITIONS if type(value := getattr(config, name, None)) is int), None)
    if known is not None and any(kind in config.model_type for kind in _SHIFTED):
        known -= (config.pad_token_id or 0) + 1
    told = tokenizer.model_max_length
    bounds = [bound for bound in (known, told if told < 2**24 else None) if bound and bound > 0]
    return int(min(bounds)) if bounds else options.max_input_tokens


def _judge(spec: ModelSpec, made: TaskModel) -> None:
    """Raise for a model that takes no plain text, or has no word for what its task needs."""
    if made.task is ModelTask.FILL_MASK and made.tokenizer.mask_token_id is None:
        raise unfit(spec, "its tokenizer has no mask token (mask_token), which a text to fill in has.")
    if made.task is ModelTask.QUESTIONS and not made.tokenizer.is_fast:
        raise unfit(spec, "its tokenizer has no tokenizer.json, which tells where an answer's tokens are.")
    try:
        with torch.inference_mode():
            if made.model.config.is_encoder_decoder and made.task in WRITTEN:
                made.model.generate(**made.padded([made.row("1")]), max_new_tokens=1)
            else:
                next(made.call([made.row("1", truncates=True)]))
    except ServeError as error:
        raise unfit(spec, error.message, error.code) from error
    except Exception as error:
        raise _unopened(spec, made.task, error) from error


def _unopened(spec: ModelSpec, task: ModelTask, error: Exception) -> ServeError:
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return unfit(spec, f"there is not memory enough for it: {named(error)}"[:1000], Code.OUT_OF_MEMORY)
    words = f"transformers {transformers.__version__} cannot open it for {task.value}: {named(error)}"
    return unfit(spec, words[:1000])


def plain(text: Text) -> str:
    """Return an input that is no question."""
    assert not isinstance(text, Question), "the reader has seen to it"
    return text
