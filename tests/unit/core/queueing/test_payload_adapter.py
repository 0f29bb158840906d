"""The door: what becomes of a payload before the queue, and of an answer before its wire."""

import numpy as np
import pytest
from msgspec import structs
from tests.harness.virtual_models import make_infer, make_spec

from trivium.codecs.conversion import SLOW_BYTES
from trivium.core.queueing.payload_adapter import LONG_PROMPT, PayloadAdapter, payload_adapter
from trivium.core.request import Item
from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, Generated, GeneratedChoice
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import PayloadKind, Raw, RawPart, Tensor, Tensors
from trivium.types.spec import Batching, Handler, Limits, TensorSpec, TranslatorSpec

TENSORS, RAW = PayloadKind.TENSORS, PayloadKind.RAW
BOTH = frozenset({TENSORS, RAW})
ROWS = Batching(True, 8, merge=True)
BYTES = TensorSpec("b", DataType.BYTES, (1,))


def door(takes=BOTH, batching=ROWS, **fields):
    return PayloadAdapter(make_spec(batching, **fields), frozenset(takes))


def item(payload=None, **fields):
    infer = make_infer(3, **fields) if payload is None else Infer(model="m", payload=payload, **fields)
    return Item(1, infer, lambda part: None, 0.0, None)


def raw(data=b"[[1, 2], [3, 4]]", kind="application/json", **fields):
    return Raw((RawPart(data, kind),), **fields)


def test_a_part_of_an_answer_may_have_so_many_bytes():
    made = payload_adapter(make_spec(ROWS, limits=Limits(answer_bytes=4)), BOTH)
    fits = Raw((RawPart(b"ab"), RawPart(b"cd")))
    assert made.answer(item(), fits) == (fits, {})
    error, _ = made.answer(item(), Raw((RawPart(b"ab"), RawPart(b"cde"))))
    assert (error.code, error.metadata) == (Code.MODEL_FAILED, {"model": "m", "most": 4, "size": 5})
    assert "answered 5 bytes, and 4 may be in an answer" in error.message
    tensors = make_infer(3).payload
    assert made.answer(item(), tensors) == (tensors, {})
    assert type(payload_adapter(make_spec(ROWS), BOTH)) is PayloadAdapter


def admitted(made, given):
    made.admit(given)
    return given


def refusal(made, given):
    with pytest.raises(ServeError) as caught:
        made.admit(given)
    return caught.value


def test_tensors_are_judged_and_counted():
    given = admitted(door(), item())
    assert (given.rows, given.shape_key) == (3, None)
    assert refusal(door(), item(make_infer(9).payload)).code is Code.INVALID
    assert refusal(door(), item(outputs=(WantedOutput("nothing"),))).code is Code.INVALID


def test_of_models_with_open_shapes_a_key_is_taken():
    given = admitted(door(inputs=(TensorSpec("x", DataType.FP32, (-1,)),)), item())
    assert given.shape_key == (("x", (2,)),)


def test_a_body_becomes_tensors_where_the_engine_takes_no_other():
    lease = Lease(memoryview(bytearray(4)), lambda lease: None)
    body = raw(lease=lease)
    given = admitted(door({TENSORS}), item(body, id="i", priority=2))
    tensors = given.operation.payload
    assert tensors["x"].tolist() == [[1, 2], [3, 4]]
    assert (given.rows, given.operation.id, given.operation.priority) == (2, "i", 2)
    assert tensors.lease is lease, "whoever lets go of the payload lets go of the body"


def test_a_body_goes_as_it_is_to_whom_it_concerns():
    body = raw(b"anything", "image/png")
    given = admitted(door(), item(body))
    assert given.operation.payload is body
    assert given.rows == 1


def test_who_takes_no_form_gets_the_json_that_was_called_one():
    """`curl -d` calls everything a form; a handler still gets it as one where its server's original does so."""
    whole = RawPart(b"[[1, 2], [3, 4]]", "application/json")
    body = structs.replace(raw(), parts=(RawPart(b"", "", "[[1, 2], [3, 4]]"),), whole=whole)
    assert admitted(door({TENSORS}), item(body)).operation.payload["x"].tolist() == [[1, 2], [3, 4]]
    told = []
    generating = door({PayloadKind.GENERATE})
    admitted(generating, item(body, as_generate=lambda raw, _: told.append(raw.parts) or Generate(("hi",))))
    assert told == [(whole,)]
    translated = door(translator=TranslatorSpec("any"))
    assert admitted(translated, item(body)).operation.payload.parts == (whole,)
    assert admitted(door(), item(body)).operation.payload.parts == (whole,)
    assert admitted(door(handler=Handler()), item(body)).operation.payload is body
    large = structs.replace(body, parts=(), whole=RawPart(bytes(SLOW_BYTES + 1), "application/json"))
    assert door({TENSORS}).is_slow(large), "it would be read on the loop"
    assert generating.is_slow(large)
    assert not door({TENSORS}).is_slow(body)


def test_a_body_that_nothing_converts():
    assert (
        refusal(door({TENSORS}), item(raw(b"\x89PNG\r\n\x1a\n...", "image/png"))).code
        is Code.UNSUPPORTED_MEDIA
    )
    assert refusal(door({TENSORS}), item(raw(b"{", "application/json"))).code is Code.INVALID


def test_prompts_are_not_taken():
    error = refusal(door(), item(Generate(prompts=("once upon a time",))))
    assert (error.code, "cannot take a Generate payload" in error.message) == (Code.UNSUPPORTED_MEDIA, True)


def test_a_model_that_generates_has_bodies_read_in_the_form_of_the_protocol_and_tensors_by_their_names():
    made = door({PayloadKind.GENERATE}, parameters={"own": "1"})
    lease, told = Lease(memoryview(bytearray(1)), lambda lease: None), []

    def read(body, parameters):
        told.append((body, dict(parameters)))
        return Generate(("hi",))

    body = raw(b"anything", lease=lease)
    given = admitted(made, item(body, as_generate=read))
    assert (given.operation.payload.prompts, given.operation.payload.lease) == (("hi",), lease)
    assert told == [(body, {"own": "1"})]
    named = Tensors.of({"text_input": np.array([b"hi"])})
    assert admitted(made, item(named)).operation.payload.prompts == ("hi",)
    assert refusal(made, item(make_infer().payload)).code is Code.INVALID
    assert made.is_slow(raw(bytes(LONG_PROMPT + 1)))
    assert not made.is_slow(body)
    assert made.read(item(body, as_generate=read).operation).payload.prompts == ("hi",)


def test_what_is_generated_goes_out_as_it_was_asked_for():
    made = door({PayloadKind.GENERATE})
    part = Generated((GeneratedChoice(0, "a"),))
    assert made.answer(item(as_generate=lambda body, parameters: Generate()), part) == (part, {})
    assert made.answer(item(wants=PayloadKind.GENERATE), part) == (part, {})
    assert made.answer(item(wants=TENSORS), part)[0]["text_output"].tolist() == [b"a"]
    failed = Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),))
    assert made.answer(item(wants=TENSORS), failed)[0].code is Code.MODEL_FAILED


def test_a_handler_that_declares_nothing_takes_whatever_comes():
    made = door(inputs=(), outputs=())
    odd = Tensors((Tensor("y", DataType.INT8, (7,), np.zeros(7, "i1")),))
    for payload in (odd, Tensors(()), raw()):
        assert admitted(made, item(payload, outputs=(WantedOutput("any"),))).rows == 1


# -- answers -----------------------------------------------------------------------------------------------


def test_answers_go_as_they_are_where_the_wire_can_carry_them():
    made = door()
    tensors, body = make_infer().payload, raw()
    assert made.answer(item(wants=TENSORS), tensors) == (tensors, {})
    assert made.answer(item(), body) == (body, {})
    assert made.answer(item(wants=RAW), body) == (body, {})
    assert made.answer(item(wants=TENSORS), None) == (None, {})


def test_a_body_becomes_the_declared_outputs():
    outcome, parameters = door().answer(item(wants=TENSORS), raw(b'{"x": [1, 2]}'))
    assert outcome["x"].tolist() == [1, 2]
    assert parameters == {}


def test_or_one_tensor_of_bytes():
    outcome, parameters = door(outputs=()).answer(item(wants=TENSORS), raw(b"body", "text/x"))
    assert outcome["output"].tolist() == [b"body"]
    assert parameters == {"content_type": "text/x"}


def test_what_cannot_be_had_so_is_an_error():
    failed = raw(b"no", "text/plain", status=418)
    outcome, parameters = door().answer(item(wants=TENSORS), failed)
    assert (outcome.code, outcome.status, parameters) == (Code.MODEL_FAILED, 418, {})
    wrong, _ = door(outputs=(BYTES,)).answer(item(wants=TENSORS), raw(b'{"b": [1.5]}'))
    assert isinstance(wrong, ServeError)


def test_only_what_was_asked_for_is_answered():
    tensors = Tensors(tuple(Tensor(name, DataType.FP32, (0,), np.zeros(0, "<f4")) for name in "abc"))
    some = item(outputs=(WantedOutput("c"), WantedOutput("a")))
    assert [tensor.name for tensor in PayloadAdapter.chosen(some, tensors).items] == ["a", "c"]
    assert PayloadAdapter.chosen(item(), tensors) is tensors
    assert PayloadAdapter.chosen(some, None) is None
    assert PayloadAdapter.chosen(some, body := raw()) is body
