"""What an instance that works in steps owes to each of its items, in a real worker process."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.clock import LoopClock
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.workers import host
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, joined
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.spec import InstanceGroup, Isolation, Limits
from trivium_worker.wire.frames import WINDOW

COMMAND = (sys.executable, str(Path(__file__).parents[1] / "fixtures" / "stepping_worker.py"))
GROUP = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)
LEFT = ServeError(Code.CANCELLED, "by the test")


class StepStage:
    """A model whose instance steps, and what its items got."""

    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        self.parts, self.items = {}, {}

    def submit(self, prompt, streams=False, **fields):
        number = len(self.parts) + 1
        parts = self.parts[number] = []
        payload = Generate(prompts=(prompt,), streams=streams)
        infer = Infer("m", payload, wants=PayloadKind.GENERATE, **fields)
        self.items[number] = self.model.submit(number, infer, parts.append)
        return self.items[number]

    async def until(self, claim):
        async with asyncio.timeout(60):
            while not claim():
                await asyncio.sleep(0.001)

    async def settle(self):
        (self.folder / "shut").unlink(missing_ok=True)
        async with asyncio.timeout(60):
            await self.model.idle()

    def steps(self):
        path = self.folder / "steps"
        return path.read_text().splitlines() if path.exists() else []

    def code(self, number):
        error = self.parts[number][-1].error
        return error and error.code

    def text(self, number):
        return "".join(choice.text for part in self.parts[number] for choice in part.payload.choices)

    def generation(self):
        return self.model.report().generation

    def states(self):
        return list(self.model.debug_state().instances.values())


@contextlib.asynccontextmanager
async def staged(folder, threads, parameters, **fields):
    groups = (GROUP,)
    spec = make_spec(inputs=(), outputs=(), groups=groups, parameters=parameters, **fields)
    spec = replace(spec, root=folder)
    arena, around = Arena("m"), WorkerServices(None, lambda model, step: None, None)
    launcher = ProcessLauncher(spec, threads, around, arena)

    async def launch(placement, port):
        return await launcher.launch(host.program(COMMAND, os.environ, spec, placement), placement, port)

    loop = asyncio.get_running_loop()
    context = ModelContext(frozenset({PayloadKind.GENERATE}), arena)
    model = ServedModel(
        spec, Isolation.PROCESS, launch, Mailbox(loop.call_soon_threadsafe), LoopClock(loop), context
    )
    try:
        await model.open()
        yield StepStage(folder, model)
    finally:
        await model.close()
        await around.close(10)
    assert arena.lent == 0


def played(play, slots=4, seconds=0.0, **fields):
    async def main(folder, threads):
        parameters = {"slots": str(slots), "seconds": str(seconds)}
        async with staged(folder, threads, parameters, **fields) as stage:
            await play(stage)
            await stage.settle()
            await stage.until(lambda: all(each.is_at_rest for each in stage.states()))
            for parts in stage.parts.values():
                assert [part.final for part in parts] == [False] * (len(parts) - 1) + [True]

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as threads:
        asyncio.run(main(Path(folder), threads))


def words(count, word="w"):
    return " ".join(f"{word}{number}" for number in range(count))


# -- steps, slots and credits ----------------------------------------------------------------------------------


def test_items_join_and_leave_between_steps_and_steps_are_the_executions():
    async def play(stage):
        prompts = [words(1 + number % 9, f"p{number}-") for number in range(60)]
        for number, prompt in enumerate(prompts):
            stage.submit(prompt, streams=number % 2 == 0)
            if number % 7 == 0:
                await asyncio.sleep(0.002)
        await stage.settle()
        for number, prompt in enumerate(prompts, 1):
            assert stage.code(number) is None
            assert stage.text(number).strip() == prompt
            assert stage.parts[number][-1].payload.choices[0].finish is Finish.EOS
        tokens = sum(len(prompt.split()) for prompt in prompts)
        await stage.until(lambda: stage.generation().new_tokens == tokens)
        report, steps = stage.model.report(), stage.steps()
        assert report.executions == len(steps) == stage.generation().steps.count
        assert sum(len(step.split("|")) for step in steps) == tokens
        assert max(len(step.split("|")) for step in steps) == 4
        assert (report.success.count, report.queue.count, report.generation.prompt_tokens) == (60, 60, tokens)
        assert report.generation.wasted_tokens == 0
        assert report.generation.first_token.count == 60
        assert report.generation.between_tokens.count == tokens - 60
        assert sum(count for _, count in report.generation.first_token_buckets) == 60
        assert (stage.model.debug_state().lead, stage.model.debug_state().ahead) == (0, 0)

    played(play)


def test_a_slot_is_given_back_with_the_final_part_and_no_more_items_are_handed_over():
    async def play(stage):
        (stage.folder / "shut").touch()
        for _ in range(3):
            stage.submit("gate b")
        stage.submit("last")
        await stage.until(lambda: stage.steps())
        await asyncio.sleep(0.05)
        (state,) = stage.states()
        assert (state.in_flight, state.credits, len(state.held)) == (2, 0, 2)
        assert stage.model.debug_state().queued == 4 - 2
        await stage.settle()
        assert [stage.code(number) for number in (1, 2, 3, 4)] == [None] * 4

    played(play, slots=2)


def test_a_freed_slot_is_taken_while_others_go_on():
    async def play(stage):
        stage.submit(words(200))
        await stage.until(lambda: len(stage.steps()) > 5)
        stage.submit("short one")
        await stage.until(lambda: stage.parts[2])
        assert not stage.parts[1]

    played(play, slots=2, seconds=0.002)


# -- parts ----------------------------------------------------------------------------------------------------


def test_an_answer_that_is_not_streamed_comes_once_with_the_times_of_its_tokens():
    async def play(stage):
        stage.submit(words(20))
        await stage.settle()
        (part,) = stage.parts[1]
        usage = part.payload.usage
        assert (usage.prompt_tokens, usage.new_tokens) == (20, 20)
        assert 0 < usage.last_at - usage.first_at < 60

    played(play, seconds=0.001)


def test_a_reader_that_is_full_holds_nobody_up_and_gets_everything_joined():
    async def play(stage):
        slow = stage.submit(words(300, "s"), streams=True)
        await stage.until(lambda: len(stage.parts[1]) > 2)
        slow.hold()
        stage.submit(words(300, "f"), streams=True)
        await stage.until(lambda: stage.parts[2] and stage.parts[2][-1].final)
        assert stage.text(2).strip() == words(300, "f"), "it was not held up, however its parts came"
        got = len(stage.parts[1])
        slow.resume()
        await stage.settle()
        assert stage.text(1).strip() == words(300, "s")
        ids = joined([part.payload for part in stage.parts[1]]).choices[0].ids
        assert ids == tuple(range(1, 301))
        assert len(stage.parts[1]) <= got + WINDOW + 2, "what had no room in the worker's window comes joined"

    played(play, seconds=0.001)


# -- ends ------------------------------------------------------------------------------------------------------


def test_a_request_that_is_refused_or_goes_wrong_ends_alone():
    async def play(stage):
        stage.submit("a b c d")
        stage.submit("refuse me")
        stage.submit("well and wrong at last")
        stage.submit("e f")
        await stage.settle()
        assert [stage.code(n) for n in range(1, 5)] == [None, Code.INVALID, Code.MODEL_FAILED, None]
        assert not stage.model.deaths

    played(play)


def test_a_cancelled_item_is_in_no_further_step_and_its_tokens_are_wasted():
    async def play(stage):
        item = stage.submit(words(10_000), streams=True)
        stage.submit(words(10_000, "o"))
        await stage.until(lambda: len(stage.parts[1]) > 3)
        item.cancel(LEFT)
        assert stage.code(1) is Code.CANCELLED
        await stage.until(lambda: stage.generation().wasted_tokens)
        steps = [step.split("|") for step in stage.steps()]
        of_it = sum("1:" in "".join(row[:2]) for step in steps for row in step if row.startswith("1:"))
        assert stage.generation().wasted_tokens == of_it
        before = len(stage.steps())
        await stage.until(lambda: len(stage.steps()) > before + 5)
        assert not any(row.startswith("1:") for step in stage.steps()[before:] for row in step.split("|"))
        stage.items[2].cancel(LEFT)

    played(play, slots=2, seconds=0.002)


def test_tokens_of_the_only_item_are_counted_when_it_is_cancelled():
    async def play(stage):
        item = stage.submit(words(10_000))
        await stage.until(lambda: len(stage.steps()) > 3)
        item.cancel(LEFT)
        await stage.until(lambda: stage.generation().wasted_tokens > 2)
        assert stage.generation().wasted_tokens == stage.generation().new_tokens

    played(play, seconds=0.002)


@pytest.mark.parametrize(("word", "name"), [("raise", "RuntimeError"), ("panic", "Panic")])
def test_a_step_that_raises_ends_what_was_in_it_and_the_next_are_served(word, name):
    async def play(stage):
        stage.submit("a b c d e f")
        stage.submit(f"a {word}")
        await stage.settle()
        assert [stage.code(1), stage.code(2)] == [Code.MODEL_FAILED] * 2
        assert name in stage.parts[1][-1].error.message
        stage.submit("next")
        await stage.settle()
        assert stage.code(3) is None
        assert not stage.model.deaths

    played(play)


def test_the_third_step_in_a_row_that_raises_ends_the_worker():
    async def play(stage):
        for _ in range(3):
            stage.submit("raise")
            await stage.settle()
        assert [stage.code(1), stage.code(2), stage.code(3)] == [Code.MODEL_FAILED] * 2 + [Code.WORKER_DIED]
        (death,) = stage.model.deaths
        assert "as told" in death
        stage.submit("the successor answers")
        await stage.settle()
        assert stage.code(4) is None

    played(play)


def test_a_killed_worker_fails_what_had_begun_and_its_successor_answers_the_rest():
    async def play(stage):
        (stage.folder / "shut").touch()
        for _ in range(5):
            stage.submit("gate b")
        await stage.until(lambda: stage.steps())
        (state,) = stage.states()
        os.kill(state.instance.pid, signal.SIGKILL)
        await stage.until(lambda: stage.parts[1] and stage.parts[2])
        await stage.settle()
        codes = [stage.code(number) for number in range(1, 6)]
        assert codes == [Code.WORKER_DIED] * 2 + [None] * 3

    played(play, slots=2)


# -- time ------------------------------------------------------------------------------------------------------


def test_the_run_deadline_counts_from_the_last_step():
    async def play(stage):
        stage.submit(words(40))
        await stage.settle()
        assert stage.code(1) is None

    played(play, seconds=0.05, limits=Limits(run_deadline=1.0))


def test_a_step_that_hangs_is_ended_by_the_run_deadline():
    async def play(stage):
        stage.submit("a hang")
        await stage.settle()
        assert stage.code(1) in (Code.EXPIRED, Code.WORKER_DIED)
        stage.submit("next")
        await stage.settle()
        assert stage.code(2) is None

    played(play, limits=Limits(run_deadline=0.3))


@pytest.mark.parametrize("streams", [False, True])
def test_stop_lets_what_is_in_work_end(streams):
    async def play(stage):
        stage.submit(words(30), streams)
        await stage.until(lambda: stage.steps())

    played(play, seconds=0.002)
