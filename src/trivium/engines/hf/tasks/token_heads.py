"""Heads that look at each token of a text: what it is part of, and whether an answer begins or ends with it."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trivium.codecs.request_fields import field_error
from trivium.engines.hf.tasks.heads import Floats, Outputs, Parameters, PreparedInput, softmax
from trivium.engines.hf.tasks.task_model import TaskModel, plain
from trivium.engines.hf.tasks.task_requests import Question, Text

Entity = dict[str, Any]
_MOST_WINDOWS = 256
_GROUPS = frozenset({"simple", "first", "average", "max"})


class TokenClassesHead:
    """`[{"entity", "score", "index", "word", "start", "end"}]`, a token each; with an `aggregation_strategy` groups of
    tokens under `entity_group`.
    """

    is_bare = False

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        self._tokenizer = loaded.tokenizer
        self._labels = loaded.model.config.id2label
        backend = getattr(loaded.tokenizer, "backend_tokenizer", None)
        self._marks_rests = bool(getattr(getattr(backend, "model", None), "continuing_subword_prefix", None))

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        if (
            parameters.get("aggregation_strategy", "none") not in ("none", "simple")
            and not self._tokenizer.is_fast
        ):
            words = "The tokenizer does not tell words apart. Use none or simple."
            raise field_error("parameters.aggregation_strategy", words)
        row = self._loaded.row(plain(text), truncates=parameters.get("truncation", True))
        beside = self._tokenizer(
            plain(text),
            truncation=True,
            max_length=self._loaded.most,
            return_special_tokens_mask=True,
            return_offsets_mapping=self._tokenizer.is_fast,
        )
        return PreparedInput([row], text, beside)

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        ids = prepared.rows[0]["input_ids"]
        scores = softmax(outputs[0]["logits"].numpy()[: len(ids)])
        pieces = list(self._pieces(prepared, scores))
        strategy = parameters.get("aggregation_strategy", "none")
        if strategy in ("none", "simple"):
            found = [self._entity(piece) for piece in pieces]
        else:
            found = [self._of_word(word, strategy) for word in _words(pieces)]
        left_out = parameters.get("ignore_labels", ["O"])
        if strategy in _GROUPS:
            groups = [self._group(group) for group in _groups(found)]
            return [one for one in groups if one["entity_group"] not in left_out]
        return [one for one in found if one["entity"] not in left_out]

    def _pieces(self, prepared: PreparedInput, scores: Floats) -> Iterable[Entity]:
        """Yield the tokens that are no special ones."""
        text, beside, ids = plain(prepared.text), prepared.beside, prepared.rows[0]["input_ids"]
        offsets = beside.get("offset_mapping")
        for at, token in enumerate(ids):
            if beside["special_tokens_mask"][at]:
                continue
            word = self._tokenizer.convert_ids_to_tokens(int(token))
            start, end = offsets[at] if offsets is not None else (None, None)
            goes_on = False
            if start is not None:
                written = text[start:end]
                between = text[max(start - 1, 0) : start + 1]
                goes_on = len(word) != len(written) if self._marks_rests else start > 0 and " " not in between
                if token == self._tokenizer.unk_token_id:
                    word, goes_on = written, False
            yield {
                "word": word,
                "scores": scores[at],
                "start": start,
                "end": end,
                "index": at,
                "goes_on": goes_on,
            }

    def _entity(self, piece: Entity) -> Entity:
        best = int(piece["scores"].argmax())
        told = {"entity": self._labels[best], "score": float(piece["scores"][best])}
        return told | {name: piece[name] for name in ("index", "word", "start", "end")}

    def _of_word(self, pieces: Sequence[Entity], strategy: str) -> Entity:
        """Return a word as one entity: of its first token, of the surest one, or of their mean."""
        if strategy == "first":
            scores = pieces[0]["scores"]
        elif strategy == "max":
            scores = max((piece["scores"] for piece in pieces), key=lambda one: one.max())
        else:
            scores = np.stack([piece["scores"] for piece in pieces]).mean(0)
        best = int(scores.argmax())
        return {
            "entity": self._labels[best],
            "score": float(scores[best]),
            "word": self._tokenizer.convert_tokens_to_string([piece["word"] for piece in pieces]),
            "start": pieces[0]["start"],
            "end": pieces[-1]["end"],
        }

    def _group(self, members: Sequence[Entity]) -> Entity:
        return {
            "entity_group": _kind(members[0])[1],
            "score": float(np.mean([one["score"] for one in members])),
            "word": self._tokenizer.convert_tokens_to_string([one["word"] for one in members]),
            "start": members[0]["start"],
            "end": members[-1]["end"],
        }


def _words(pieces: Iterable[Entity]) -> list[list[Entity]]:
    words: list[list[Entity]] = []
    for piece in pieces:
        if words and piece["goes_on"]:
            words[-1].append(piece)
        else:
            words.append([piece])
    return words


def _groups(entities: Iterable[Entity]) -> list[list[Entity]]:
    """Return neighbours of one kind together; B- begins a new group."""
    groups: list[list[Entity]] = []
    for entity in entities:
        begins, kind = _kind(entity)
        if groups and not begins and _kind(groups[-1][-1])[1] == kind:
            groups[-1].append(entity)
        else:
            groups.append([entity])
    return groups


def _kind(entity: Entity) -> tuple[bool, str]:
    """Return whether a label begins a group, and the kind that it names."""
    label = str(entity["entity"])
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label


class QuestionsHead:
    """`{"score", "start", "end", "answer"}`: the part of a context that answers a question. A long context is read in
    windows that overlap.
    """

    is_bare = True

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """See `TaskHead`."""
        assert isinstance(text, Question), "the reader has seen to it"
        tokenizer, most = self._loaded.tokenizer, self._loaded.most
        size = min(parameters.get("max_seq_len", 384), most)
        asked = tokenizer(
            text.question,
            add_special_tokens=False,
            truncation=True,
            max_length=parameters.get("max_question_len", 64),
        )
        question = asked["input_ids"]
        room = size - len(question) - tokenizer.num_special_tokens_to_add(pair=True)
        stride = parameters.get("doc_stride", min(128, max(room // 2, 1)))
        if room <= stride:
            words = (
                f"Windows of {size} tokens have {max(room, 0)} of them for the context, and overlap by {stride}. Raise "
                "max_seq_len, or lower doc_stride or max_question_len."
            )
            raise field_error("parameters.max_seq_len", words)
        written = (
            tokenizer.decode(question)
            if len(question) == parameters.get("max_question_len", 64)
            else text.question
        )
        made = tokenizer(
            written,
            text.context,
            truncation="only_second",
            max_length=size,
            stride=stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        count = len(made["input_ids"])
        if count > _MOST_WINDOWS:
            words = f"The context has {count} windows of tokens; at most {_MOST_WINDOWS} are read. Send a part of it."
            raise field_error("inputs", words)
        names = [name for name in tokenizer.model_input_names if name in made]
        rows = [{name: made[name][i] for name in names} for i in range(count)]
        places = [(made["offset_mapping"][i], made.sequence_ids(i)) for i in range(count)]
        return PreparedInput(rows, text, places)

    def finish(self, prepared: PreparedInput, outputs: Sequence[Outputs], parameters: Parameters) -> Any:
        """See `TaskHead`."""
        assert isinstance(prepared.text, Question)
        count, longest = parameters.get("top_k", 1), parameters.get("max_answer_len", 15)
        context = prepared.text.context
        found: list[Entity] = []
        nothing = 1.0
        for (offsets, owners), output in zip(prepared.beside, outputs, strict=True):
            begins, ends = (
                _among(output[name].numpy()[: len(owners)], owners) for name in ("start_logits", "end_logits")
            )
            nothing = min(nothing, float(begins[0] * ends[0]))
            begins[0] = ends[0] = 0.0
            for score, first, last in _spans(begins, ends, owners, longest, count):
                start, end = int(offsets[first][0]), int(offsets[last][1])
                found.append({"score": score, "start": start, "end": end, "answer": context[start:end]})
        if parameters.get("handle_impossible_answer", False):
            found.append({"score": nothing, "start": 0, "end": 0, "answer": ""})
        best = sorted(found, key=lambda one: one["score"], reverse=True)
        kept = list({(one["start"], one["end"]): one for one in reversed(best)}.values())[::-1][:count]
        return kept[0] if count == 1 and kept else kept


def _among(logits: Floats, owners: Sequence[int | None]) -> Floats:
    """Return probabilities of the context's tokens and of the first one, which stands for no answer."""
    allowed = np.array([owner == 1 or at == 0 for at, owner in enumerate(owners)])
    return softmax(np.where(allowed, logits, -1e4))


def _spans(
    begins: Floats, ends: Floats, owners: Sequence[int | None], longest: int, count: int
) -> list[tuple[float, int, int]]:
    """Return the likeliest spans of the context of so many tokens at most."""
    both = np.tril(np.triu(np.outer(begins, ends)), longest - 1)
    flat = both.ravel()
    some = np.argpartition(-flat, min(count, flat.size - 1))[: count + 1]
    order = some[np.argsort(-flat[some], kind="stable")][:count]
    spans = [(float(flat[at]), *divmod(int(at), both.shape[1])) for at in order]
    return [span for span in spans if owners[span[1]] == 1 and owners[span[2]] == 1]
