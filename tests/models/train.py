"""Trains the two encoders and their tokenizers, seeded, and writes them to `shipped`: python -m tests.models.train

Two minutes of one processor. It is given the training parts alone; the scores on the held-out parts are a test of the
files (tests/unit/translators/test_models.py), and stand in the README next to them.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tests.models import questions, script_file, sentences
from tests.models.network import POSITIONS, QuestionModel, SentenceModel
from tests.models.places import QUESTIONS, SENTENCES
from tokenizers import (
    Encoding,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from torch import Tensor
from torch.nn import functional

_SEED = 24
_ROWS = 32


def word_pieces(texts: Sequence[str], size: int) -> Tokenizer:
    """Choose word pieces by their number alone, so that they are the same each time: letters, half words, half ends."""
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(
        word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))
    )
    ends: Counter[str] = Counter()
    for word, count in words.items():
        ends.update({f"##{word[-length:]}": count for length in (2, 3, 4) if length < len(word)})
    letters = sorted({letter for word in words for letter in word})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    room = size - len(pieces)
    for counter, share in ((words, room * 2 // 3), (ends, room - room * 2 // 3)):
        ranked = sorted(counter.keys() - set(pieces), key=lambda piece: (-counter[piece], piece))
        pieces += ranked[:share]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(pieces[:5])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(POSITIONS)
    return tokenizer


def tensors(encodings: Sequence[Encoding]) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, what is there, and types of some texts."""
    return (
        torch.tensor([encoding.ids for encoding in encodings]),
        torch.tensor([encoding.attention_mask for encoding in encodings]),
        torch.tensor([encoding.type_ids for encoding in encodings]),
    )


def train(
    model: torch.nn.Module, count: int, epochs: int, loss: Callable[[Tensor], Tensor], rate: float
) -> None:
    """Step down the slopes of a loss of rows, at a rate that rises and falls."""
    steps = epochs * -(-count // _ROWS)
    adam = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    pace = torch.optim.lr_scheduler.OneCycleLR(adam, rate, steps)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(count).split(_ROWS):
            adam.zero_grad()
            value = loss(rows)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            pace.step()
    model.eval()


def train_questions() -> tuple[QuestionModel, Tokenizer]:
    """Train the model that answers questions."""
    torch.manual_seed(_SEED)
    part = questions.training_part(5000, _SEED)
    tokenizer = word_pieces([text for each in part for text in each[:2]], 150)
    encodings = tokenizer.encode_batch([(each.question, each.paragraph) for each in part])
    ids, present, types = tensors(encodings)
    first = torch.tensor([e.char_to_token(each.start, 1) for e, each in zip(encodings, part, strict=True)])
    last = torch.tensor([e.char_to_token(each.end - 1, 1) for e, each in zip(encodings, part, strict=True)])
    model = QuestionModel(tokenizer.get_vocab_size())

    def loss(rows: Tensor) -> Tensor:
        starts, ends = model(ids[rows], present[rows], types[rows])
        hidden = (types[rows] == 0).to(starts.dtype) * -1e4
        return functional.cross_entropy(starts + hidden, first[rows]) + functional.cross_entropy(
            ends + hidden, last[rows]
        )

    train(model, len(part), 10, loss, 3e-3)
    return model, tokenizer


def train_sentences() -> tuple[SentenceModel, Tokenizer]:
    """Train the model that tells packages apart. Now and then a word is hidden from it."""
    torch.manual_seed(_SEED)
    part = sentences.training_part()
    tokenizer = word_pieces([text for text, _ in part], 1200)
    ids, present, _ = tensors(tokenizer.encode_batch([text for text, _ in part]))
    labels = torch.tensor([label for _, label in part])
    model = SentenceModel(tokenizer.get_vocab_size(), len(sentences.PACKAGES))

    def loss(rows: Tensor) -> Tensor:
        hidden = (torch.rand(ids[rows].shape) < 0.15) & (ids[rows] > 4)
        return functional.cross_entropy(
            model(ids[rows].masked_fill(hidden, 1), present[rows]), labels[rows], label_smoothing=0.1
        )

    train(model, len(part), 15, loss, 2e-3)
    return model, tokenizer


def write(folder: Path, model: torch.nn.Module, tokenizer: Tokenizer, examples: tuple[Tensor, ...]) -> None:
    """Write a model as TorchScript and as ONNX, with its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"][: len(examples)]
    outputs = ["start_logits", "end_logits"] if len(examples) == 3 else ["logits"]
    script_file.save(torch.jit.script(model), folder / f"{folder.name}.pt")
    axes = {name: {0: "rows", 1: "tokens"} for name in [*names, *outputs]}
    if outputs == ["logits"]:
        axes["logits"] = {0: "rows"}
    torch.onnx.export(
        model,
        examples,
        str(folder / f"{folder.name}.onnx"),
        dynamo=False,
        input_names=names,
        output_names=outputs,
        dynamic_axes=axes,
        opset_version=17,
    )
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)


def main() -> None:
    """Train both, and write them."""
    warnings.simplefilter("ignore")  # of the exporters
    torch.set_num_threads(1)  # the same sums on every machine, and none waits for another
    torch.use_deterministic_algorithms(True)
    model, tokenizer = train_questions()
    write(QUESTIONS, model, tokenizer, tensors(tokenizer.encode_batch([("how?", "so."), ("a", "b c")])))
    classifier, pieces = train_sentences()
    write(SENTENCES, classifier, pieces, tensors(pieces.encode_batch(["Return it.", "So."]))[:2])
    labels = {str(place): package for place, package in enumerate(sentences.PACKAGES)}
    config = {"model_type": "bert", "problem_type": "single_label_classification", "id2label": labels}
    (SENTENCES / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main()
