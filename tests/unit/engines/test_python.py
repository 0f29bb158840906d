"""What a worker of user code is started with: interpreter, folder, environment, setup."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

import trivium_worker
from trivium.engines.python import FunctionEngine, PythonEngine
from trivium.environments.worker_programs import KEEP_MEMORY
from trivium.machine.quiet_libraries import QUIET
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Engine, OpensRunner, WorkerEngine
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Batching, Device, Handler, Isolation, Origin, OwnEnvironment
from trivium.types.trust import FILES

ENVIRONMENT = {"PATH": os.defpath, "HOME": "/home/somebody"}
ENGINE = PythonEngine("djl", frozenset({PayloadKind.RAW}), sys.executable, ENVIRONMENT)
PLACEMENT = Placement("m_1", Isolation.PROCESS, Device.GPU, 3, 1)


def program(handler=None, engine=ENGINE, **fields):
    return engine.program(make_spec(handler=handler, **fields), PLACEMENT)


def refusal(call):
    with pytest.raises(ServeError) as caught:
        call()
    return caught.value


def test_it_is_an_engine_that_launches():
    engine: Engine = ENGINE
    assert isinstance(engine, WorkerEngine)
    assert not isinstance(engine, OpensRunner)
    assert (engine.name, engine.isolation, engine.has_facts) == ("python-djl", (Isolation.PROCESS,), False)
    facts = engine.facts(make_spec())
    assert [tensor.name for tensor in facts.inputs] == ["x"]


def test_without_a_word_it_is_the_servers_own_interpreter():
    made = program()
    assert made.command == (sys.executable, str(Path(trivium_worker.__file__).parent))
    assert made.directory == Path.cwd()
    assert made.environment == {**KEEP_MEMORY, **QUIET, **ENVIRONMENT, "PYTHONUNBUFFERED": "1"}


def test_the_setup_says_all_that_a_worker_is_told(tmp_path):
    handler = Handler(
        function="go",
        path=(tmp_path / "lib", Path("relative")),
        directory=tmp_path,
        environment={"HOME": "/elsewhere", "OMP_NUM_THREADS": "1"},
        settings={"batch": {"size": 4}},
    )
    made = program(handler, parameters={"a": "1"}, batching=Batching(True, 8))
    assert made.directory == tmp_path
    assert made.environment["HOME"] == "/elsewhere"
    assert made.environment["OMP_NUM_THREADS"] == "1"
    assert json.loads(json.dumps(made.setup)) == {
        "dialect": "djl",
        "model": "m",
        "version": "1",
        "instance": "m_1",
        "device": "gpu",
        "device_id": 3,
        "root": "/nowhere",
        "entry": "",
        "function": "go",
        "max_rows": 8,
        "path": [str(tmp_path / "lib"), str(Path.cwd() / "relative")],
        "settings": {"batch": {"size": 4}},
        "parameters": {"a": "1"},
        "python": "as read",
    }


def executable(path):
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_another_interpreter_by_path_or_by_name(tmp_path):
    python = executable(tmp_path / "python9")
    assert program(Handler(python=str(python))).command[0] == str(python)
    named = Handler(python="python9", environment={"PATH": str(tmp_path)})
    assert program(named).command[0] == str(python)


@pytest.mark.parametrize("what", ["missing", "file", "folder", "name"])
def test_an_interpreter_that_is_not_there(tmp_path, what):
    python = {
        "missing": tmp_path / "nothing",
        "file": tmp_path / "file",
        "folder": tmp_path,
        "name": Path("no-such-python"),
    }[what]
    (tmp_path / "file").write_text("")
    origin = {"handler.python": Origin("serving.properties", "option.pythonExecutable", 3)}
    error = refusal(lambda: program(Handler(python=str(python)), origin=origin))
    assert error.code is Code.LOAD_FAILED
    assert (
        f"asks for the interpreter {python} (serving.properties:3 (option.pythonExecutable))" in error.message
    )
    assert "Python 3.10 or newer" in error.message


TRUSTING = FunctionEngine("mlflow", frozenset({PayloadKind.RAW}), sys.executable, ENVIRONMENT)
WORD = "--engine-parameters python-mlflow.trust_insecure_model_files=true"


@pytest.mark.parametrize("parameters", [{}, {FILES: "false"}])
def test_untrusted_folders_start_and_install_nothing(parameters):
    handler = Handler(own=OwnEnvironment("requirements.txt"))
    made = make_spec(handler=handler, parameters=parameters)
    (fault,) = TRUSTING.check(made)
    assert WORD in fault.hint
    for call in (
        lambda: TRUSTING.program(made, PLACEMENT),
        lambda: TRUSTING.preparation(made, None, None),
    ):
        error = refusal(call)
        assert error.code is Code.LOAD_FAILED
        assert WORD in error.message


def test_a_trusted_folder_starts_and_a_word_that_means_nothing_is_named():
    made = make_spec(handler=Handler(), parameters={FILES: "true", "pyton": "x"})
    assert TRUSTING.program(made, PLACEMENT).setup["dialect"] == "mlflow"
    (note,) = TRUSTING.check(made)
    assert "Did you mean 'python'?" in note.found
