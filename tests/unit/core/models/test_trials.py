"""Which contents have passed a trial, and so may be opened by the server; nothing is run here."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models.trials import Trials, content_of
from trivium.types.errors import Code, ServeError


class Engine:
    """One that opens files."""

    has_facts = True


class Trier:
    """Notes what it is to try, and may fail, or do something meanwhile."""

    def __init__(self, *ends):
        self.tried, self.ends = [], list(ends)
        self.hangs = None  # set once the first trial does

    async def __call__(self, spec):
        self.tried.append(spec.name)
        await asyncio.sleep(0)
        if self.hangs is not None and len(self.tried) == 1:
            self.hangs.set()
            await asyncio.Event().wait()
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, Exception):
            raise end
        if end:
            end()


def model(folder: Path, content: bytes = b"one"):
    (folder / "m.onnx").write_bytes(content)
    return replace(make_spec(), root=folder, entry="m.onnx", engine="onnx")


def run(trier, play):
    """Play a coroutine function with trials by this trier."""

    async def played():
        with ThreadPoolExecutor(1) as executor:
            return await play(Trials(trier, executor))

    return asyncio.run(played())


def test_a_content_is_tried_once_and_a_replaced_file_anew(tmp_path):
    spec, trier = model(tmp_path), Trier()

    async def play(trials):
        for _ in range(3):
            await trials.passed(Engine(), spec)
        model(tmp_path, b"two")
        await trials.passed(Engine(), spec)
        model(tmp_path, b"one")
        await trials.passed(Engine(), spec)

    run(trier, play)
    assert len(trier.tried) == 2


def test_instances_that_open_at_once_wait_for_one_trial(tmp_path):
    spec, trier = model(tmp_path), Trier()

    async def play(trials):
        await asyncio.gather(*(trials.passed(Engine(), spec) for _ in range(5)))

    run(trier, play)
    assert len(trier.tried) == 1


def test_what_fails_is_no_passed_content(tmp_path):
    spec, trier = model(tmp_path), Trier(ServeError(Code.LOAD_FAILED, "it died"))

    async def play(trials):
        with pytest.raises(ServeError, match="it died"):
            await trials.passed(Engine(), spec)
        await trials.passed(Engine(), spec)

    run(trier, play)
    assert len(trier.tried) == 2


def test_a_file_that_changes_while_it_is_tried_is_refused(tmp_path):
    spec, trier = model(tmp_path), Trier(lambda: model(tmp_path, b"two"))

    async def play(trials):
        with pytest.raises(ServeError, match="changed while model 'm' was loaded"):
            await trials.passed(Engine(), spec)

    run(trier, play)


def test_where_one_gives_up_the_next_tries(tmp_path):
    spec, trier = model(tmp_path), Trier()

    async def play(trials):
        trier.hangs = asyncio.Event()
        first, second = (asyncio.ensure_future(trials.passed(Engine(), spec)) for _ in range(2))
        await trier.hangs.wait()
        first.cancel()
        await second
        assert first.cancelled()

    run(trier, play)
    assert len(trier.tried) == 2


def test_without_a_file_there_is_nothing_to_try(tmp_path):
    spec, trier = replace(make_spec(), root=tmp_path, entry="none.onnx"), Trier()

    async def play(trials):
        await trials.passed(Engine(), spec)

    run(trier, play)
    assert trier.tried == []


def test_a_content_is_all_files_of_a_model_and_what_is_asked_of_them(tmp_path):
    spec = model(tmp_path)
    plain = content_of(spec)
    (tmp_path / "mistral.gguf").write_bytes(b"another model's")
    assert content_of(spec) == plain
    assert content_of(replace(spec, parameters={"graph_level": "2"})) != plain
    (tmp_path / "m.onnx.data").write_bytes(b"weights")
    assert content_of(spec) != plain
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "v").write_bytes(b"1")
    inside = replace(spec, entry="saved")
    before = content_of(inside)
    (folder / "variables" / "v").write_bytes(b"2")
    assert content_of(inside) != before
