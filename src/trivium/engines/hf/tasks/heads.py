"""Makes the answers that LMI's clients know of what a model computes: a head for each task that writes no text.

`prepare` makes the rows of one input, and raises for one that cannot be computed; `finish` makes the answer of what the
model computed for them. The forms are those of transformers' pipelines.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from trivium.codecs.request_fields import field_error
from trivium.engines.hf.tasks.task_model import Row, TaskModel, plain
from trivium.engines.hf.tasks.task_requests import Text

_MOST_FILLED = 2000
"""Texts with a mask filled in that one text is answered by."""

Outputs = Mapping[str, torch.Tensor]
Parameters = Mapping[str, Any]
Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


@dataclass(frozen=True, slots=True)
class PreparedInput:
    """One input as the rows that the model computes, and what else the answer needs of it."""

    rows: Sequence[Row]
    text: Text
    beside: Any = None


class TaskHead(Protocol):
    """The beginning and the end of a task. `is_bare`: the answer to an input that was sent without a list is no list of
    one answer, but that one.
    """

    is_bare: bool

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """Return the rows of one input. INVALID, naming the field."""

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """Return the answer, as JSON has it."""


def softmax(logits: Floats) -> Floats:
    """Return probabilities along the last dimension."""
    powers: Floats = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Floats = powers / powers.sum(-1, keepdims=True)
    return shares


class TextClassesHead:
    """`[{"label", "score"}]`: the likeliest class, or the `top_k` likeliest."""

    is_bare = False

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        self._labels = loaded.model.config.id2label

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        return PreparedInput(
            [self._loaded.row(plain(text), truncates=parameters.get("truncation", False))], text
        )

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        logits = outputs[0]["logits"].numpy()
        scores = self._scores(logits, parameters.get("function_to_apply"))
        every = parameters.get("return_all_scores", False)
        count = len(scores) if every else parameters.get("top_k", 1)
        found = [{"label": self._labels[i], "score": float(score)} for i, score in enumerate(scores)]
        if not every:
            found.sort(key=lambda one: one["score"], reverse=True)
        return found[:count] if every or "top_k" in parameters else found[0]

    def _scores(self, logits: Floats, function: str | None) -> Floats:
        config = self._loaded.model.config
        if function is None:
            one = config.num_labels == 1 or config.problem_type == "multi_label_classification"
            function = "none" if config.problem_type == "regression" else "sigmoid" if one else "softmax"
        if function == "sigmoid":
            return 1 / (1 + np.exp(-logits))
        return softmax(logits) if function == "softmax" else logits


class ZeroShotHead:
    """`{"sequence", "labels", "scores"}`: how well each label says what a text is about."""

    is_bare = False

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        named = {str(label).lower(): number for label, number in loaded.model.config.label2id.items()}
        self._entails = next((at for name, at in named.items() if name.startswith("entail")), -1)

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        labels = parameters.get("candidate_labels")
        if not labels:
            words = 'Send the labels to choose among: "parameters": {"candidate_labels": ["a", "b"]}.'
            raise field_error("parameters.candidate_labels", words)
        template = parameters.get("hypothesis_template", "This example is {}.")
        cut = parameters.get("truncation", True)
        rows = [self._loaded.row(plain(text), template.format(label), cut) for label in labels]
        return PreparedInput(rows, text, labels)

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        labels, logits = prepared.beside, np.stack([one["logits"].numpy() for one in outputs])
        if parameters.get("multi_label", False) or len(labels) == 1:
            against = -1 if self._entails == 0 else 0
            scores = softmax(logits[:, [against, self._entails]])[:, 1]
        else:
            scores = softmax(logits[:, self._entails])
        order = np.argsort(-scores, kind="stable")
        return {
            "sequence": prepared.text,
            "labels": [labels[i] for i in order],
            "scores": [float(scores[i]) for i in order],
        }


class FillMaskHead:
    """`[{"score", "token", "token_str", "sequence"}]` for a mask; a list of those for several."""

    is_bare = True

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        self._mask = loaded.tokenizer.mask_token_id

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        row = self._loaded.row(plain(text), truncates=parameters.get("truncation", False))
        places = [at for at, token in enumerate(row["input_ids"]) if token == self._mask]
        if not places:
            mask = self._loaded.tokenizer.mask_token
            words = f"A text of 'inputs' has no {mask}, which stands for the word to find. Write it into the text."
            raise field_error("inputs", words)
        count = parameters.get("top_k", 5) * len(places)
        if count > _MOST_FILLED:
            words = f"{len(places)} masks with {parameters.get('top_k', 5)} words each are {count}"
            raise field_error(
                "parameters.top_k", f"{words}; at most {_MOST_FILLED} are answered. Lower top_k."
            )
        return PreparedInput([row], text, (places, self._targets(parameters.get("targets", ()))))

    def _targets(self, words: Sequence[str]) -> list[int]:
        """Return the tokens that these words are, or begin with."""
        found = []
        tokenizer = self._loaded.tokenizer
        for word in words:
            token = tokenizer.get_vocab().get(word)
            ids = [token] if token is not None else tokenizer(word, add_special_tokens=False)["input_ids"]
            if not ids:
                raise field_error(
                    "parameters.targets", f"The word {word[:40]!r} of 'parameters.targets' has no token."
                )
            found.append(int(ids[0]))
        return list(dict.fromkeys(found))

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        places, targets = prepared.beside
        ids = prepared.rows[0]["input_ids"]
        answers = []
        for place in places:
            scores = torch.softmax(outputs[0]["logits"][place], -1)
            among = scores[targets] if targets else scores
            best = among.topk(min(parameters.get("top_k", 5), len(among)))
            tokens = [targets[i] if targets else i for i in best.indices.tolist()]
            filled = zip(best.values.tolist(), tokens, strict=True)
            answers.append([self._filled(ids, place, *one, len(places) == 1) for one in filled])
        return answers[0] if len(answers) == 1 else answers

    def _filled(self, ids: Sequence[int], place: int, score: float, token: int, hides: bool) -> Any:
        tokenizer = self._loaded.tokenizer
        whole = [*ids[:place], token, *ids[place + 1 :]]
        text = tokenizer.decode(whole, skip_special_tokens=hides)
        return {"score": score, "token": token, "token_str": tokenizer.decode([token]), "sequence": text}


class FeaturesHead:
    """A vector for each token of a text, as a list of one list of them."""

    is_bare = False

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        cut = parameters.get("truncation", False)
        return PreparedInput([self._loaded.row(plain(text), truncates=cut)], text)

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        return [outputs[0]["last_hidden_state"][: len(prepared.rows[0]["input_ids"])].tolist()]


class EmbeddingHead:
    """One vector for each text: the mean of its tokens' (or the first, as the folder of a sentence model says), of
    length 1 unless `normalize` is false.
    """

    is_bare = False

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        self._takes_first = _pooling(loaded).get("pooling_mode_cls_token") is True

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        return PreparedInput(
            [self._loaded.row(plain(text), truncates=parameters.get("truncation", True))], text
        )

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        states = outputs[0]["last_hidden_state"][: len(prepared.rows[0]["input_ids"])]
        vector = states[0] if self._takes_first else states.mean(0)
        if parameters.get("normalize", True):
            vector = torch.nn.functional.normalize(vector, dim=0)
        return vector.tolist()


def _pooling(loaded: TaskModel) -> Mapping[str, object]:
    """Return what the folder of a sentence model says of pooling; nothing where it is none."""
    try:
        with (loaded.folder / "1_Pooling" / "config.json").open("rb") as file:
            told = json.loads(file.read(2**16))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
