"""A language model in a worker process: many requests at once, streamed and not, and what is refused."""

import asyncio
from dataclasses import replace

import pytest
from tests.harness.generating_workers import parts_of, serving
from tests.harness.language_models import Steps, spec, text, write

from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Generated, Sampling, joined
from trivium.types.spec import InstanceGroup, Isolation

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_requests_are_answered_by_a_worker_as_they_are_here(tmp_path):
    folder = write(tmp_path, "llama")
    group = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)
    described = replace(spec(folder, slots=4), groups=(group,), streams=True)
    told = [
        Generate(prompts=(text(i, 50 + 20 * i),), sampling=Sampling(max_tokens=5 + i), streams=bool(i % 2))
        for i in range(12)
    ]
    with Steps(folder, slots=4) as steps:
        expected = steps.answers({"prompts": one.prompts, "sampling": one.sampling} for one in told)

    async def play(model):
        found = await asyncio.gather(*(parts_of(model, number, one) for number, one in enumerate(told)))
        for one, parts, own in zip(told, found, expected, strict=True):
            assert all(isinstance(part, Generated) for part in parts)
            assert joined(parts).choices == own.choices
            assert (len(parts) > 1) == one.streams
            assert parts[-1].usage.new_tokens == own.usage.new_tokens
        with pytest.raises(ServeError, match="top_p") as caught:
            await parts_of(model, 100, Generate(prompts=("x",), sampling=Sampling(top_p=5.0)))
        assert caught.value.code is Code.INVALID
        with pytest.raises(ServeError, match="'prompt' has"):
            await parts_of(model, 101, Generate(prompts=("x " * 5000,)))

    serving(described, play)
