"""Language models of the engine `vllm`, by a stand-in for vLLM: options, streams, ends, aborts, adapters and faults."""

import asyncio
import json
import threading
import time

import pytest
from tests.harness.language_models import VOCABULARY, embeddings, spec, text, write
from tests.harness.lora_folders import write_adapter
from tests.harness.vllm_models import ENGINE, VllmSteps, stand_in, vllm_spec

from trivium.engines.hf.vllm.engine_thread import EngineOrder, EngineThread
from trivium.formats.huggingface.repository import FORMAT
from trivium.types.adapters import REGISTER, UNREGISTER, UPDATE
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Sampling, joined
from trivium.types.spec import Defaults

__all__ = ["stand_in"]
pytest.importorskip("torch")
pytest.importorskip("transformers")
FAILS, DIES, ENDS, WAITS = 761, 762, 763, 764
SECONDS = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("llama"), "llama")


def until(condition):
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def tokens(prompt, count, drawn=0, adapter=0):
    """What the stand-in makes of a prompt."""
    known = list(prompt)
    for _ in range(count):
        known.append(4 + (sum(known) * 31 + len(known) * 7 + drawn + adapter) % 750)
    return tuple(known[len(prompt) :])


def test_many_requests_are_answered_whole_and_in_parts(stand_in, folder):
    prompts = [tuple(range(5 + i, 20 + 2 * i)) for i in range(20)]
    with VllmSteps(folder) as steps:
        items = [
            steps.add(ids=(ids,), sampling=Sampling(max_tokens=3 + i), streams=bool(i % 2))
            for i, ids in enumerate(prompts)
        ]
        steps.run()
        for i, (item, ids) in enumerate(zip(items, prompts, strict=True)):
            answer = steps.answer(item)
            assert answer.choices[0].ids == tokens(ids, 3 + i)
            assert answer.choices[0].finish is Finish.LENGTH
            assert (answer.usage.prompt_tokens, answer.usage.new_tokens) == (len(ids), 3 + i)
            assert 0 < answer.usage.first_at <= answer.usage.last_at
            assert bool(steps.parts.get(item)) == bool(i % 2)
        assert sum(report.new_tokens for report in steps.reports) == sum(3 + i for i in range(20))
        read = sum(report.prompt_tokens for report in steps.reports)
        cached = sum(report.cached_tokens for report in steps.reports)
        assert read + cached == sum(map(len, prompts)) == sum(one.queried_tokens for one in steps.reports)
        assert max(report.share for report in steps.reports) > 0
        nothing = {"unread": 0, "requests": 0, "sequences": 0, "computed": 0}
        until(lambda: steps.runner.debug_state() == nothing)  # a task of the engine ends after its last token is taken
    assert stand_in.made[0].is_shut


def test_options_arrive_as_arguments_of_the_engine(stand_in, folder):
    options = {
        "slots": 4,
        "max_context": 128,
        "dtype": "fp16",
        "kv_bytes": 2**20,
        "prefix_cache": "false",
        "gpu_memory_utilization": "0.5",
        "tensor_parallel_size": 2,
        "max_num_batched_tokens": 256,
    }
    with VllmSteps(folder, **options) as steps:
        args = stand_in.made[0].args
        assert (args.max_num_seqs, args.max_model_len, args.dtype) == (4, 128, "float16")
        assert (args.kv_cache_memory_bytes, args.enable_prefix_caching) == (2**20, False)
        assert (args.gpu_memory_utilization, args.tensor_parallel_size) == (0.5, 2)
        assert args.model == str(folder)
        assert args.skip_tokenizer_init
        assert steps.runner.slots == 4
        item = steps.add(ids=(tuple(range(4, 104)),), sampling=Sampling(max_tokens=100))
        steps.run()
        assert steps.answer(item).usage.new_tokens == 28, "the context is full"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_modl_len": 5}, "did you mean 'max_model_len'"),
        ({"tensor_parallel_size": 64}, "vLLM .* cannot open it: .*World size"),
        ({"enable_lora": "true", "max_lora_rank": 600}, "at most 512"),
    ],
)
def test_options_that_cannot_be_fail_the_load(stand_in, folder, options, words):
    with pytest.raises(ServeError, match=words) as caught:
        VllmSteps(folder, **options)
    assert caught.value.code is Code.LOAD_FAILED


def test_facts_need_no_library_and_say_what_vllm_gets(stand_in, folder):
    facts = ENGINE.facts(vllm_spec(spec(folder, max_context=64)))
    assert facts.context == 64
    assert "max_model_len=64" in facts.details["arguments"][0]
    assert facts.inputs
    with pytest.raises(ServeError, match="no argument of vLLM"):
        ENGINE.facts(vllm_spec(spec(folder, unheard_of="1")))


def test_texts_end_at_stop_texts_and_the_rest_is_aborted(stand_in, folder):
    with VllmSteps(folder) as steps:
        whole = (
            steps.answers([{"prompts": (text(1, 60),), "sampling": Sampling(max_tokens=40)}])[0]
            .choices[0]
            .text
        )
        stop = whole[10:13]
        item = steps.add(
            prompts=(text(1, 60),), sampling=Sampling(max_tokens=400, stop=(stop,)), streams=True
        )
        steps.run()
        choice = steps.answer(item).choices[0]
        assert (choice.text, choice.finish) == (whole[: whole.index(stop)], Finish.STOP)
        until(lambda: steps.runner.debug_state()["computed"] == 0)
        assert len(stand_in.made[0].aborted) == 1


def test_ends_of_the_model_and_of_the_request(stand_in, folder):
    prompt = (9, 8, 7)
    third = tokens(prompt, 3)[2]
    with VllmSteps(folder, eos_token_id=third) as steps:
        eos, ignored, least = steps.answers(
            {"ids": (prompt,), "sampling": Sampling(max_tokens=6, **more)}
            for more in ({}, {"ignores_eos": True}, {"stop_ids": (tokens(prompt, 1)[0],), "min_tokens": 2})
        )
        assert (eos.choices[0].finish, eos.choices[0].ids) == (Finish.EOS, tokens(prompt, 3))
        assert (ignored.choices[0].finish, ignored.usage.new_tokens) == (Finish.LENGTH, 6)
        assert least.usage.new_tokens >= 2


def test_choices_and_the_best_of_several(stand_in, folder):
    drawn = Sampling(max_tokens=4, choices=2, best_of=3, temperature=1.0, samples=True, seed=11, logprobs=2)
    with VllmSteps(folder) as steps:
        (answer,) = steps.answers([{"ids": ((5, 6, 7), (8, 9)), "sampling": drawn}])
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
        assert answer.choices[0].ids == tokens((5, 6, 7), 4, drawn=31 + 11)
        assert answer.choices[1].ids == tokens((5, 6, 7), 4, drawn=31 + 12)
        assert len(answer.choices[0].tokens[0].alternatives) == 2
        assert (answer.usage.new_tokens, answer.usage.prompt_tokens) == (24, 5)
        assert sum(report.wasted_tokens for report in steps.reports) == 8, (
            "the third of each prompt is nobody's"
        )


def test_prompts_are_scored_echoed_and_only_read(stand_in, folder):
    with VllmSteps(folder) as steps:
        scored, alone, read = steps.answers(
            [
                {
                    "prompts": ("a b c",),
                    "sampling": Sampling(max_tokens=2, logprobs=1),
                    "scores_prompts": True,
                    "echoes": True,
                },
                {
                    "prompts": ("a b c",),
                    "sampling": Sampling(max_tokens=0, logprobs=1),
                    "scores_prompts": True,
                },
                {"prompts": ("a b c",), "sampling": Sampling(max_tokens=0), "tells_prompts": True},
            ]
        )
        count = scored.usage.prompt_tokens
        assert len(scored.choices[0].tokens) == count + 2
        assert scored.choices[0].tokens[0].logprob is None
        assert scored.choices[0].tokens[1].logprob == -0.5
        assert scored.choices[0].text.startswith("a b c")
        assert (len(alone.choices[0].tokens), alone.usage.new_tokens) == (count, 0)
        assert (len(read.prompts[0]), read.usage.new_tokens) == (count, 0)


def test_beginnings_are_found_by_those_with_the_same_salt(stand_in, folder):
    ids = (tuple(range(5, 60)),)
    with VllmSteps(folder) as steps:
        for salt, expected in (("", 0), ("", 48), ("a", 0), ("a", 48)):
            (answer,) = steps.answers([{"ids": ids, "cache_salt": salt, "sampling": Sampling(max_tokens=1)}])
            assert answer.usage.cached_tokens == expected


def test_embeddings_are_taken_where_the_operator_says_so(stand_in, folder):
    numpy = pytest.importorskip("numpy")
    rows = embeddings(numpy.ones((3, 64), "f4"))
    with VllmSteps(folder) as steps, pytest.raises(ServeError, match="enable_prompt_embeds=true"):
        steps.add(embeds=rows)
    with VllmSteps(folder, enable_prompt_embeds="true") as steps:
        (answer,) = steps.answers([{"embeds": rows, "sampling": Sampling(max_tokens=2)}])
        assert answer.choices[0].ids == tokens((7, 7, 7), 2)


def test_a_fault_of_one_request_is_that_ones(stand_in, folder):
    bad = {
        "a kernel of this request failed": {"ids": ((5, FAILS),)},
        "presence_penalty must be in": {"ids": ((5,),), "sampling": Sampling(presence_penalty=5.0)},
        "gives as its reason: weariness": {"ids": ((5, ENDS),)},
    }
    with VllmSteps(folder) as steps:
        good = [steps.add(ids=((5, i),), sampling=Sampling(max_tokens=30)) for i in range(6, 10)]
        items = {words: steps.add(**request) for words, request in bad.items()}
        steps.run()
        for item, last in zip(good, range(6, 10), strict=True):
            assert steps.answer(item).choices[0].ids == tokens((5, last), 30)
        for words, item in items.items():
            with pytest.raises(ServeError, match=words):
                steps.answer(item)
        with pytest.raises(ServeError, match="logit_bias") as caught:
            steps.add(ids=((5,),), sampling=Sampling(logit_bias={VOCABULARY: 1.0}))
        assert caught.value.code is Code.INVALID
        nothing = {"unread": 0, "requests": 0, "sequences": 0, "computed": 0}
        until(lambda: steps.runner.debug_state() == nothing)  # a task of the engine ends after its last token is taken


def test_who_leaves_is_aborted_and_who_waits_for_a_slot_joins(stand_in, folder):
    with VllmSteps(folder, slots=1) as steps:
        stuck = steps.add(ids=((5, WAITS),), sampling=Sampling(max_tokens=5))
        next_one = steps.add(ids=((5, 6),), sampling=Sampling(max_tokens=5))
        until(lambda: steps.runner.step() is None and steps.runner.debug_state()["computed"] == 2)
        assert steps.runner.abort(stuck) == 0
        steps.settled(1)
        assert steps.answer(next_one).choices[0].ids == tokens((5, 6), 5)
        assert stuck not in steps.ends
        many = steps.add(ids=((5, 6),), sampling=Sampling(max_tokens=400), streams=True)
        while not steps.parts.get(many):
            steps.step()
        assert steps.runner.abort(many) >= 1
        until(lambda: steps.runner.debug_state()["computed"] == 0)
        assert len(stand_in.made[0].aborted) == 2
        assert steps.runner.abort(many) == 0, "it has ended"


def test_a_reset_forgets_all(stand_in, folder):
    with VllmSteps(folder) as steps:
        for _ in range(3):
            steps.add(ids=((5, WAITS),))
        until(lambda: steps.runner.step() is None and steps.runner.debug_state()["computed"] == 3)
        steps.runner.reset()
        until(lambda: steps.runner.debug_state()["computed"] == 0)
        assert not steps.ends
        (answer,) = steps.answers([{"ids": ((5, 6),), "sampling": Sampling(max_tokens=2)}])
        assert answer.choices[0].ids == tokens((5, 6), 2)


def test_adapters_come_change_and_go_while_requests_keep_theirs(stand_in, folder, tmp_path):
    made = write_adapter(tmp_path / "eng", folder)
    greedy = {"ids": ((5, 6),), "sampling": Sampling(max_tokens=3)}
    with VllmSteps(folder, enable_lora="true", max_cpu_loras=2, max_lora_rank=10) as steps:
        engine = stand_in.made[0]
        assert (engine.args.max_lora_rank, engine.args.max_cpu_loras, engine.args.max_loras) == (16, 3, 2)
        with pytest.raises(ServeError, match="has not been registered"):
            steps.add(**greedy, adapter="eng")
        steps.call(REGISTER, "eng", made)
        plain, adapted = steps.answers([greedy, greedy | {"adapter": "eng"}])
        assert plain.choices[0].ids == tokens((5, 6), 3)
        assert adapted.choices[0].ids == tokens((5, 6), 3, adapter=1)
        running = steps.add(ids=((5, WAITS),), adapter="eng")
        until(lambda: steps.runner.step() is None and steps.runner.debug_state()["computed"] == 1)
        steps.call(UPDATE, "eng", made)
        assert set(engine.loras) == {1, 2}, "a running request has the first"
        steps.runner.abort(running)
        assert set(engine.loras) == {2}
        steps.call(REGISTER, "other", made)
        with pytest.raises(ServeError, match="2 adapters are held, and max_cpu_loras is 2") as caught:
            steps.call(REGISTER, "third", made)
        assert caught.value.code is Code.OUT_OF_MEMORY
        steps.call(UNREGISTER, "eng")
        assert set(engine.loras) == {3}
        with pytest.raises(ServeError, match="there is no folder"):
            steps.call(REGISTER, "none", tmp_path / "none")


def test_parts_join_to_the_whole(stand_in, folder):
    with VllmSteps(folder) as steps:
        request = {"prompts": (text(2, 80),), "sampling": Sampling(max_tokens=30, logprobs=1)}
        item = steps.add(**request, streams=True, counts_parts=True)
        steps.run()
        (whole,) = steps.answers([request])
        parts = [*steps.parts[item], steps.ends[item]]
        assert joined(parts).choices == whole.choices
        assert all(part.usage is not None for part in parts)


def test_weights_that_were_quantised_are_vllm_s_to_open_and_nobody_else_s(stand_in, tmp_path):
    place = write(tmp_path / "quantised", "llama")
    config = json.loads((place / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 128}
    (place / "config.json").write_text(json.dumps(config))
    refused = FORMAT.read(place, Defaults(has_vllm=True))
    (fault,) = refused.unreadable[0].findings
    assert "quantised by 'awq'" in fault.found
    assert "--text-engine vllm" in fault.hint
    (served,) = FORMAT.read(place, Defaults(has_vllm=True, text_engine="vllm")).specs
    assert served.engine == "vllm"
    with VllmSteps(place) as steps:
        item = steps.add(ids=((7, 8, 9),), sampling=Sampling(max_tokens=3))
        steps.run()
        assert steps.answer(item).choices[0].ids == tokens((7, 8, 9), 3)


class Blocking:
    """An engine whose first sequence holds its loop until it is let go; all wait for ever."""

    def __init__(self):
        self.errored = False
        self.is_held, self.may_go = threading.Event(), threading.Event()

    async def generate(self, inputs, sampling, key, lora_request=None):
        if key == "0":
            self.is_held.set()
            self.may_go.wait(SECONDS)
        await asyncio.Event().wait()
        yield None

    def shutdown(self):
        pass


def test_what_is_aborted_before_the_engine_has_begun_with_it_is_gone():
    engine = Blocking()
    core = EngineThread(lambda: engine, lambda: None)
    core.start()
    core.submit(EngineOrder(0, None, None))
    assert engine.is_held.wait(SECONDS)
    for key in range(1, 20):  # each with its end, before the loop goes on
        core.submit(EngineOrder(key, None, None))
        core.abort(key)
    engine.may_go.set()
    until(lambda: core.running == 1)
    core.close()
    assert core.running == 0
