"""A model of the engine `vllm` in a worker process, by a stand-in for vLLM: its death, its aborts, its faults."""

import asyncio
from dataclasses import replace

import pytest
from tests.harness.generating_workers import parts_of, serving
from tests.harness.language_models import spec, write
from tests.harness.vllm_models import stand_in, vllm_spec

from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Sampling, joined
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.spec import InstanceGroup, Isolation

__all__ = ["stand_in"]
pytest.importorskip("torch")
pytest.importorskip("transformers")
FAILS, DIES, WAITS = 761, 762, 764


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("llama"), "llama")
    group = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)
    return replace(vllm_spec(spec(folder)), groups=(group,), streams=True)


LEFT = ServeError(Code.CANCELLED, "The client has left.")


def infer():
    return Infer("m", asked(5, WAITS), wants=PayloadKind.GENERATE)


def asked(*ids, **fields):
    return Generate(ids=(ids,), sampling=Sampling(max_tokens=8), **fields)


def test_requests_are_answered_and_faults_are_their_own(stand_in, described):
    async def play(model):
        found = await asyncio.gather(
            *(parts_of(model, i, asked(5, 6, streams=bool(i % 2))) for i in range(10)),
            parts_of(model, 50, asked(5, FAILS)),
            return_exceptions=True,
        )
        assert isinstance(found[-1], ServeError)
        assert "a kernel of this request failed" in found[-1].message
        texts = {joined(parts).choices[0].text for parts in found[:-1]}
        assert len(texts) == 1
        assert any(len(parts) > 1 for parts in found[:-1])

    serving(described, play)


def test_the_death_of_the_engine_answers_all_and_another_takes_its_place(stand_in, described):
    async def play(model):
        running = [asyncio.ensure_future(parts_of(model, i, asked(5, WAITS))) for i in range(5)]
        await asyncio.sleep(0.3)
        found = await asyncio.gather(*running, parts_of(model, 50, asked(5, DIES)), return_exceptions=True)
        assert all(isinstance(one, ServeError) for one in found), found
        async with asyncio.timeout(60):
            while True:
                try:
                    parts = await parts_of(model, 60, asked(5, 6))
                    break
                except ServeError:
                    await asyncio.sleep(0.1)
        assert joined(parts).usage.new_tokens == 8

    serving(described, play)


def test_who_leaves_is_forgotten_by_vllm(stand_in, described):
    async def play(model):
        operations = [model.submit(i, infer(), lambda part: None) for i in range(8)]
        await asyncio.sleep(0.2)
        for operation in operations:
            operation.cancel(LEFT)
        parts = await parts_of(model, 60, asked(5, 6))  # all slots were taken
        assert joined(parts).usage.new_tokens == 8

    serving(described, play)
