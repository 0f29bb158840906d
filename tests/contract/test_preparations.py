"""What every preparation of an engine owes the core, and what environments owe who shares them: with real processes."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.python_packages import PYTHON, bundled, hanging_sdist, model, own_packages
from tests.harness.server_process import until
from tests.harness.virtual_models import make_spec

from trivium.catalogue import CATALOGUE
from trivium.guard import ServerGuard
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import NO_GUARD, SupportsPreparation
from trivium.types.running import Placement
from trivium.types.spec import Handler, Isolation, OwnEnvironment
from trivium.types.trust import FILES

OFFLINE = {"PIP_NO_INDEX": "1"}
ASK = f"import json, sys, numpy, {PYTHON}; print(json.dumps([{PYTHON}.STAMP, {PYTHON}.__file__, numpy.__file__]))"

preparing = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(engine, id=name)
        for name, engine in CATALOGUE.engines.items()
        if isinstance(engine, SupportsPreparation)
    ],
)


def spec_of(folder: Path, **wish):
    """A spec of a trusted folder: some engines prepare nothing for any other."""
    own = OwnEnvironment("requirements.txt", is_offline=True, **wish)
    handler = Handler(directory=folder, environment=OFFLINE, own=own)
    return replace(make_spec(), root=folder, handler=handler, parameters={FILES: "true"})


def made(engine, folder, scratch, guard=NO_GUARD, **wish):
    return engine.preparation(spec_of(folder, **wish), scratch, guard)


def asked(engine, prepared):
    """What a process of the prepared model sees: version, its file, that of a package from below."""
    command = engine.program(prepared.spec, Placement("m_0", Isolation.PROCESS))
    said = subprocess.run(
        [command.command[0], "-c", ASK],
        env=dict(command.environment),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return json.loads(said.stdout)


@preparing
def test_a_model_that_asks_for_nothing_is_not_prepared(engine, tmp_path):
    trusted = replace(make_spec(), parameters={FILES: "true"})
    assert engine.preparation(replace(trusted, handler=Handler()), tmp_path, NO_GUARD) is None
    assert engine.preparation(trusted, tmp_path, NO_GUARD) is None


@preparing
def test_it_runs_is_undone_and_can_be_undone_again(engine, tmp_path):
    before, scratch = own_packages(), tmp_path / "scratch"
    folder = bundled(tmp_path, "m", "1.0")
    preparation = made(engine, folder, scratch)
    prepared = preparation.run()
    assert prepared.warning == ""
    stamp, file, below = asked(engine, prepared)
    assert stamp == "1.0"
    assert Path(file).is_relative_to(scratch)
    assert not Path(below).is_relative_to(scratch)
    preparation.undo()
    preparation.undo()
    assert list(scratch.iterdir()) == []
    assert own_packages() == before


@preparing
def test_one_that_was_undone_before_it_ran_raises_or_prepares_nothing(engine, tmp_path):
    preparation = made(engine, bundled(tmp_path, "m", "1.0"), tmp_path / "scratch", is_private=True)
    preparation.undo()
    with pytest.raises(ServeError) as caught:
        preparation.run()
    assert caught.value.code is Code.LOAD_FAILED
    assert not (tmp_path / "scratch").exists()


@preparing
def test_one_that_is_stopped_ends_soon_with_all_that_it_has_started(engine, tmp_path):
    guard = ServerGuard(tmp_path)
    folder = model(tmp_path, "hangs", "./hanging-1.tar.gz\n")
    hanging_sdist(tmp_path / "made", "hanging").rename(folder / "hanging-1.tar.gz")
    preparation = made(engine, folder, guard.scratch, guard)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(preparation.run)
        until(lambda: list(guard.scratch.glob("*/temporary/*")) != [], lambda: "pip did not begin")
        preparation.stop()
        prepared = running.result(60)
    assert "could not be installed: pip was stopped after" in prepared.warning
    preparation.undo()
    assert list(guard.scratch.iterdir()) == []
    guard.close()


@preparing
def test_equal_models_share_one_environment_until_the_last_has_gone(engine, tmp_path):
    scratch = tmp_path / "scratch"
    preparations = [made(engine, bundled(tmp_path, name, "2.0"), scratch) for name in ("a", "b", "c")]
    with ThreadPoolExecutor(3) as threads:
        prepared = list(threads.map(lambda one: one.run(), preparations))
    assert len({one.spec.handler.python for one in prepared}) == 1
    assert len(list(scratch.iterdir())) == 1
    for preparation in preparations[:2]:
        preparation.undo()
    assert asked(engine, prepared[2])[0] == "2.0"
    preparations[2].undo()
    assert list(scratch.iterdir()) == []


@preparing
def test_packages_that_are_nowhere_are_a_warning_and_the_next_load_tries_again(engine, tmp_path):
    folder, scratch = model(tmp_path, "m", "tiny-stamp==9.9\n"), tmp_path / "scratch"
    first = made(engine, folder, scratch)
    warning = first.run().warning
    assert "No matching distribution found for tiny-stamp==9.9" in warning
    assert str(folder / "requirements.txt") in warning
    second = made(engine, folder, scratch)
    assert second.run().spec.handler.python != ""
    assert len(list(scratch.iterdir())) == 2
    first.undo()
    second.undo()
    assert list(scratch.iterdir()) == []


@preparing
@pytest.mark.parametrize("is_private", [False, True])
def test_where_none_can_be_made_a_model_runs_without_unless_it_asks_for_one(engine, tmp_path, is_private):
    (tmp_path / "file").touch()
    preparation = made(
        engine, bundled(tmp_path, "m", "1.0"), tmp_path / "file" / "below", is_private=is_private
    )
    if is_private:
        with pytest.raises(ServeError, match="No environment of its own could be made for model 'm'"):
            preparation.run()
    else:
        prepared = preparation.run()
        assert "No environment of its own could be made" in prepared.warning
        assert prepared.spec.handler.python == ""
    preparation.undo()


@preparing
def test_what_a_server_that_died_has_left_is_swept(engine, tmp_path):
    left = tmp_path / "scratch" / "trivium-scratch-dead" / "environment"
    left.mkdir(parents=True)
    preparation = made(engine, bundled(tmp_path, "m", "1.0"), None, parent=tmp_path / "scratch")
    preparation.run()
    assert not left.exists()
    preparation.undo()


def test_an_interpreter_that_is_a_virtual_environment_itself_is_seen_from_above(tmp_path):
    """`--system-site-packages` would show the packages of the base interpreter instead."""
    engine = CATALOGUE.engines["python-djl"]
    lower = made(engine, bundled(tmp_path, "lower", "1.0"), tmp_path / "scratch")
    python = lower.run().spec.handler.python
    folder = model(tmp_path, "upper", "")
    handler = Handler(python, directory=folder, own=OwnEnvironment(is_private=True))
    upper = engine.preparation(
        replace(make_spec(), root=folder, handler=handler), tmp_path / "scratch", NO_GUARD
    )
    prepared = upper.run()
    assert prepared.spec.handler.python != python
    assert asked(engine, prepared)[0] == "1.0"
    upper.undo()
    lower.undo()


def test_an_interpreter_without_pip_gets_one_in_the_environment_alone(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=120
    )
    engine, folder = CATALOGUE.engines["python-djl"], bundled(tmp_path, "m", "1.0")
    spec = spec_of(folder)
    handler = replace(spec.handler, python=str(tmp_path / "bare" / "bin" / "python"))
    preparation = engine.preparation(replace(spec, handler=handler), tmp_path / "scratch", NO_GUARD)
    assert preparation.run().warning == ""
    assert len(list((tmp_path / "scratch").glob("*/environment/lib/*/site-packages/tiny_stamp.py"))) == 1
    assert list((tmp_path / "bare").glob("lib/*/site-packages/*")) == []
    preparation.undo()
