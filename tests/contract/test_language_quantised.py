"""Weights in 8 and 4 bits: loaded where the library is there, refused with the next step where not, nearly as exact."""

import importlib.util

import pytest
from tests.harness.language_models import Steps, spec, write, write_gguf

from trivium.engines.hf import quantising
from trivium.engines.hf.engine import ENGINE
from trivium.engines.hf.options import BITS_4, BITS_8, DYNAMIC
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

HAS_LIBRARY = importlib.util.find_spec("bitsandbytes") is not None
IDS = tuple(5 + 7 * k % 700 for k in range(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("quantised"), "llama")


def refusal(of, **parameters):
    with pytest.raises(ServeError) as caught:
        ENGINE.facts(spec(of, **parameters))
    return caught.value


@pytest.mark.parametrize(
    "kind",
    [
        DYNAMIC,
        *(
            pytest.param(
                one, marks=pytest.mark.skipif(not HAS_LIBRARY, reason="bitsandbytes is not installed")
            )
            for one in (BITS_8, BITS_4)
        ),
    ],
)
def test_it_answers_nearly_as_the_weights_do(folder, kind):
    """By the log probabilities of a prompt's tokens: a coarse model of the same text, and no other one."""
    told = {
        "ids": (IDS,),
        "sampling": Sampling(max_tokens=3, logprobs=0),
        "scores_prompts": True,
        "echoes": True,
    }
    scores = []
    for quantize in ("none", kind):
        with Steps(folder, slots=2, quantize=quantize) as steps:
            (answer,) = steps.answers([told])
            assert len(answer.choices[0].ids) == 3
            scores.append(torch.tensor([token.logprob for token in answer.choices[0].tokens[1:40]]))
    assert not torch.equal(*scores)
    assert torch.corrcoef(torch.stack(scores))[0, 1] > (0.75 if kind == BITS_4 else 0.95)


def test_the_layers_are_kept_in_8_bits(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    made = quantising.quantised(model, DYNAMIC)
    assert not any(type(layer) is torch.nn.Linear for layer in made.modules())


def test_what_cannot_be_is_refused_with_what_would_do(folder, tmp_path, monkeypatch):
    gguf = write_gguf(tmp_path / "m.gguf")
    error = refusal(gguf, quantize=DYNAMIC)
    assert (error.code, "m.gguf is quantised as it is" in error.message) == (Code.UNSUPPORTED, True)
    error = refusal(folder, quantize="int5")
    assert "bitsandbytes8" in error.message
    monkeypatch.setattr(quantising, "find_spec", lambda name: None)
    error = refusal(folder, quantize=BITS_8)
    assert error.code is Code.UNSUPPORTED
    assert "need bitsandbytes, which is not installed. Install it with:" in error.message
    assert "bitsandbytes>=" in error.message
