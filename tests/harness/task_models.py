"""Tiny models of texts for each task, with random weights, written to a folder by a seed, and how they are asked.

Their tokenizer is made of the words of the standard library's own documentation. Needs torch and transformers.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.harness.language_models import text
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.tasks.engine import ENGINE
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart
from trivium.types.running import Batch, Placement
from trivium.types.spec import Isolation

HERE = Placement("m_0", Isolation.PROCESS)
SPECIAL = ("<pad>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
_T5 = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
_ENTAILS = {"contradiction": 0, "neutral": 1, "entailment": 2}
_KINDS = {
    "t5": ("T5ForConditionalGeneration", "T5Config", _T5),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128}),
    "classes": ("BertForSequenceClassification", "BertConfig", {**_BERT, "num_labels": 3}),
    "entails": ("BertForSequenceClassification", "BertConfig", {**_BERT, "label2id": _ENTAILS}),
    "tokens": ("BertForTokenClassification", "BertConfig", {**_BERT, "num_labels": len(_LABELS)}),
    "masks": ("BertForMaskedLM", "BertConfig", _BERT),
    "questions": ("BertForQuestionAnswering", "BertConfig", _BERT),
    "features": ("BertModel", "BertConfig", _BERT),
}
KINDS = tuple(_KINDS)


def write_task(folder: Path, kind: str, seed: int = 7, **told: object) -> Path:
    """Write a model of a kind with its tokenizer, and return its folder; `told` is added to config.json."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    name, config, sizes = _KINDS[kind]
    made = words_tokenizer(kind in ("t5", "gpt2"))
    sizes = {**sizes, "vocab_size": len(made), "pad_token_id": 0, "eos_token_id": 1}
    if kind == "gpt2":
        sizes["bos_token_id"] = 1
    if kind == "tokens":
        sizes["id2label"] = dict(enumerate(_LABELS))
    if kind == "entails":
        sizes["id2label"] = {number: label for label, number in _ENTAILS.items()}
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    if told:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **told}))
    return folder


@cache
def words_tokenizer(ends: bool):
    """A tokenizer of words, and of letters for the others: texts end by </s>, or stand between [CLS] and [SEP]."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = sorted({word for word in text(1, 30_000).lower().split() if word.isalpha()})[:300]
    letters = [chr(number) for number in range(33, 127)]
    pieces = [*SPECIAL, *letters, *(f"##{one}" for one in letters), *words]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="<unk>"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.decoder = tokenizers.decoders.WordPiece()
    single, pair, special = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 3), ("[SEP]", 4)]
    if ends:
        single, pair, special = "$A </s>", "$A </s> $B </s>", [("</s>", 1)]
    made.post_processor = tokenizers.processors.TemplateProcessing(single, pair, special)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "attention_mask"]
        if ends
        else ["input_ids", "token_type_ids", "attention_mask"],
    )


def task_spec(folder: Path, **parameters: object):
    """The spec of a model in a folder."""
    texts = {"threads": "1"} | {name: str(value) for name, value in parameters.items()}
    return replace(make_spec(), root=folder, engine="hf-tasks", entry="config.json", parameters=texts)


def body(document: object) -> Raw:
    """A request as its route gives it."""
    return Raw((RawPart(json.dumps(document).encode(), "application/json"),))


class Tasks:
    """An opened model, asked by JSON."""

    def __init__(self, folder: Path, **parameters: object) -> None:
        self.runner = ENGINE.open(task_spec(folder, **parameters), HERE)

    def __enter__(self) -> "Tasks":
        return self

    def __exit__(self, *_) -> None:
        self.runner.close()

    def outcomes(self, payloads) -> list:
        """What becomes of payloads that run as one batch."""
        operations = [Infer("m", payload) for payload in payloads]
        count = len(operations)
        return self.runner.run(Batch(list(range(count)), operations, [1] * count)).outcomes

    def together(self, *documents: object) -> list:
        """The answers to requests that run as one batch; an error in its place."""
        return [
            one if isinstance(one, ServeError) else json.loads(one.parts[0].data)
            for one in self.outcomes(map(body, documents))
        ]

    def ask(self, inputs: object, **parameters: object):
        """The answer to one request; its error is raised."""
        (answer,) = self.together({"inputs": inputs, "parameters": parameters})
        if isinstance(answer, ServeError):
            raise answer
        return answer

    def streamed(self, inputs: object, **parameters: object) -> list[list[str]]:
        """The pieces of one streamed answer."""
        parts: list = []
        infer = Infer("m", body({"inputs": inputs, "parameters": parameters}))

        def send(part) -> bool:
            parts.append(part)
            return True

        outcome = self.runner.stream(infer, send)
        if isinstance(outcome, ServeError):
            raise outcome
        return [json.loads(part.parts[0].data)["outputs"] for part in parts]
