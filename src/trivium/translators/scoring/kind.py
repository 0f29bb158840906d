"""The translator of models from MLflow's folders: bodies of `mlflow models serve` in, `{"predictions": ...}` out.

Bodies in another form of the payload table (npz, NDList, inputs by name) are read by that, and answered as those of any
other model are.
"""

from collections.abc import Mapping, Sequence

from trivium.codecs.conversion import to_tensors
from trivium.codecs.nested_values import nested, with_replacements
from trivium.codecs.signatures import CSV, JSON, UNSAID, is_json
from trivium.translators.answers import json_answer
from trivium.translators.checking import translator_of
from trivium.translators.requests import body_of, content_type_of, data_of
from trivium.translators.scoring.arrays import ScoringColumn, ScoringInputs
from trivium.translators.scoring.bodies import FORMS, ListedArrays, Table, read_csv, read_document, read_json
from trivium.types.datatype import Array
from trivium.types.errors import ServeError, frameless
from trivium.types.findings import Finding
from trivium.types.operations import Infer
from trivium.types.payload import Payload, Raw, RawForm, Tensor, Tensors
from trivium.types.running import Translated
from trivium.types.spec import Isolation, ModelSpec

_LIST, _ROWS = "list", "rows"
_BODIES = (RawForm.BODY, RawForm.SIGNED, RawForm.ROWS)


class ScoringTranslator:
    """Translates for one instance. Implements `Translator`."""

    def __init__(self, spec: ModelSpec) -> None:
        arguments = translator_of(spec).arguments
        columns, tensors = arguments["columns"], arguments["tensors"]
        assert isinstance(columns, list), "the format made it"
        assert isinstance(tensors, list), "the format made it"
        self._inputs = ScoringInputs(
            translator_of(spec).inputs or spec.inputs,
            [ScoringColumn(*one) for one in columns],
            [one[0] for one in tensors],
        )
        self._answers = arguments["answers"]
        self._model = spec.name
        self._names = {one.name for one in self._inputs.inputs}

    def before(self, requests: Sequence[Infer]) -> list[Translated | ServeError]:
        """Read each body. The state of one that was a table is "frame", of arrays "arrays", of other forms, and of
        tensors for the columns, empty.
        """
        return [self._before(request) for request in requests]

    def after(self, translated: Translated, outputs: Sequence[Tensors]) -> Payload:
        """Write the predictions as MLflow does; of another form's body the outputs as they are."""
        (found,) = outputs
        if not translated.state:
            return found
        return json_answer({"predictions": self._predictions(found, translated.state == "frame")})

    def close(self) -> None:
        """It holds nothing."""

    def _before(self, request: Infer) -> Translated | ServeError:
        try:
            if isinstance(request.payload, Tensors):
                return Translated([self._inputs.joined(request.payload)], "")
            raw = body_of(request)
            asked = self._scored(raw.formless())
            if asked is None:
                made = to_tensors(raw.formless(), tuple(self._inputs.inputs), False, self._model)
                return Translated([self._inputs.taken(made)], "")
            is_frame = isinstance(asked, Table) or bool(self._inputs.columns)
            state = "frame" if is_frame and not self._inputs.tensors else "arrays"
            return Translated([self._inputs.made_of(asked)], state)
        except ServeError as error:
            return frameless(error)

    def _scored(self, raw: Raw) -> Table | ListedArrays | None:
        """Return what a scoring body holds; None for a body of another form."""
        if raw.form not in _BODIES or len(raw.parts) != 1 or raw.parts[0].name:
            return None
        part = data_of(raw)
        kind = content_type_of(raw, part)
        if kind == CSV:
            return read_csv(part.data)
        if kind != JSON and not (kind in UNSAID and is_json(bytes(part.data[:32]))):
            return None
        document = read_document(part.data)
        return None if self._is_others(document) else read_json(document)

    def _is_others(self, document: object) -> bool:
        """Is it JSON in another of the forms that models take: bare lists, inputs by name, v2 tensors?"""
        if not isinstance(document, dict):
            return isinstance(document, list)
        if not any(form in document for form in FORMS):
            return bool(self._names) and self._names <= set(document)
        told = document.get("inputs")
        return isinstance(told, list) and any(isinstance(one, dict) and "datatype" in one for one in told)

    def _predictions(self, outputs: Tensors, is_frame: bool) -> object:
        if self._answers == _LIST:
            return _values(outputs.items[0])
        is_numbered = self._answers == _ROWS
        if is_numbered and not is_frame:
            return _values(outputs.items[0])
        if not is_frame:
            return {tensor.name: _values(tensor) for tensor in outputs.items}
        return _records(outputs.items[:1] if is_numbered else outputs.items, is_numbered)


def _records(tensors: Sequence[Tensor], is_numbered: bool) -> list[Mapping[str, object]]:
    """Return rows with a value by each name: an output's values one behind the other, or each column by its number."""
    columns: dict[str, list[object]] = {}
    for tensor in tensors:
        if is_numbered:
            rows = tensor.array.reshape(len(tensor.array), -1)
            columns |= {str(at): _flat(tensor, rows[:, at]) for at in range(rows.shape[1])}
        else:
            columns[tensor.name] = _flat(tensor, tensor.array.reshape(-1))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)]


def _flat(tensor: Tensor, values: Array) -> list[object]:
    return nested(Tensor(tensor.name, tensor.datatype, values.shape, values), with_replacements)


def _values(tensor: Tensor) -> object:
    return nested(tensor, with_replacements)


class ScoringKind:
    """The descriptor. Implements `TranslatorKind`."""

    name = "mlflow-scoring"
    example = ""
    isolation: tuple[Isolation, ...] = (Isolation.THREAD, Isolation.PROCESS)

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """The format has judged what it made."""
        return ()

    def open(self, spec: ModelSpec) -> ScoringTranslator:
        """Return one for an instance."""
        return ScoringTranslator(spec)


KIND = ScoringKind()
