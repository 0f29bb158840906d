"""Kinds of translators of texts: the arguments of each, what makes tokens and answers, and their faults at load.

They run in the instance's thread, but for long texts: the tokenizer releases the interpreter's lock, but not while its
files are read. A model with large ones has a process. Source: spec sheet `djl`, section 10.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from trivium.codecs.header_text import by_preference
from trivium.translators.answers import json_answer, text_answer
from trivium.translators.checking import fault_at, findings_of, input_name, translator_of
from trivium.translators.faults import refused, unfit
from trivium.translators.long_texts import Encode
from trivium.translators.reading import ArgumentFinding
from trivium.translators.requests import (
    JSON,
    MOST_JSON,
    body_of,
    content_type_of,
    data_of,
    fields_of,
    instances_of,
    property_of,
)
from trivium.translators.texts.encoding import EncodedTexts, TextEncoder
from trivium.translators.texts.text_work import is_long
from trivium.translators.texts.tokenizer import Text, TokenRow, is_large
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.findings import Finding
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawForm, RawPart, Tensors
from trivium.types.running import Translated
from trivium.types.spec import Isolation, ModelSpec

_IDS = {DataType.INT64, DataType.INT32}


class TextRows(Protocol):
    """One request's rows of texts, or of pairs of them."""

    @property
    def rows(self) -> Sequence[Text]:
        """See above."""


class TextAnswers(Protocol):
    """Reads the requests of one model, and makes its answers."""

    encoder: TextEncoder

    def parse(self, content: bytes, content_type: str, fields: Mapping[str, str]) -> Any:
        """Return the request's `TextRows`. Raises INVALID."""

    def encode(self, rows: Sequence[Text], encode: Encode | None = None) -> EncodedTexts:
        """Return the tensors of some rows, padded together; `encode` does it elsewhere. Raises ServeError."""

    def decode(self, outputs: Mapping[str, Array], encodings: Sequence[TokenRow], request: Any) -> object:
        """Return what becomes the answer, from outputs of a row each."""


@dataclass(frozen=True, slots=True)
class TextTask:
    """One kind: `read` makes its arguments and findings, `make` what answers. `bare` is the member of the answer that
    is the whole body for clients that do not ask for JSON; empty for none. `example` is a body that it takes.
    """

    name: str
    read: Callable[[Mapping[str, object]], tuple[Any, list[ArgumentFinding]]]
    make: Callable[[Path, Any], TextAnswers]
    bare: str = ""
    example: str = '{"inputs": "a text"}'


class TextState(NamedTuple):
    """Keeps what the answer to a request needs apart from the model's outputs. `of_rows`: it came by KServe's v1
    protocol, and is answered by predictions.
    """

    request: Any
    encodings: Sequence[TokenRow]
    accept: str
    of_rows: bool = False


class TextKind:
    """A descriptor. Implements `TranslatorKind` and `ChoosesIsolation`."""

    isolation: tuple[Isolation, ...] = (Isolation.THREAD, Isolation.PROCESS)

    def __init__(self, task: TextTask) -> None:
        self.name = task.name
        self.example = task.example
        self._task = task

    def default_isolation(self, spec: ModelSpec) -> Isolation:
        """See `ChoosesIsolation`."""
        return Isolation.PROCESS if self._is_large(spec) else Isolation.THREAD

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`: the arguments, the files, the labels against the outputs, and the model's inputs."""
        arguments, found = self._task.read(translator_of(spec).arguments)
        findings = findings_of(spec, found)
        if self._is_large(spec):
            return findings  # whoever opens it will say what is wrong with it
        try:
            made = self._task.make(spec.root, arguments)
        except ServeError as error:
            return [*findings, fault_at(spec, "", error.message, "", "")]
        shapes = {one.name: one.dims for one in spec.outputs}
        fault = getattr(made, "fault", None)
        if shapes and fault is not None and (words := fault(shapes)):
            findings.append(fault_at(spec, "", words, "", "Correct the file, or the model."))
        return [*findings, *_inputs(spec, made.encoder.names)]

    def _is_large(self, spec: ModelSpec) -> bool:
        arguments, _ = self._task.read(translator_of(spec).arguments)
        texts = getattr(arguments, "text", arguments)  # of kinds that have further arguments
        return is_large(spec.root, texts.tokenizer)

    def open(self, spec: ModelSpec) -> "TextTranslator":
        """See `TranslatorKind`. Reads the tokenizer's files."""
        arguments, _ = self._task.read(translator_of(spec).arguments)
        return TextTranslator(spec, self._task.make(spec.root, arguments), self._task.bare)


class TextTranslator:
    """Makes tokens of texts, those of a batch padded together. Implements `Translator`."""

    def __init__(self, spec: ModelSpec, answers: TextAnswers, bare: str) -> None:
        self._answers = answers
        self._bare = bare
        names = answers.encoder.names
        known = {one.name for one in spec.inputs}
        is_named = known >= set(names)
        self._names = {name: name if is_named else input_name(spec, i) for i, name in enumerate(names)}

    def before(self, requests: Sequence[Infer]) -> list[Translated | ServeError]:
        """See `Translator`."""
        made: dict[int, Translated | ServeError] = {}
        short: dict[int, TextState] = {}
        long: dict[int, TextState] = {}
        for i, request in enumerate(requests):
            read = self._read(body_of(request))
            if isinstance(read, ServeError):
                made[i] = read
            else:
                (long if is_long(read.request.rows) else short)[i] = read
        made.update(zip(short, self._encoded(list(short.values())), strict=True))
        if long:
            encode = self._answers.encoder.long.encoding()
            for i, state in long.items():
                made[i] = self._encoded([state], encode)[0]
        return [made[i] for i in range(len(requests))]

    def after(self, translated: Translated, outputs: Sequence[Tensors]) -> Raw:
        """See `Translator`."""
        state = translated.state
        assert isinstance(state, TextState), "it was made by before"
        arrays = {
            tensor.name: np.stack([one.items[i].array for one in outputs])
            for i, tensor in enumerate(outputs[0].items)
        }
        try:
            answer = self._answers.decode(arrays, state.encodings, state.request)
        except ServeError as error:
            raise refused(error) from error
        if state.of_rows:
            return json_answer({"predictions": answer})
        if self._bare and isinstance(answer, dict) and JSON not in by_preference(state.accept):
            return text_answer(str(answer[self._bare]))
        return json_answer(answer)

    def close(self) -> None:
        """End the process for long texts, where there is one."""
        self._answers.encoder.long.close()

    def _read(self, raw: Raw) -> TextState | ServeError:
        """Return what a request asks, without encodings yet."""
        try:
            fields = fields_of(raw)
            part = RawPart(b"") if fields and not any(len(one.data) for one in raw.parts) else data_of(raw)
            if len(part.data) > MOST_JSON:
                raise unfit(f"The input has {len(part.data)} bytes; {MOST_JSON} are read at most.")
            kind = content_type_of(raw, part)
            rows = instances_of(part.data) if raw.form is RawForm.ROWS else None
            asked = self._answers.parse(bytes(part.data) if rows is None else rows, kind, fields)
        except ServeError as error:
            return frameless(refused(error))
        return TextState(asked, (), property_of(raw, "accept"), rows is not None)

    def _encoded(
        self, states: Sequence[TextState], encode: Encode | None = None
    ) -> list[Translated | ServeError]:
        """Encode the rows of all requests together, or each request by itself where one of them is at fault."""
        if not states:
            return []
        rows = [row for state in states for row in state.request.rows]
        try:
            encoded = self._answers.encode(rows, encode)
        except ServeError as error:
            if len(states) == 1:
                return [frameless(refused(error) if error.code is Code.INVALID else error)]
            return [one for state in states for one in self._encoded([state])]
        made: list[Translated | ServeError] = []
        at = 0
        for state in states:
            after = at + len(state.request.rows)
            tensors = [self._row(encoded.arrays, i) for i in range(at, after)]
            made.append(Translated(tensors, state._replace(encodings=encoded.encodings[at:after])))
            at = after
        return made

    def _row(self, arrays: Mapping[str, Array], i: int) -> Tensors:
        return Tensors.of({self._names[name]: array[i] for name, array in arrays.items()})


def _inputs(spec: ModelSpec, names: Sequence[str]) -> list[Finding]:
    """Return what keeps the model from taking tokens. A file that does not tell its inputs is believed."""
    if not spec.inputs or any(one.open for one in spec.inputs):
        return []
    found = {one.name: one for one in spec.inputs}
    takes = ", ".join(found)
    if len(found) != len(names) or (found.keys() & set(names) and not found.keys() <= set(names)):
        hint = "Set includeTokenTypes as the model takes them."
        words = f"the translator makes {len(names)} inputs ({', '.join(names)}), and the model takes {takes}"
        return [fault_at(spec, "includeTokenTypes", words, "as many inputs of those names", hint)]
    other = [one for one in spec.inputs if one.datatype not in _IDS]
    if other:
        words = f"the model's input '{other[0].name}' is {other[0].datatype.wire}, and token ids are INT64 or INT32"
        return [fault_at(spec, "int32", words, "INT64, or INT32 with int32=true", "Export the model so.")]
    return []
