"""Faults that the names of a folder's weights show."""

import pytest

from trivium.engines.hf.weight_names import missing_fault, name_fault

NAMES = ("model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight")
LLAMA = {"model_type": "llama"}


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "base_model.model."])
def test_what_a_trainer_has_put_in_front_is_named(prefix):
    fault = name_fault(LLAMA, [prefix + name for name in NAMES])
    assert f"begin with '{prefix}', such as '{prefix}lm_head.weight'; expected 'lm_head.weight'" in fault
    assert "save_pretrained" in fault


def test_good_names_have_no_fault():
    assert name_fault(LLAMA, NAMES) == ""
    assert name_fault(LLAMA | {"tie_word_embeddings": True}, NAMES[:2]) == ""
    assert name_fault({"model_type": "gemma2"}, NAMES[:2]) == ""
    assert name_fault({}, []) == ""
    assert (
        name_fault({"model_type": "gpt_neox", "tie_word_embeddings": False}, ["gpt_neox.embed_in.weight"])
        == ""
    )


@pytest.mark.parametrize("config", [LLAMA, {"model_type": "x", "tie_word_embeddings": False}])
def test_a_head_that_lacks_is_named_with_the_way_out(config):
    fault = name_fault(config, NAMES[:2])
    assert "no weight 'lm_head.weight'" in fault
    assert '"tie_word_embeddings": true into config.json' in fault


def test_any_common_beginning_is_found_where_weights_lack():
    names = [f"model.{name}" for name in NAMES]
    assert "begin with 'model.'" in missing_fault(["lm_head.weight"], names)
    assert missing_fault(["lm_head.weight"], NAMES[:2]) == ""
    assert missing_fault(["x"], []) == ""
