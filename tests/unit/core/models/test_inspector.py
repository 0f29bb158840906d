"""What the probe process is asked and answers, with real children; and how their deaths are told."""

import asyncio
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.models import inspector
from trivium.core.models.inspector import (
    MOST_NOISE,
    Inspected,
    InspectionRefused,
    ModelInspector,
    answer,
    framed,
    request,
)
from trivium.machine.memory import FreeMemory
from trivium.translators.engine import engine_finder
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Device, Handler, InstanceGroup, Limits, ModelFacts, ModelSpec, TensorSpec

FACTS = ModelFacts(
    (TensorSpec("x", DataType.FP16, (-1, 2)), TensorSpec("t", DataType.BYTES, (), labels=("a", "b"))),
    (TensorSpec("y", DataType.BF16, (3,), optional=True),),
    batchable=True,
    notes=("a note",),
    details={"age": ("9 years", "its label")},
)


class Engine:
    """Tells, or raises, what it is given."""

    def __init__(self, says):
        self.says, self.asked = says, None

    def facts(self, spec):
        self.asked = spec
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def asked(says, engine="e"):
    spec = ModelSpec("m", "3", Path("/root"), engine, "file.bin", parameters={"k": "v"})
    asking = Engine(says)
    reply = answer(request(spec), engine_finder({"e": asking}, {}))
    return asking.asked, msgspec.json.decode(reply, type=Inspected | InspectionRefused)


def test_facts_survive_the_way_and_the_engine_sees_the_spec():
    spec, said = asked(FACTS)
    assert said.facts == FACTS
    assert (spec.name, spec.version, str(spec.root), spec.entry, spec.engine) == (
        "m",
        "3",
        "/root",
        "file.bin",
        "e",
    )
    assert spec.parameters == {"k": "v"}


class Telling(Engine):
    """Tells what computes a model, or refuses to."""

    def compute(self, spec, placement):
        if placement.device is Device.GPU:
            raise ServeError(Code.LOAD_FAILED, "no such GPU")
        return f"{placement.device.value} {placement.device_id} by {placement.name}"


def test_what_computes_a_model_is_told_for_each_kind_of_device():
    groups = (
        InstanceGroup("a", 1, 1),
        InstanceGroup("b", 1, 1),
        InstanceGroup("c", 1, 1, device=Device.GPU, device_ids=(2, 1)),
    )
    for kind, expected in (
        (Engine, ()),
        (Telling, ("compute: cannot be told: no such GPU", "cpu 0 by m_check")),
    ):
        reply = answer(
            request(make_spec(groups=groups), computes=True), engine_finder({"identity": kind(None)}, {})
        )
        assert sorted(msgspec.json.decode(reply, type=Inspected).facts.remarks) == sorted(expected)


@pytest.mark.parametrize(
    ("says", "engine", "code", "message"),
    [
        (ServeError(Code.UNSUPPORTED, "pip install it"), "e", Code.UNSUPPORTED, "pip install it"),
        (ValueError("odd"), "e", Code.LOAD_FAILED, "ValueError: odd"),
        (
            FACTS,
            "torch",
            Code.UNSUPPORTED,
            "Model 'm' wants engine 'torch' (as read); this server has: e. Convert it to a form that one of them "
            "runs, or write it as a handler in Python.",
        ),
    ],
)
def test_a_refusal_survives_the_way(says, engine, code, message):
    _, said = asked(says, engine)
    assert (said.code, said.message) == (code, message)


async def asked_in_turn(script, specs):
    """What a probe that is this Python script makes of specs, one after the other: facts, or errors."""
    inspector = ModelInspector((sys.executable, "-S", "-c", script))
    said = []
    try:
        for spec in specs:
            try:
                said.append(await inspector.facts(spec))
            except ServeError as error:
                said.append(error)
    finally:
        await inspector.close()
    return said


def ask(script, deadline=60.0):
    """What a probe that is this Python script makes of a spec."""
    spec = make_spec(limits=Limits(startup_deadline=deadline), parameters={"k": "v"})
    (said,) = asyncio.run(asked_in_turn(script, [spec]))
    if isinstance(said, ServeError):
        raise said
    return said


def refusal(script, deadline=60.0):
    with pytest.raises(ServeError) as caught:
        ask(script, deadline)
    return caught.value


REPLY = msgspec.json.encode(Inspected(FACTS)).decode()
FRAMES = f"""
import json, os, struct, sys, time
def question():
    head = sys.stdin.buffer.read(8)
    if not head:
        sys.exit()
    return json.loads(sys.stdin.buffer.read(struct.unpack("<Q", head)[0]))
def tell(reply={REPLY!r}):
    sys.stdout.buffer.write(struct.pack("<Q", len(reply)) + reply.encode())
    sys.stdout.buffer.flush()
"""
TELLS = f"""{FRAMES}
asked = question()
assert asked["spec"]["root"] == "/nowhere" and asked["spec"]["parameters"] == {{"k": "v"}}
tell()
"""


def test_a_child_tells():
    assert ask(TELLS) == FACTS


def test_a_child_that_is_killed_is_told_with_its_last_words():
    error = refusal(
        "import os, sys; sys.stderr.write('bad\\nworse'); sys.stderr.flush(); os.kill(os.getpid(), 11)"
    )
    assert error.code is Code.LOAD_FAILED
    assert error.message == (
        "The process that reads /nowhere for model 'm' was killed by SIGSEGV; the file is damaged, or engine "
        "'identity' cannot read it. Its last words: bad / worse"
    )


def test_a_child_that_takes_too_long_is_killed():
    error = refusal("import time; time.sleep(60)", deadline=0.1)
    assert error.code is Code.LOAD_FAILED
    assert "told nothing in 0.1 s" in error.message


NUMBERED = f"""{FRAMES}
place, number = sys.argv[1], 0
with open(place, "a") as file:
    file.write("x")
while asked := question()["spec"]:
    number += 1
    print("noise of", asked["name"], file=sys.stderr, flush=True)
    if asked["name"] == "dies":
        os.kill(os.getpid(), 11)
    if asked["name"] == "hangs":
        time.sleep(600)
    if asked["name"] == "leaves":
        tell()
        os._exit(3)
    tell()
"""


def answers_of(names, place, **fields):
    """What becomes of models of these names, and how many probes were started for them."""
    specs = [replace(make_spec(**fields), name=name) for name in names]
    specs = [
        replace(spec, limits=Limits(startup_deadline=2.0 if spec.name == "hangs" else 60.0)) for spec in specs
    ]
    script = NUMBERED.replace("sys.argv[1]", repr(str(place)))
    return asyncio.run(asked_in_turn(script, specs)), len(place.read_text())


def test_one_probe_answers_for_many_models(tmp_path):
    answers, started = answers_of([f"m{at}" for at in range(20)], tmp_path / "started")
    assert answers == [FACTS] * 20
    assert started == 1


@pytest.mark.parametrize(
    ("bad", "said", "started"), [("dies", "was killed by SIGSEGV", 4), ("hangs", "told nothing in 2 s", 2)]
)
def test_what_ends_or_holds_a_probe_fails_alone(tmp_path, bad, said, started):
    names = [*(f"m{at}" for at in range(5)), bad, *(f"n{at}" for at in range(5))]
    answers, count = answers_of(names, tmp_path / "started")
    assert [one for one in answers if one is not answers[5]] == [FACTS] * 10
    assert said in answers[5].message
    assert f"for model '{bad}'" in answers[5].message
    assert count <= started


def test_of_a_probe_that_another_model_has_ended_nobody_else_is_blamed(tmp_path):
    answers, started = answers_of(["m", "leaves", "n"], tmp_path / "started")
    assert answers == [FACTS] * 3
    assert started == 2


def test_what_runs_code_of_a_model_answers_for_no_other(tmp_path):
    answers, started = answers_of(["m", "n", "o"], tmp_path / "started", handler=Handler())
    assert answers == [FACTS] * 3
    assert started == 3


def tried(script, deadline=60.0, free=None, monkeypatch=None):
    """What trying a model comes to, by a probe that is this Python script: an error, or None."""
    if free is not None:
        monkeypatch.setattr(FreeMemory, "read", lambda self, with_gpus: {(Device.CPU, 0): free})
    spec = make_spec(limits=Limits(startup_deadline=deadline))

    async def run():
        inspector = ModelInspector((sys.executable, "-S", "-c", script))
        try:
            await inspector.try_model(spec)
        except ServeError as error:
            return error
        finally:
            await inspector.close()

    return asyncio.run(run())


TRIES = f"""{FRAMES}
asked = question()
assert asked["tries"] and asked["spec"]["root"] == "/nowhere"
"""


def test_a_trial_that_its_process_survives_says_nothing():
    assert tried(TRIES + "tell()") is None


@pytest.mark.parametrize(
    ("does", "deadline", "said"),
    [
        ("os.write(2, b'bad operator'); os.kill(os.getpid(), 11)", 60.0, "was killed by SIGSEGV"),
        ("time.sleep(600)", 0.2, "did not end in 0.2 s"),
        ("sys.exit(3)", 60.0, "ended with status 3"),
    ],
)
def test_what_a_trial_does_not_survive_is_the_file_s_fault(does, deadline, said):
    error = tried(TRIES + does, deadline)
    assert error.code is Code.LOAD_FAILED
    assert error.message.startswith(
        f"The process that tries /nowhere for model 'm' {said}; the file is damaged, or"
    )
    assert ("bad operator" in error.message) == ("SIGSEGV" in said)


def test_a_trial_that_takes_more_memory_than_there_is_to_take_is_ended(monkeypatch):
    grows = "held = []\nwhile True: held.append(bytearray(1 << 20))"
    error = tried(TRIES + grows, free=2**26, monkeypatch=monkeypatch)
    assert "took more than 51 MiB of memory, and was ended" in error.message


class FolderCode(Engine):
    """An engine that runs code of the folder of one model."""

    def runs_folder_code(self, spec):
        return spec.name == "own"


def test_an_engine_says_which_models_run_code_of_their_folders(tmp_path):
    script, place = NUMBERED, tmp_path / "started"
    command = (sys.executable, "-S", "-c", script, str(place))

    async def run():
        asking = ModelInspector(command, find_engine=lambda spec: FolderCode(FACTS))
        for name in ("m", "own", "n"):
            assert await asking.facts(replace(make_spec(), name=name)) == FACTS
        await asking.close()

    asyncio.run(run())
    assert len(place.read_text()) == 2


class Pipe:
    """Stands for the end of a pipe, with all that has come by it."""

    def __init__(self, data=b""):
        self.data = data

    async def read(self, most):
        piece, self.data = self.data[:most], self.data[most:]
        return piece

    async def readexactly(self, size):
        piece = await self.read(size)
        if len(piece) < size:
            raise asyncio.IncompleteReadError(piece, size)
        return piece

    def write(self, data):
        pass

    async def drain(self):
        raise BrokenPipeError  # the child has ended

    def close(self):
        pass


class Process:
    """Stands for a child that has ended."""

    def __init__(self, status, reply=b"", noise=b""):
        self.pid = 4711
        self.returncode, self.stdin = status, Pipe()
        self.stdout, self.stderr = Pipe(reply), Pipe(noise)

    async def wait(self):
        return self.returncode


@pytest.mark.parametrize(
    ("process", "code", "said"),
    [
        (
            Process(0, framed(msgspec.json.encode(InspectionRefused(Code.UNSUPPORTED, "no")))),
            Code.UNSUPPORTED,
            "no",
        ),
        (Process(3, noise=b"\xff"), Code.LOAD_FAILED, "ended with status 3"),
        (Process(-9), Code.LOAD_FAILED, "was killed by SIGKILL"),
        (Process(-40), Code.LOAD_FAILED, "was killed by signal 40"),
        (Process(0, b"a greeting of some library"), Code.LOAD_FAILED, "gave no answer that can be read"),
        (Process(0, b""), Code.LOAD_FAILED, "gave no answer that can be read"),
    ],
)
def test_every_end_of_a_child_is_told(monkeypatch, process, code, said):
    async def start(*command, **pipes):
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    error = refusal("")
    assert error.code is code
    assert said in error.message


NOISY = f"""{FRAMES}
for i in range(40_000):
    print("line", i, "x" * 1000, file=sys.stderr)
sys.stderr.flush()
question()
tell()
"""


def test_what_a_probe_prints_takes_no_memory_and_a_hundred_lines_of_the_log(caplog):
    tracemalloc.start()
    with caplog.at_level("INFO"):
        spec = make_spec(handler=Handler())
        facts = asyncio.run(ModelInspector((sys.executable, "-S", "-c", NOISY)).facts(spec))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert facts == FACTS
    assert peak < 8 * 2**20  # of 40 MB
    lines = [record.getMessage() for record in caplog.records if record.name == "trivium.worker.m"]
    assert len(lines) == 101
    assert lines[0].startswith("completing: line 0 ")
    assert lines[-1].endswith(" lines more were not logged")


def test_an_answer_that_is_too_long_is_none(monkeypatch):
    async def start(*command, **pipes):
        return Process(0, framed(bytes(2**20 + 1)))

    monkeypatch.setattr(inspector, "MOST_REPLY", 2**20)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    assert "gave no answer that can be read" in refusal("").message


def test_of_long_noise_the_beginning_and_the_end_are_quoted(monkeypatch):
    async def start(*command, **pipes):
        return Process(1, noise=b"x" * 10 * MOST_NOISE + b"\nthe last word")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    message = refusal("").message
    assert message.endswith("/ the last word")
    assert len(message) < 10_000


def test_only_the_last_lines_are_quoted(monkeypatch):
    async def start(*command, **pipes):
        return Process(1, noise="\n".join(map(str, range(100))).encode())

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    message = refusal("").message
    assert message.endswith("/ 98 / 99")
    assert " 79 /" not in message
    assert "80 /" in message
