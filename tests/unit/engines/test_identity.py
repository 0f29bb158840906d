"""The identity engine: its inputs again, under the names of the outputs, as late as it is told."""

import time

import numpy as np
import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.identity import ENGINE
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Isolation, TensorSpec

A, B = TensorSpec("a", DataType.FP32, (2,)), TensorSpec("b", DataType.BYTES, (-1,))
C, D = TensorSpec("c", DataType.FP32, (2,)), TensorSpec("d", DataType.BYTES, (-1,))
HERE = Placement("m_0", Isolation.INLINE)


def ask(**arrays):
    return Infer(model="m", payload=Tensors.of(arrays))


def opened(inputs=(A, B), outputs=(C, D), **parameters):
    return ENGINE.open(make_spec(inputs=inputs, outputs=outputs, parameters=parameters), HERE)


def refusal(*specs, **parameters):
    with pytest.raises(ServeError) as caught:
        opened(*specs, **parameters)
    assert caught.value.code is Code.LOAD_FAILED
    return caught.value.message


def test_inputs_come_back_uncopied_under_the_outputs_names_in_any_order():
    x = np.ones(2, "<f4")
    first, second = ask(a=x, b=np.array(["p", "q"])), ask(b=np.array([b"r"]), a=x)
    ran = opened().run(Batch([1, 2], [first, second], [1, 1]))
    assert [[t.name for t in outcome.items] for outcome in ran.outcomes] == [["c", "d"], ["d", "c"]]
    for operation, outcome in zip((first, second), ran.outcomes, strict=True):
        for given, got in zip(operation.payload.items, outcome.items, strict=True):
            assert got.array is given.array
            assert (got.datatype, got.shape) == (given.datatype, given.shape)


def test_optional_inputs_may_lack():
    (outcome,) = opened().run(Batch([1], [ask(a=np.ones(2, "<f4"))], [1])).outcomes
    assert [tensor.name for tensor in outcome.items] == ["c"]


@pytest.mark.parametrize(
    ("parameters", "seconds"),
    [
        ({}, None),
        ({"execute_delay_ms": "0", "execute_delay_ms_per_row": "0.0"}, None),
        ({"execute_delay_ms": "8"}, 0.008),
        ({"execute_delay_ms": "8", "execute_delay_ms_per_row": "0.5"}, 0.01),
    ],
)
def test_delays(monkeypatch, parameters, seconds):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    opened(**parameters).run(Batch([1, 2], [ask(), ask()], [3, 1]))
    assert slept == ([] if seconds is None else [pytest.approx(seconds)])


@pytest.mark.parametrize("text", ["soon", "", "-1", "nan", "inf", "3600000"])
def test_what_is_no_delay_is_refused(text):
    assert refusal(execute_delay_ms_per_row=text) == (
        f"Model 'm': parameter 'execute_delay_ms_per_row' is '{text}'; expected milliseconds from 0 to 3600000."
    )


@pytest.mark.parametrize(
    ("inputs", "outputs"), [((A, B), (C,)), ((A,), (C, D)), ((A,), (D,)), ((A, B), (D, C)), ((A,), ())]
)
def test_outputs_that_are_not_the_inputs_again_are_refused(inputs, outputs):
    assert "engine 'identity' gives back its inputs" in refusal(inputs, outputs)


def test_it_says_of_a_model_what_the_configuration_says():
    spec = make_spec(inputs=(A,), outputs=(C,))
    facts = ENGINE.facts(spec)
    assert (facts.inputs, facts.outputs, ENGINE.has_facts) == ((A,), (C,), False)


def test_an_unknown_parameter_is_told_of(caplog):
    spec = make_spec(parameters={"execute_delay_msec": "5"})
    ENGINE.open(spec, Placement("m_0", Isolation.THREAD))
    assert "'execute_delay_msec' means nothing" in caplog.text
