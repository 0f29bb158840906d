"""Adapters of language models: the tokens of the merged weights, whoever runs in the same steps, and whatever comes and
goes meanwhile; and what of a PEFT folder is refused.

The oracle is W + scale * B @ A by plain torch. Its tokens, and ours, were compared with those of PEFT 0.21.2 by hand,
for each kind that is served: they are the same.
"""

import json
import re
import struct
from dataclasses import replace

import pytest
from tests.harness.generate_reference import compare, generated
from tests.harness.language_models import SERVED, Steps, kv_bytes, spec, text, tokenizer, write
from tests.harness.lora_folders import merged, write_adapter

from trivium.engines.hf import pool
from trivium.engines.hf.engine import ENGINE
from trivium.types.adapters import REGISTER, UNREGISTER, UPDATE, found
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

TARGETS = {
    "gpt2": ("c_attn", "mlp.c_proj"),
    "gpt_neox": ("query_key_value", "dense_4h_to_h"),
    "phi3": ("qkv_proj", "down_proj"),
    "deepseek_v3": ("q_a_proj", "kv_b_proj", "o_proj"),
    "opt": ("q_proj", "fc1"),
}
THREE = ("a", "b", "c")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write(tmp_path_factory.mktemp("base"), "llama")


@pytest.fixture(scope="module")
def adapters(model, tmp_path_factory):
    """Three adapters: of the attention, of everything with a scale of its own kind, and with ranks by a pattern."""
    root = tmp_path_factory.mktemp("adapters")
    every = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    return {
        "a": write_adapter(root / "a", model, 1),
        "b": write_adapter(root / "b", model, 2, 8, every, use_rslora=True, strength=0.1),
        "c": write_adapter(
            root / "c", model, 3, 4, rank_pattern={"0.self_attn.q_proj": 2}, alpha_pattern={"v_proj": 3}
        ),
    }


@pytest.fixture(scope="module")
def references(model, adapters):
    """What the merged models answer, and the plain one."""

    def answered(name, told):
        return generated(model, told, merged(model, adapters[name]) if name else None)

    return answered


def ids_of(start, length):
    return tuple(tokenizer()(text(start, length * 8))["input_ids"][:length])


def asked(start, length=24, tokens=12, **others):
    return {"ids": (ids_of(start, length),), "sampling": Sampling(max_tokens=tokens)} | others


def opened(folder, adapters=(), **parameters):
    steps = Steps(folder, enable_lora="true", **{"dtype": "fp32"} | parameters)
    for name, place in dict(adapters).items():
        steps.call(REGISTER, name, place)
    return steps


def tokens(answer):
    return [choice.ids for choice in answer.choices]


def compared(references, requests, answers):
    """Compare each answer with that of the model that its adapter makes."""
    for name in ("", *THREE):
        mine = [i for i, told in enumerate(requests) if told.get("adapter", "") == name]
        told = [{key: requests[i][key] for key in ("ids", "sampling")} for i in mine]
        compare([answers[i] for i in mine], references(name, told))


@pytest.mark.parametrize("is_pool", [False, True], ids=["slots", "pool"])
def test_32_requests_over_three_adapters_and_none(model, adapters, references, monkeypatch, is_pool):
    monkeypatch.setattr(pool, "can_map", lambda size: not is_pool)
    names = ("", *THREE)
    requests = [asked(n, 10 + 3 * (n % 9), 8 + n % 7, adapter=names[n % 4]) for n in range(32)]
    with opened(model, adapters, slots=8, prefill_chunk=40) as steps:
        answers = steps.answers(requests)
    compared(references, requests, answers)
    differing = {name: tokens(answers[names.index(name)]) for name in names}
    assert len({str(one) for one in differing.values()}) > 2, "an adapter changes the answer"


@pytest.mark.parametrize("kind", SERVED)
def test_every_class(kind, tmp_path):
    base = write(tmp_path / "m", kind)
    strength = 2.0 if kind.startswith("gemma") else 0.3
    place = write_adapter(
        tmp_path / "a", base, 1, targets=TARGETS.get(kind, ("q_proj", "v_proj", "o_proj")), strength=strength
    )
    plain = [asked(number, 30) for number in range(3)]
    with opened(base, {"a": place}) as steps:
        answers = steps.answers([*plain, *({**one, "adapter": "a"} for one in plain)])
    compare(answers[:3], generated(base, plain))
    compare(answers[3:], generated(base, plain, merged(base, place)))
    assert [tokens(one) for one in answers[:3]] != [tokens(one) for one in answers[3:]]


def test_adapters_come_change_and_go_while_requests_run(model, adapters, references):
    long = asked(5, 20, 30)
    with opened(model, {"a": adapters["a"]}) as steps:
        first = steps.add(**long, adapter="a")
        for _ in range(4):
            steps.step()
        steps.call(UPDATE, "a", adapters["b"])
        second = steps.add(**long, adapter="a")
        for _ in range(4):
            steps.step()
        steps.call(UNREGISTER, "a")
        with pytest.raises(ServeError, match="The adapter a has not been registered") as refused:
            steps.add(**long, adapter="a")
        assert refused.value.status == 424
        steps.call(REGISTER, "c", adapters["c"])
        third, plain = steps.add(**long, adapter="c"), steps.add(**long)
        steps.run()
        answers = [steps.answer(one) for one in (first, second, third, plain)]
        assert steps.runner.debug_adapters()["held"] == 1
        steps.call(UNREGISTER, "c")
        assert steps.runner.debug_adapters() == {"held": 0, "modules": 0}
    compared(
        references, [{**long, "adapter": name} if name else long for name in ("a", "b", "c", "")], answers
    )


def test_an_adapter_that_is_gone_costs_nothing_once_its_last_request_has_ended(model, adapters):
    with opened(model, {"a": adapters["a"]}) as steps:
        item = steps.add(**asked(5, 20, 30), adapter="a")
        steps.step()
        steps.call(UNREGISTER, "a")
        assert steps.runner.debug_adapters() == {"held": 1, "modules": 4}
        steps.runner.abort(item)
        assert steps.runner.debug_adapters() == {"held": 0, "modules": 0}


def test_beginnings_are_an_adapters_own_and_of_its_latest_weights(model, adapters, references):
    chat = asked(9, 64)
    with opened(model, {"a": adapters["a"], "b": adapters["b"]}) as steps:

        def cached(**told):
            (answer,) = steps.answers([chat | told])
            return answer.usage.cached_tokens, answer

        assert cached()[0] == 0
        assert cached(adapter="a")[0] == 0
        assert cached(adapter="a")[0] == 63
        assert cached(adapter="b")[0] == 0
        assert cached()[0] == 63
        steps.call(UPDATE, "a", adapters["c"])
        again, answer = cached(adapter="a")
        assert again == 0
        compare([answer], references("c", [chat]))
        steps.call(UPDATE, "a", adapters["a"])
        again, answer = cached(adapter="a")
        assert again == 0
        compare([answer], references("a", [chat]))


def test_what_is_computed_again_has_its_adapter(model, adapters, references):
    names = ("", *THREE)
    requests = [asked(n, 30, 40, adapter=names[n % 4]) for n in range(8)]
    with opened(model, adapters, slots=8, kv_bytes=kv_bytes(model, 32 * 8)) as steps:
        answers = steps.answers(requests)
        assert sum(report.wasted_tokens for report in steps.reports) > 0, "some gave their memory back"
    compared(references, requests, answers)


def test_choices_scores_and_embeddings_are_those_of_the_merged_model(model, adapters, tmp_path):
    whole = tmp_path / "merged"
    merged(model, adapters["b"], whole)
    requests = [
        asked(3) | {"sampling": Sampling(max_tokens=6, samples=True, seed=7, choices=3, best_of=4)},
        asked(4) | {"sampling": Sampling(max_tokens=4, logprobs=3), "scores_prompts": True},
        asked(5) | {"sampling": Sampling(max_tokens=1, logprobs=1), "scores_prompts": True},
        {"prompts": (text(2, 80), text(8, 90)), "sampling": Sampling(max_tokens=8)},
    ]
    with opened(model, adapters) as steps:
        mine = steps.answers([{**told, "adapter": "b"} for told in requests] + requests)
    with Steps(whole, dtype="fp32") as steps:
        theirs = steps.answers(requests)
    for one, other in zip(mine[:4], theirs, strict=True):
        assert tokens(one) == tokens(other)
        for choice, known in zip(one.choices, other.choices, strict=True):
            for token, same in zip(choice.tokens, known.tokens, strict=True):
                assert token.id == same.id
                assert token.logprob == pytest.approx(same.logprob, abs=1e-3)
    assert [tokens(one) for one in mine[:4]] != [tokens(one) for one in mine[4:]]


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_in_16_bits_an_adapter_has_the_type_of_the_model(model, adapters, dtype):
    with opened(model, adapters, dtype=dtype) as steps:
        plain, changed = steps.answers([asked(3), asked(3, adapter="b")])
    assert tokens(plain) != tokens(changed)


def test_quantised_weights_have_adapters(model, adapters):
    with opened(model, adapters, quantize="dynamic_int8") as steps:
        plain, changed = steps.answers([asked(3), asked(3, adapter="b")])
    assert tokens(plain) != tokens(changed)


def test_the_head_may_be_changed(model, tmp_path):
    place = write_adapter(tmp_path / "a", model, 1)
    weights = {
        "base_model.model.lm_head.lora_A.weight": torch.randn(
            4, 64, generator=torch.Generator().manual_seed(1)
        ),
        "base_model.model.lm_head.lora_B.weight": torch.randn(
            768, 4, generator=torch.Generator().manual_seed(2)
        ),
    }
    safetensors.save_file(weights, place / "adapter_model.safetensors")
    told = json.loads((place / "adapter_config.json").read_text()) | {"target_modules": ["lm_head"]}
    (place / "adapter_config.json").write_text(json.dumps(told))
    whole = merged(model, write_adapter(tmp_path / "none", model, 1, strength=0.0))
    with torch.inference_mode():
        whole.lm_head.weight.add_(2 * weights[next(reversed(weights))] @ weights[next(iter(weights))])
    requests = [asked(number, 9 + number, adapter="a") for number in range(6)]
    with opened(model, {"a": place}, prefill_chunk=16) as steps:
        answers = steps.answers([*requests, *(asked(number) for number in range(6))])
    compare(answers[:6], generated(model, requests, whole))
    compare(answers[6:], generated(model, [asked(number) for number in range(6)]))


def test_without_adapters_no_module_has_a_hook(model):
    with opened(model) as steps:
        assert steps.runner.debug_adapters() == {"held": 0, "modules": 0}
        with pytest.raises(ServeError, match="The adapter a has not been registered"):
            steps.add(**asked(1), adapter="a")
    with Steps(model) as steps, pytest.raises(ServeError, match="has not been registered"):
        steps.add(**asked(1), adapter="a")


# -- what is refused --


CONFIGS = {
    "DoRA": ({"use_dora": True}, "use_dora is True.*merge_and_unload"),
    "whole modules (vllm-project/vllm#9280)": (
        {"modules_to_save": ["lm_head"]},
        "modules_to_save is .*Merge it",
    ),
    "biases": ({"bias": "all"}, "bias is 'all'; expected none"),
    "a bias of its own": ({"lora_bias": True}, "lora_bias is True"),
    "new tokens": ({"trainable_token_indices": [1]}, "trainable_token_indices is .*embeddings"),
    "experts' parameters": ({"target_parameters": ["experts.gate"]}, "target_parameters is"),
    "a start that changes the base": (
        {"init_lora_weights": "pissa"},
        "init_lora_weights is 'pissa'.*path_initial",
    ),
    "another kind": ({"peft_type": "IA3"}, "peft_type is 'IA3'; expected LORA"),
    "no kind": ({"peft_type": None}, "peft_type missing"),
    "another task": ({"task_type": "SEQ_CLS"}, "task_type is 'SEQ_CLS'; expected CAUSAL_LM"),
    "a rank above the bound (vllm-project/vllm#2847)": (
        {"r": 64},
        "its rank is 64, and max_lora_rank is 16. Set max",
    ),
    "a rank by a pattern": ({"rank_pattern": {"q_proj": 32}}, "its rank is 32, and max_lora_rank is 16"),
    "no rank": ({"r": 0}, "r is 0; expected a rank from 1"),
    "a rank that is no number": ({"r": "8"}, "r is '8'; expected a rank"),
    "a rank that is not the weights'": ({"r": 8}, "have the ranks 4 and 4, and adapter_config.json says 8"),
    "no scale": ({"lora_alpha": float("inf")}, "lora_alpha is inf; expected a number"),
    "a huge scale": ({"lora_alpha": 10**400}, "lora_alpha is 1000.*expected a number"),
    "a key that nobody knows": ({"use_quantum": True}, "use_quantum is True; this version does not know"),
    "a module without weights": (
        {"target_modules": ["q_proj", "v_proj", "o_proj"]},
        "names 'o_proj', of which there",
    ),
    "weights that are not meant": (
        {"target_modules": ["q_proj"]},
        "does not name 'model.layers.0.self_attn.v_proj'",
    ),
    "layers that are not meant": (
        {"layers_to_transform": [0]},
        "layers_to_transform does not hold the layer of",
    ),
    "an expression without end": ({"alpha_pattern": {"(a+)+": 1}}, "alpha_pattern is .*expected names"),
    "no expression": ({"alpha_pattern": {"(": 1}}, "alpha_pattern is '\\('; it is no expression"),
    "a pattern that is none": ({"rank_pattern": [1]}, "rank_pattern is \\[1\\]; expected an object"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_that_is_refused_is_told_by_its_key(model, tmp_path, name):
    changes, words = CONFIGS[name]
    place = write_adapter(tmp_path / "a", model)
    told = json.loads((place / "adapter_config.json").read_text()) | changes
    (place / "adapter_config.json").write_text(json.dumps(told))
    with opened(model) as steps:
        with pytest.raises(ServeError, match=words) as refused:
            steps.call(REGISTER, "mine", place)
        assert refused.value.code is Code.MODEL_FAILED
        assert "adapter 'mine': adapter_" in refused.value.message
        (one,) = steps.answers([asked(1)])
        assert tokens(one), "the model goes on"


ACCEPTED = {
    "as expressions": {"target_modules": ".*\\.(q|v)_proj"},
    "all of one kind": {"target_modules": "all-linear"},
    "one layer": {"layers_to_transform": [0, 1]},
    "a dropout": {"lora_dropout": 0.5},
    "a turned base": {"fan_in_fan_out": True},
    "what newer releases write, switched off": {"kasa_config": None, "use_new": False, "some_config": {}},
    "how it was trained": {
        "init_lora_weights": "gaussian",
        "eva_config": {"rho": 2},
        "runtime_config": {"x": 1},
    },
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_changes_nothing_is_taken(model, tmp_path, name):
    place = write_adapter(tmp_path / "a", model)
    told = json.loads((place / "adapter_config.json").read_text()) | ACCEPTED[name]
    (place / "adapter_config.json").write_text(json.dumps(told))
    with opened(model, {"a": place}) as steps:
        (answer,) = steps.answers([asked(1, adapter="a")])
    compare([answer], generated(model, [asked(1)], merged(model, write_adapter(tmp_path / "b", model))))


def renamed(place, change):
    weights = safetensors.load_file(place / "adapter_model.safetensors")
    safetensors.save_file(change(weights), place / "adapter_model.safetensors")


def first_of(weights):
    return next(iter(weights))


WEIGHTS = {
    "whole weights (vllm-project/vllm#9280)": (
        lambda w: w | {"base_model.model.lm_head.weight": torch.zeros(768, 64)},
        "holds 'base_model.model.lm_head.weight', a whole weight.*save_embedding_layers=False",
    ),
    "embeddings": (
        lambda w: w | {"base_model.model.model.embed_tokens.lora_embedding_A": torch.zeros(4, 768)},
        "embeddings were trained",
    ),
    "DoRA's norms": (
        lambda w: (
            w | {"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector": torch.zeros(64)}
        ),
        "norms of DoRA",
    ),
    "other names": (lambda w: {"x": torch.zeros(2)}, "holds 'x'; expected keys as PEFT writes them"),
    "modules of another model (vllm-project/vllm#55193)": (
        lambda w: {key.replace("self_attn", "attention"): value for key, value in w.items()},
        "changes 'model.layers.0.attention.q_proj', and the model has no such module.*such as model.layers.0.self_attn",
    ),
    "layers that there are not": (
        lambda w: {key.replace("layers.1", "layers.7"): value for key, value in w.items()},
        "changes 'model.layers.7.",
    ),
    "a model of another size": (
        lambda w: {key: value[:, :32] if "lora_A" in key else value for key, value in w.items()},
        "for 32 inputs and 64 outputs, and the model's module has 64 and 64. It was trained for another model",
    ),
    "half of a pair": (
        lambda w: {k: v for k, v in w.items() if "lora_A" in k},
        "lacks 'base_model.*lora_B.weight'",
    ),
    "no matrix": (
        lambda w: w | {first_of(w): torch.zeros(4)},
        "has the shape \\[4\\]; expected a matrix",
    ),
    "another type": (
        lambda w: w | {first_of(w): torch.zeros(4, 64, dtype=torch.float64)},
        "is stored as F64; expected one of F32, F16, BF16",
    ),
    "nothing": (lambda w: {}, "holds no weights"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_refused_are_told_by_their_key(model, tmp_path, name):
    change, words = WEIGHTS[name]
    place = write_adapter(tmp_path / "a", model)
    renamed(place, lambda weights: {k: v.contiguous() for k, v in change(weights).items()})
    with opened(model) as steps, pytest.raises(ServeError, match=words):
        steps.call(REGISTER, "mine", place)


def bad_files(place):
    weights, config = place / "adapter_model.safetensors", place / "adapter_config.json"
    whole = weights.read_bytes()
    yield weights, whole[: len(whole) // 2], "truncated"
    yield weights, struct.pack("<Q", 2**62) + whole[8:], "its head would have"
    yield weights, struct.pack("<Q", 9) + b'{"x": [1]}', "is no whole safetensors file"
    yield weights, b"", "is no whole safetensors file"
    yield config, b"[" * 100_000, "is no JSON"
    yield config, b"[]", "holds no JSON object"
    yield config, b"\xff", "is no JSON"


def test_files_that_are_damaged_or_missing(model, tmp_path):
    place = write_adapter(tmp_path / "a", model)
    with opened(model) as steps:
        for path, content, words in bad_files(place):
            before = path.read_bytes()
            path.write_bytes(content)
            with pytest.raises(ServeError, match=words):
                steps.call(REGISTER, "mine", place)
            path.write_bytes(before)
        for source, words in (
            (tmp_path / "none (vllm-project/vllm#30690)", "there is no folder .*none"),
            ("", "there is no folder"),
            ("a\0b", "there is no folder|cannot be read"),
            (tmp_path, "has no adapter_config.json"),
        ):
            with pytest.raises(ServeError, match=words):
                steps.call(REGISTER, "mine", source)
        (place / "adapter_model.safetensors").rename(place / "adapter_model.bin")
        with pytest.raises(ServeError, match=r"are pickled .*save_pretrained\(NEW\) writes"):
            steps.call(REGISTER, "mine", place)
        (place / "adapter_model.bin").unlink()
        with pytest.raises(ServeError, match=r"has no adapter_model\.safetensors"):
            steps.call(REGISTER, "mine", place)
        with pytest.raises(ServeError, match="has no function 'other'"):
            steps.call("other", "mine")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_loras": 1}, "1 adapters are held, and max_loras is 1. Unregister one, or set max_cpu_loras"),
        ({"max_loras": 1, "max_cpu_loras": 2}, ""),
        ({"lora_bytes": 8000}, "its weights take 7168 bytes.*7168, and lora_bytes is 8000.*at least 14336"),
        ({"max_lora_rank": 2}, "its rank is 4, and max_lora_rank is 2"),
    ],
)
def test_ranks_numbers_and_bytes_are_bounded(model, tmp_path, parameters, words):
    two = [write_adapter(tmp_path / name, model, seed) for seed, name in enumerate("ab")]
    calls = tuple(found(place.name, str(place)) for place in two)
    told = replace(spec(model, enable_lora="true", dtype="fp32", **parameters), standing=calls)
    with opened(model, **parameters) as steps:
        if not words:
            for place in two:
                steps.call(REGISTER, place.name, place)
            assert ENGINE.facts(told).details["adapters"][0].startswith("2: a (rank 4, 7168 bytes), b ")
            steps.call(UPDATE, "a", two[1])
            return
        if "rank" not in words:
            steps.call(REGISTER, "a", two[0])
        with pytest.raises(ServeError, match=words) as refused:
            steps.call(REGISTER, "b", two[1])
        assert refused.value.code is (Code.MODEL_FAILED if "rank" in words else Code.OUT_OF_MEMORY)
        with pytest.raises(ServeError, match=words):
            ENGINE.facts(told)
    assert re.search("adapter '[ab]'", refused.value.message)
