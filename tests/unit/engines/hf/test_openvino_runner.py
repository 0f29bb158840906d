"""Many requests by one pipeline of OpenVINO GenAI, with a stand-in that counts: who begins, ends, waits, and fails."""

import pytest
from tests.harness import openvino_stand_in
from tests.harness.openvino_stand_in import ContinuousBatchingPipeline

from trivium.engines.hf.answers import TokenReading
from trivium.engines.hf.genai.pipeline import GenaiPipeline, PipelinePlan
from trivium.engines.hf.genai.runner import GenaiRunner, GenaiSettings
from trivium.engines.hf.memory import KeyValueBudget
from trivium.engines.hf.prompts import PromptInput
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.texts import PreparedRequest
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, Sampling, joined
from trivium.types.operations import Infer

END = 99


def said(tokens) -> str:
    return "".join(f"<{token}>" for token in tokens)


class Reader:
    """Reads ids as they are, at once."""

    is_brief = False

    def __init__(self) -> None:
        self.ready: list[PreparedRequest] = []
        self.cancelled: list[int] = []
        self.is_closed = False

    def read(self, item, generate) -> None:
        self.ready.append(PreparedRequest(item, [PromptInput(ids) for ids in generate.ids]))

    def take(self, seconds):
        return self.ready.pop(0) if self.ready else None

    def cancel(self, item) -> None:
        self.cancelled.append(item)

    def close(self) -> None:
        self.is_closed = True


class Served:
    """A runner of the stand-in, and what it sent."""

    def __init__(self, slots=4, blocks=64, keeps=False, believed=0, decode=said, **sampling) -> None:
        self.parts, self.ends, self.reports = {}, {}, []
        budget = KeyValueBudget(believed or blocks, 128)  # the library may have less than is believed
        limits = GenerationLimits("m", 512, 1000, 8, budget)
        reading = TokenReading(decode, decode, str, frozenset(), frozenset({END}))
        self.reader = Reader()
        pipeline = GenaiPipeline(openvino_stand_in.library(), PipelinePlan("here", {}, blocks, 64, keeps))
        settings = GenaiSettings(slots, budget, keeps, sampling)
        self.runner = GenaiRunner(pipeline, self.reader, reading, limits, settings, self)
        self.count = 0

    @property
    def pipeline(self) -> ContinuousBatchingPipeline:
        return ContinuousBatchingPipeline.opened[-1]

    def offer(self, item, part) -> None:
        self.parts.setdefault(item, []).append(part)

    def end(self, item, part) -> None:
        assert item not in self.ends, "an item ends once"
        self.ends[item] = part

    def wake(self) -> None: ...

    def add(self, *ids, streams=False, prompts=(), **sampling) -> int:
        self.count += 1
        told = {"max_tokens": 3, **sampling}
        generate = Generate(ids=prompts or (ids,), sampling=Sampling(**told), streams=streams)
        self.runner.add(self.count, Infer("m", generate))
        return self.count

    def step(self):
        report = self.runner.step()
        if report is not None:
            self.reports.append(report)
        return report

    def run(self) -> None:
        for _ in range(2000):
            state = self.runner.debug_state()
            if self.step() is None and not state["requests"] and not state["unread"]:
                return
        raise AssertionError("it does not end")

    def texts(self, item) -> list[str]:
        return [choice.text for choice in joined([*self.parts.get(item, []), self.ends[item]]).choices]


def test_many_requests_share_the_slots_and_each_has_its_own_answer():
    served = Served(slots=3)
    items = [
        served.add(100 * number, max_tokens=2 + number % 4, streams=number % 2 == 0) for number in range(1, 9)
    ]
    served.run()
    for number, item in enumerate(items, 1):
        first = 100 * number + 1
        assert served.texts(item) == [said(range(first, first + 2 + number % 4))]
        assert (item in served.parts) == (number % 2 == 0)
    assert served.pipeline.most == 3
    assert sum(report.new_tokens for report in served.reports) == sum(
        2 + number % 4 for number in range(1, 9)
    )
    assert sum(report.prompt_tokens for report in served.reports) == 8
    assert served.runner.debug_state() == {"unread": 0, "requests": 0, "free": 3}
    assert all(report.share <= 1 for report in served.reports)


def test_its_own_end_and_stop_texts_end_a_sequence_and_the_library_computes_no_more():
    served = Served()
    ended, stopped = served.add(96, max_tokens=50), served.add(20, max_tokens=50, stop=("<23>",))
    ignores = served.add(96, max_tokens=5, ignores_eos=True)
    served.run()
    assert served.texts(ended) == [said([97, 98])]
    assert served.ends[ended].choices[0].finish is Finish.EOS
    assert served.texts(stopped) == [said([21, 22])]
    assert served.texts(ignores) == [said(range(97, 102))]
    assert [len(one.ids) for one in served.pipeline.begun] == [4, 4, 6], "nothing was computed behind the end"
    assert not served.pipeline.held


def test_where_memory_is_short_the_later_ones_wait():
    served = Served(slots=8, blocks=4)
    items = [served.add(*range(200, 240), max_tokens=30) for _ in range(6)]  # 3 blocks each, in the end
    served.run()
    assert all(served.texts(item) == [said(range(240, 270))] for item in items)
    assert served.pipeline.most == 1


def test_a_sequence_without_memory_in_the_library_begins_again():
    served = Served(slots=2, blocks=4, believed=64)
    items = [served.add(*range(200, 290), max_tokens=4), served.add(*range(300, 390), max_tokens=4)]
    served.run()
    assert [served.texts(item) for item in items] == [[said(range(290, 294))], [said(range(390, 394))]]
    assert len(served.pipeline.begun) > 2


def test_a_sequence_that_never_has_memory_is_refused():
    served = Served(slots=2, blocks=2, believed=64)
    item, other = served.add(*range(200, 290), max_tokens=4), served.add(5)
    served.run()
    assert served.ends[item].code is Code.MODEL_FAILED
    assert "kv_bytes" in served.ends[item].message
    assert served.texts(other) == [said([6, 7, 8])]


def test_choices_begin_when_their_prompt_was_read_where_it_is_kept():
    served = Served(slots=4, keeps=True)
    item = served.add(*range(300, 340), choices=3)
    served.step()
    assert len(served.pipeline.begun) == 1
    served.run()
    assert served.texts(item) == [said([340, 341, 342])] * 3
    assert sum(report.prompt_tokens for report in served.reports) == 40
    assert served.ends[item].usage.new_tokens == 9


def test_the_best_of_several_are_answered_and_the_others_are_wasted():
    served = Served()
    item = served.add(7, best_of=3)
    served.run()
    served.step()
    assert served.texts(item) == [said([8, 9, 10])]
    assert sum(report.wasted_tokens for report in served.reports) == 6


def test_who_leaves_gives_its_memory_back_and_neighbours_go_on():
    served = Served(slots=2)
    gone, stays, waits = served.add(5, max_tokens=100), served.add(50, max_tokens=9), served.add(70)
    served.step()
    served.step()
    assert served.runner.abort(gone) == 3
    assert served.runner.abort(gone) == 0
    served.run()
    assert gone not in served.ends
    assert served.texts(stays) == [said(range(51, 60))]
    assert served.texts(waits) == [said([71, 72, 73])]
    alone = served.add(5, max_tokens=100)
    served.step()
    served.runner.abort(alone)
    served.step()
    assert not served.pipeline.held, "its memory is free, though nothing else is computed"
    unread = served.add(5)
    served.runner.abort(unread)
    assert served.reader.cancelled == [unread]


def test_after_a_step_that_failed_the_model_is_opened_anew():
    served = Served()
    served.add(5, max_tokens=9)
    served.step()
    served.add(13)
    with pytest.raises(ServeError, match=r"'m'.*OpenVINO GenAI failed in a step: the thirteenth") as caught:
        served.step()
    assert caught.value.code is Code.MODEL_FAILED
    assert "core.cpp" not in caught.value.message
    served.runner.reset()
    assert len(ContinuousBatchingPipeline.opened) == 2
    item = served.add(30)
    served.run()
    assert served.texts(item) == [said([31, 32, 33])]


def test_a_token_that_cannot_be_read_fails_its_request_alone():
    def decode(tokens):
        if 666 in tokens:
            raise ValueError("no such token")
        return said(tokens)

    served = Served(decode=decode)
    bad, good = served.add(665), served.add(5)
    served.run()
    assert served.ends[bad].code is Code.MODEL_FAILED
    assert "token 666" in served.ends[bad].message
    assert served.texts(good) == [said([6, 7, 8])]


def test_what_only_is_read_computes_nothing():
    served = Served()
    item = served.add(1, 2, 3, max_tokens=0)
    served.run()
    assert served.ends[item].usage.prompt_tokens == 3
    assert not served.pipeline.begun


def test_the_models_own_settings_hold_where_a_request_says_nothing():
    served = Served(top_k=7)
    served.add(5, samples=True)
    served.add(5, samples=True, top_k=3)
    served.run()
    assert [one.config.top_k for one in served.pipeline.begun] == [7, 3]


def test_it_closes_its_parts():
    served = Served()
    served.add(5)
    served.step()
    served.runner.close()
    assert served.reader.is_closed
    assert served.runner.debug_state() == {"unread": 0, "requests": 0, "free": 4}


@pytest.mark.parametrize("ids", [(), (-1,), (1.5,), ((1, 2),), ("a",)])
def test_ids_that_are_none_never_reach_the_library(ids):
    pipeline = GenaiPipeline(openvino_stand_in.library(), PipelinePlan("here", {}, 8, 64, False))
    with pytest.raises(ValueError, match="one row of whole numbers from 0"):
        pipeline.begin(ids, {})
    assert not ContinuousBatchingPipeline.opened[-1].begun
