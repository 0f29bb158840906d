"""The door of one model: turns a request into what the model's engine takes, and judges it against the spec.

Pure. What is refused here never reaches the queue; the texts are those of `admission` and of the payload table.
"""

from collections.abc import Mapping

import msgspec

from trivium.codecs.binary import pack_strings
from trivium.codecs.classification import UNRANKED, classify
from trivium.codecs.conversion import is_slow_to_read, to_outputs, to_tensors
from trivium.codecs.generation import as_tensors, to_generate
from trivium.core.queueing.admission import PriorityRules
from trivium.core.queueing.answer_rules import AnswerRules
from trivium.core.queueing.input_rules import InputRules, refuse_kind
from trivium.core.queueing.reshaping import Reshapes
from trivium.core.request import Item
from trivium.types import reasons
from trivium.types.buffers import Lease
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless, named
from trivium.types.generation import Generate, Generated
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import Listed, Payload, PayloadKind, Raw, Scalar, Tensor, Tensors
from trivium.types.running import Outcome
from trivium.types.scheduling import Alone
from trivium.types.spec import ModelSpec

TENSORS, RAW = PayloadKind.TENSORS, PayloadKind.RAW
ONLY_TENSORS = frozenset({TENSORS})
LONG_PROMPT = 2**16
"""Bytes of a body beyond which reading a request to generate may take long."""


class PayloadAdapter:
    """One model's, prepared once."""

    def __init__(
        self, spec: ModelSpec, takes: frozenset[PayloadKind], answers: AnswerRules | None = None
    ) -> None:
        self._spec = spec
        self.answers = answers
        self._takes_raw = RAW in takes
        self._takes_forms = spec.handler is not None and not spec.handler.takes_json
        self._takes_lists = PayloadKind.LISTED in takes
        self.generates = PayloadKind.GENERATE in takes
        self._names = frozenset(tensor.name for tensor in spec.inputs)
        self._outputs = {tensor.name: tensor for tensor in spec.outputs}
        self._inputs = InputRules(spec)
        self._is_free = self._takes_raw and not spec.inputs
        self._finds_outputs = not spec.outputs and any(tensor.open for tensor in spec.inputs)
        self.levels = PriorityRules(spec.dynamic)
        reshapes = Reshapes(spec)
        self._reshapes = None if reshapes.are_none else reshapes
        self._is_plain = reshapes.are_none and not self._inputs.needs_key

    def admit(self, item: Item) -> None:
        """Set the item's rows and shape key; convert its payload, if it must be. Raises ServeError."""
        infer = item.operation
        payload = infer.payload
        if infer.alone:
            item.shape_key = Alone()
        if infer.outputs:
            self._check_ranked(infer.outputs)
        if self.generates:
            if type(payload) is not Generate:
                item.operation = self._as_generate(infer)
            if infer.adapter:
                item.operation = _adapted(item.operation)
            item.rows = 1
            return
        if type(payload) is Raw and not self._takes_raw:
            infer, payload = self._as_tensors(infer, payload)
            item.operation = infer
        if type(payload) is not Tensors:
            self._admit_whole(item, payload)
            return
        if self._is_free:
            return  # a handler that declares nothing takes whatever comes, as one row
        item.rows = self._inputs.admit(infer, payload)
        if self._is_plain:
            return
        if self._inputs.needs_key and not infer.alone:
            item.shape_key = self._inputs.shape_key(infer)
        if self._reshapes is not None:
            item.operation = msgspec.structs.replace(infer, payload=self._reshapes.inward(payload))
            item.sink = self._reshapes.around(item.sink)

    def _admit_whole(self, item: Item, payload: Payload) -> None:
        """Count a body that is not looked into as one row. Only a handler takes a form."""
        if type(payload) is Raw:
            if not self._takes_forms and payload.whole is not None:
                item.operation = msgspec.structs.replace(item.operation, payload=payload.formless())
        elif not (type(payload) is Listed and self._takes_lists):
            refuse_kind(self._spec.name, payload)
        item.rows = 1

    def _as_generate(self, infer: Infer) -> Infer:
        """Return a request of another form as one to generate. INVALID for what is none."""
        payload = infer.payload
        if isinstance(payload, Raw) and infer.as_generate is not None:
            generate = infer.as_generate(payload.formless(), self._spec.parameters)
            return msgspec.structs.replace(infer, payload=_leased(generate, payload.lease))
        if not isinstance(payload, Tensors | Raw):
            refuse_kind(self._spec.name, payload)
        if isinstance(payload, Raw):
            payload = payload.formless()
        generate, parameters = to_generate(payload, infer.parameters, self._spec.name, infer.ignored)
        return msgspec.structs.replace(infer, payload=_leased(generate, payload.lease), parameters=parameters)

    def is_slow(self, payload: Payload) -> bool:
        """Would admitting it keep others waiting? Then it is read by `read` first, elsewhere."""
        if type(payload) is Raw:
            payload = payload.formless()
        if self.generates:
            return type(payload) is Raw and sum(len(part.data) for part in payload.parts) > LONG_PROMPT
        return type(payload) is Raw and not self._takes_raw and is_slow_to_read(payload)

    def read(self, infer: Infer) -> Infer | ServeError:
        """Return a request with a body as one with tensors, or why it cannot be had so. Called in any thread."""
        assert isinstance(infer.payload, Raw), "only bodies are read"
        try:
            if self.generates:
                return self._as_generate(infer)
            infer, payload = self._as_tensors(infer, infer.payload)
            return msgspec.structs.replace(infer, payload=pack_strings(payload))
        except ServeError as error:
            return frameless(error)
        except Exception as error:
            return ServeError(Code.INTERNAL, f"Our own fault: {named(error)}")

    def _as_tensors(self, infer: Infer, raw: Raw) -> tuple[Infer, Tensors]:
        spec = self._spec
        payload = to_tensors(raw.formless(), spec.inputs, spec.batching.batch_axis, spec.name)
        # A generate request has inputs and parameters side by side, and only here it is known which are which.
        parameters = {key: value for key, value in infer.parameters.items() if key not in self._names}
        return msgspec.structs.replace(infer, payload=payload, parameters=parameters), payload

    def answer(self, item: Item, outcome: Outcome) -> tuple[Outcome, Mapping[str, Scalar]]:
        """The outcome as the item's wire wants it, with parameters; an error where it cannot be had so."""
        if type(outcome) is Generated and item.operation.as_generate is None:
            if item.operation.wants is PayloadKind.GENERATE:
                return outcome, {}
            try:
                generate = item.operation.payload
                return as_tensors(outcome, generate.outputs if type(generate) is Generate else ()), {}
            except ServeError as error:
                return frameless(error), {}
        if item.operation.wants is TENSORS and type(outcome) is Raw:
            try:
                names = [output.name for output in item.operation.outputs]
                return to_outputs(outcome, self._spec.outputs, self._spec.name, names)
            except ServeError as error:
                return frameless(error), {}
        if self.answers is not None and type(outcome) is Tensors:
            return self.answers.fault(outcome, None) or outcome, {}
        return outcome, {}

    def written(self, item: Item, payload: Payload | None) -> Payload | None:
        """Return what was asked for of an answer, as it was asked for. MODEL_FAILED for a tensor that cannot be
        ranked.
        """
        if self._finds_outputs and isinstance(payload, Tensors):
            self._check_found(item.operation.outputs, payload)
        payload = self.chosen(item, payload)
        most: dict[str, int] = {}
        for output in item.operation.outputs:
            if output.classification:
                most[output.name] = output.classification
        if not most or not isinstance(payload, Tensors):
            return payload
        return Tensors(tuple(self._ranked(tensor, most.get(tensor.name, 0)) for tensor in payload.items))

    def _check_found(self, wanted: tuple[WantedOutput, ...], payload: Tensors) -> None:
        """Refuse a wish for an output that a model without declared outputs has not answered."""
        there = [tensor.name for tensor in payload.items]
        for output in wanted:
            if output.name not in there:
                raise ServeError(
                    Code.INVALID,
                    f"Model '{self._spec.name}' has no output '{output.name}'; it answered "
                    f"{', '.join(there) or 'none'}.",
                    info=ErrorInfo.of(reasons.UNKNOWN_OUTPUT, model=self._spec.name, output=output.name),
                )

    def _ranked(self, tensor: Tensor, most: int) -> Tensor:
        if not most:
            return tensor
        rule = self._outputs.get(tensor.name)
        labels = rule.labels if rule is not None else ()
        return classify(tensor, most, labels, self._spec.batching.batch_axis)

    def _check_ranked(self, outputs: tuple[WantedOutput, ...]) -> None:
        for output in outputs:
            if not output.classification:
                continue
            rule = self._outputs.get(output.name)
            if rule is not None and rule.datatype in UNRANKED:
                raise ServeError(
                    Code.INVALID,
                    f"Output '{output.name}' of model '{self._spec.name}' is {rule.datatype.wire}, which has no order: "
                    "it cannot be asked for with classification. Ask for it plainly.",
                )

    @staticmethod
    def chosen(item: Item, payload: Payload | None) -> Payload | None:
        """Return those of the tensors that were asked for."""
        wanted = item.operation.outputs
        if wanted and isinstance(payload, Tensors):
            names = {output.name for output in wanted}
            return Tensors(tuple(tensor for tensor in payload.items if tensor.name in names))
        return payload


class BoundedPayloadAdapter(PayloadAdapter):
    """One whose answers may have so many bytes in a part."""

    def __init__(
        self, spec: ModelSpec, takes: frozenset[PayloadKind], answers: AnswerRules | None, most: int
    ) -> None:
        super().__init__(spec, takes, answers)
        self._name = spec.name
        self._most = most

    def answer(self, item: Item, outcome: Outcome) -> tuple[Outcome, Mapping[str, Scalar]]:
        """See `PayloadAdapter`; MODEL_FAILED for a body that is too large."""
        size = sum(len(part.data) for part in outcome.parts) if type(outcome) is Raw else 0
        if size <= self._most:
            return super().answer(item, outcome)
        text = (
            f"Model '{self._name}' answered {size} bytes, and {self._most} may be in an answer, or in a part of it. "
            "Have it answer less, or in several parts, or allow more."
        )
        info = ErrorInfo.of(reasons.ANSWER_SIZE, model=self._name, most=self._most, size=size)
        return ServeError(Code.MODEL_FAILED, text, info=info), {}


def payload_adapter(
    spec: ModelSpec, takes: frozenset[PayloadKind], answers: AnswerRules | None = None
) -> PayloadAdapter:
    """Make the one of a model, whose answers are held against these rules."""
    most = spec.limits.answer_bytes
    if most is None:
        return PayloadAdapter(spec, takes, answers)
    return BoundedPayloadAdapter(spec, takes, answers, most)


def _adapted(infer: Infer) -> Infer:
    """Return a request to generate by the adapter that its route, or the name of its model, says."""
    payload = infer.payload
    assert isinstance(payload, Generate), "it was made so"
    return msgspec.structs.replace(infer, payload=msgspec.structs.replace(payload, adapter=infer.adapter))


def _leased(generate: Generate, lease: Lease | None) -> Generate:
    """Return a request that owns the buffer of the body that it was read from: its embeddings may view it."""
    return generate if lease is None else msgspec.structs.replace(generate, lease=lease)
