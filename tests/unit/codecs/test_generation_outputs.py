"""Outputs that a client of Triton's vLLM backend asks for, beyond the text: how they are asked for, and their forms."""

import json

import msgspec
import numpy as np
import pytest

from trivium.codecs.generation import INPUTS, OUTPUTS, as_tensors, to_generate
from trivium.codecs.generation_outputs import ASKED
from trivium.types.errors import ServeError
from trivium.types.generation import Finish, Generated, GeneratedChoice, GenerationUsage, TokenText
from trivium.types.payload import Raw, RawForm, RawPart


def asked(**fields: object):
    body = Raw(
        (RawPart(msgspec.json.encode({"text_input": "x", **fields}), "application/json"),),
        form=RawForm.FIELDS,
    )
    return to_generate(body, {}, "m")[0]


def told(part: Generated, *names: str) -> dict[str, np.ndarray]:
    return {tensor.name: tensor.array for tensor in as_tensors(part, names).items}


PART = Generated(
    (
        GeneratedChoice(
            1,
            "b",
            (7, 8),
            (
                TokenText(7, "b", -0.5, ((7, "b", -0.5), (9, "c", -1.5)), False, "b"),
                TokenText(8, "", -2.0, ((9, "c", -0.5),), False, "d"),
            ),
            Finish.EOS,
        ),
        GeneratedChoice(0, "a", (5,), (TokenText(5, "a", -0.25),), None),
    ),
    GenerationUsage(3, 3),
)


def test_nothing_more_than_the_text_comes_unasked():
    assert asked().outputs == ()
    assert not asked().counts_parts
    assert list(told(PART)) == ["text_output"]


def test_each_is_asked_for_by_its_own_input():
    assert {one.name for one in INPUTS} >= ASKED.keys()
    assert {one.name for one in OUTPUTS} == {"text_output", *ASKED.values()}
    for name, output in ASKED.items():
        generate = asked(**{name: True})
        assert generate.outputs == (output,)
        assert asked(**{name: False}).outputs == ()


def test_log_probabilities_are_computed_where_they_are_needed():
    assert asked(return_logprobs=True).sampling.logprobs == 0
    assert asked(return_cumulative_logprob=True).sampling.logprobs == 0
    assert asked(return_finish_reason=True).sampling.logprobs is None
    assert asked(return_logprobs=True, logprobs=2).sampling.logprobs == 2
    assert asked(return_logprobs=True, sampling_parameters='{"logprobs": 3}').sampling.logprobs == 3


def test_a_sum_is_not_known_in_a_stream():
    with pytest.raises(ServeError, match="a sum is known with the whole answer"):
        asked(return_cumulative_logprob=True, stream=True)
    assert asked(return_logprobs=True, stream=True).outputs == ("logprobs",)


def test_their_forms_are_those_of_the_backend():
    found = told(PART, *ASKED.values())
    assert found["text_output"].tolist() == [b"a", b"b"]
    assert found["finish_reason"].tolist() == [b"None", b"stop"]
    assert found["cumulative_logprob"].tolist() == [-0.25, -2.5]
    assert (found["num_input_tokens"].tolist(), found["num_output_tokens"].tolist()) == ([3], [1, 2])
    assert found["num_input_tokens"].dtype == np.uint32
    first, second = map(json.loads, found["logprobs"].tolist())
    assert first == [{"5": {"logprob": -0.25, "rank": None, "decoded_token": "a"}}]
    assert second[0]["9"] == {"logprob": -1.5, "rank": 2, "decoded_token": "c"}
    assert second[1]["8"]["logprob"] == -2.0, "a token that is not among the likeliest is there all the same"


def test_a_part_without_a_sequence_has_empty_ones():
    found = told(Generated((), GenerationUsage(3, 0)), *ASKED.values())
    assert [len(array) for array in found.values()] == [1, 0, 0, 0, 1, 0]
