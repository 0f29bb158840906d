"""Runs batches of requests to a model of texts: those with equal parameters share calls, and one's fault is its own."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from trivium.codecs.request_fields import MOST_BYTES, field_error
from trivium.engines.hf.tasks.generating import GenerationHead
from trivium.engines.hf.tasks.heads import (
    EmbeddingHead,
    FeaturesHead,
    FillMaskHead,
    PreparedInput,
    TaskHead,
    TextClassesHead,
    ZeroShotHead,
)
from trivium.engines.hf.tasks.predictions import PREDICTIONS, listed
from trivium.engines.hf.tasks.task_model import TaskModel
from trivium.engines.hf.tasks.task_requests import (
    TaskRequest,
    read_body,
    read_request,
    read_rows,
)
from trivium.engines.hf.tasks.task_tensors import ANSWER, EMBEDDING, document_of
from trivium.engines.hf.tasks.token_heads import QuestionsHead, TokenClassesHead
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.model_tasks import WRITTEN, ModelTask
from trivium.types.operations import Infer
from trivium.types.payload import Payload, Raw, RawForm, RawPart, Tensor, Tensors
from trivium.types.running import Batch, Outcome, Ran

log = logging.getLogger(__name__)

_HEADS: dict[ModelTask, Callable[[TaskModel], TaskHead]] = {
    ModelTask.FEATURES: FeaturesHead,
    ModelTask.EMBEDDING: EmbeddingHead,
    ModelTask.FILL_MASK: FillMaskHead,
    ModelTask.TEXT_CLASSES: TextClassesHead,
    ModelTask.TOKEN_CLASSES: TokenClassesHead,
    ModelTask.QUESTIONS: QuestionsHead,
    ModelTask.ZERO_SHOT: ZeroShotHead,
}
MOST_FEATURES = 2**21
"""Numbers of an answer that has a vector for each token."""

_JSON, _LINES = "application/json", "application/jsonlines"


class _Asked(NamedTuple):
    """One request that was read, and its inputs as the model takes them."""

    place: int
    request: TaskRequest
    inputs: Sequence[PreparedInput]


class TaskRunner:
    """One opened model. `run` is called by one thread at a time."""

    def __init__(self, name: str, loaded: TaskModel, streams: bool) -> None:
        self._name = name
        self._loaded = loaded
        self._task = loaded.task
        self._writes = GenerationHead(loaded) if loaded.task in WRITTEN else None
        self._head = None if self._writes is not None else _HEADS[loaded.task](loaded)
        self.streams = streams and self._writes is not None

    def run(self, batch: Batch) -> Ran:
        """Return an outcome per request."""
        outcomes: list[Outcome] = [None] * len(batch.operations)
        groups: dict[bytes, list[_Asked]] = {}
        for place, operation in enumerate(batch.operations):
            try:
                asked = self._asked(place, operation)
            except ServeError as error:
                outcomes[place] = frameless(error)
                continue
            groups.setdefault(asked.request.key, []).append(asked)
        for group in groups.values():
            for asked, answer in zip(group, self._answers(group), strict=True):
                payload = batch.operations[asked.place].payload
                outcomes[asked.place] = (
                    answer if isinstance(answer, ServeError) else self._written(asked, answer, payload)
                )
        return Ran(outcomes)

    def stream(self, infer: Infer, send: Callable[[Payload], bool]) -> Outcome:
        """See `StreamsAnswers`. A client of tensors, or of KServe's v1 protocol, gets its answer whole."""
        payload = infer.payload
        if isinstance(payload, Tensors) or (isinstance(payload, Raw) and payload.form is RawForm.ROWS):
            return self.run(Batch([0], [infer], [1])).outcomes[0]
        assert self._writes is not None, "it streams"

        def tell(news: list[str]) -> bool:
            line = msgspec.json.encode({"outputs": news}) + b"\n"
            return send(Raw((RawPart(line, _LINES),)))

        try:
            asked = self._asked(0, infer)
            with torch.inference_mode():
                self._writes.stream(asked.inputs, asked.request.parameters, tell)
        except ServeError as error:
            return frameless(error)
        except Exception as error:
            return failure_of(self._name, error)
        return None

    def close(self) -> None:
        """Free the model."""
        del self._loaded, self._writes, self._head

    def _asked(self, place: int, operation: Infer) -> _Asked:
        """Read one request. INVALID, naming the field; UNSUPPORTED for a body that is no JSON."""
        request = self._read(operation)
        prepare = self._writes.prepare if self._writes is not None else self._head_of().prepare
        inputs = []
        for text in request.inputs:
            try:
                inputs.append(prepare(text, request.parameters))
            except ServeError:
                raise
            except Exception as error:  # a tokenizer's own
                words = f"The tokenizer of model '{self._name}' cannot read a text of 'inputs': {named(error)[:200]}"
                raise field_error("inputs", words) from error
        self._judge_size(inputs)
        return _Asked(place, request, inputs)

    def _judge_size(self, inputs: Sequence[PreparedInput]) -> None:
        """Refuse a request whose answer would be larger than is written in one piece."""
        if self._task is not ModelTask.FEATURES:
            return
        tokens = sum(len(row["input_ids"]) for one in inputs for row in one.rows)
        width = int(getattr(self._loaded.model.config, "hidden_size", 0))
        if tokens * width > MOST_FEATURES:
            words = f"The texts have {tokens} tokens with {width} numbers each; at most {MOST_FEATURES} are answered."
            raise field_error("inputs", f"{words} Send fewer texts, or ask a model for text-embedding.")

    def _read(self, operation: Infer) -> TaskRequest:
        payload = operation.payload
        if isinstance(payload, Tensors):
            return read_request(document_of(payload, self._task), self._task)
        assert isinstance(payload, Raw), "the door has seen to it"
        if len(payload.parts) != 1:
            words = f"The body has {len(payload.parts)} parts; expected is one JSON object"
            raise ServeError(Code.INVALID, f'{words}: {{"inputs": ..., "parameters": {{...}}}}.')
        part = payload.parts[0]
        if len(part.data) > MOST_BYTES:
            raise ServeError(
                Code.TOO_LARGE, f"The request has {len(part.data)} bytes; at most {MOST_BYTES} are read."
            )
        if payload.form is RawForm.ROWS:
            return read_rows(part.data, self._task)
        return read_body(part.data, part.content_type, self._task)

    def _answers(self, group: Sequence[_Asked]) -> list[Any]:
        """Return an answer, or an error, for each request; after a failure of several each is tried alone."""
        try:
            with torch.inference_mode():
                return self._computed(group)
        except ServeError as error:
            failure = frameless(error)
        except Exception as error:
            failure = failure_of(self._name, error)
        if len(group) == 1:
            return [failure]
        return [self._answers([asked])[0] for asked in group]

    def _computed(self, group: Sequence[_Asked]) -> list[Any]:
        request = group[0].request
        parameters = request.parameters
        is_plain = request.of_rows and not parameters.keys() - {"truncation"}
        predict = PREDICTIONS.get(self._task) if is_plain else None
        every = [one for asked in group for one in asked.inputs]
        if self._writes is not None:
            made = iter(self._writes.answers(every, parameters))
        else:
            head, outputs = (
                self._head_of(),
                (self._loaded.call([row for one in every for row in one.rows])),
            )
            computed = ((one, [next(outputs) for _ in one.rows]) for one in every)
            made = iter(
                [
                    head.finish(one, found, parameters)
                    if predict is None
                    else predict(self._loaded, one, found)
                    for one, found in computed
                ]
            )
        return [[next(made) for _ in asked.inputs] for asked in group]

    def _written(self, asked: _Asked, answers: list[Any], payload: Payload) -> Outcome:
        if isinstance(payload, Tensors):
            return Tensors((self._tensor(answers),))
        if asked.request.of_rows:
            return Raw((RawPart(msgspec.json.encode(listed(answers)), _JSON),))
        several = asked.request.parameters.get("num_return_sequences", 1) > 1
        is_bare = asked.request.is_one and (several or (self._head is not None and self._head.is_bare))
        whole = answers[0] if is_bare else answers
        return Raw((RawPart(msgspec.json.encode(whole), _JSON),))

    def _tensor(self, answers: list[Any]) -> Tensor:
        if self._task is ModelTask.EMBEDDING:
            rows = np.asarray(answers, np.float32)
            return Tensor(EMBEDDING, DataType.FP32, rows.shape, rows)
        texts = np.empty(len(answers), object)
        texts[:] = [msgspec.json.encode(answer) for answer in answers]
        return Tensor(ANSWER, DataType.BYTES, texts.shape, texts)

    def _head_of(self) -> TaskHead:
        assert self._head is not None, "a task has one of the two"
        return self._head


def failure_of(model: str, error: Exception) -> ServeError:
    """Return what is said of a call that a library ended; the log has where."""
    log.error("model '%s' failed", model, exc_info=error)
    return ServeError(Code.MODEL_FAILED, f"Model '{model}' failed: {named(error)[:500]}")
