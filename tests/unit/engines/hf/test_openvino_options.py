"""Parameters of the engine openvino-llm: shared with hf, its own, those that ask for nothing, and refused ones."""

from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.genai.options import EXACT, OWN, GenaiOptions, options
from trivium.types.errors import Code, ServeError


def read(**parameters: str) -> GenaiOptions:
    return options(replace(make_spec(), parameters=parameters))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, GenaiOptions()),
        ({"slots": "8", "kv_bytes": "1M"}, GenaiOptions(slots=8, kv_bytes=2**20)),
        ({"precision": "Exact", "threads": "2"}, GenaiOptions(precision=EXACT, threads=2)),
        ({"dtype": "fp32"}, GenaiOptions(precision=EXACT)),
        ({"dtype": "FP32", "precision": "exact"}, GenaiOptions(precision=EXACT)),
        ({"dtype": "auto", "quantize": "none", "trust_remote_code": "false"}, GenaiOptions(precision=OWN)),
        ({"output_formatter": "json", "prefix_cache": "false"}, GenaiOptions(prefix_cache=False)),
        ({"eos_token_id": "1;2", "max_context": "99"}, GenaiOptions(eos_token_id=(1, 2), max_context=99)),
    ],
)
def test_they_are_read(parameters, expected):
    assert read(**parameters) == expected


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"slot": "8"}, "Did you mean 'slots'"),
        ({"dtype": "bf16"}, "'dtype' is the engine hf's"),
        ({"dtype": "fp32", "precision": "own"}, "contradict each other"),
        ({"quantize": "dynamic_int8"}, "'quantize'"),
        ({"adapters": "a=/b"}, "'adapters'"),
        ({"trust_remote_code": "true"}, "'trust_remote_code'"),
        ({"logits_processors": "a=b.py:C"}, "'logits_processors'"),
        ({"weights_cache_bytes": "5"}, "'weights_cache_bytes'"),
        ({"precision": "half"}, "one of own, exact"),
    ],
)
def test_what_is_unknown_or_cannot_be_honoured_is_refused_by_name(parameters, words):
    with pytest.raises(ServeError, match=words) as caught:
        read(**parameters)
    assert caught.value.code is Code.LOAD_FAILED
