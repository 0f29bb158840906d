"""Models that complete their configuration: asked in a process of their own, with the real probe, and then served."""

import asyncio
from dataclasses import replace

import pytest
from tests.harness.python_models import ask, place, scene

from trivium.catalogue import CATALOGUE
from trivium.core.models.inspector import ModelInspector
from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.errors import ServeError
from trivium.types.spec import Defaults, Limits

USUAL = Limits()
COMPLETE = "    @staticmethod\n    def auto_complete_config(c):\n        {}\n"
EXECUTE = "    def execute(self, requests):\n        return [answer(OUT=of(r, 'IN') * 2) for r in requests]\n"
TENSORS = (
    "c.add_input({'name': 'IN', 'data_type': 'TYPE_INT32', 'dims': [1]});"
    "c.add_output({'name': 'OUT', 'data_type': 'TYPE_INT32', 'dims': [1]}); return c"
)


def asked(root, step, config="", limits=USUAL):
    """The spec of such a model as it is completed."""
    place(root, "m", COMPLETE.format(step) + EXECUTE, config, "")
    (spec,) = FORMAT.read(root / "m", Defaults()).specs
    spec = replace(spec, limits=limits)
    return FORMAT.finish(spec, asyncio.run(ModelInspector(CATALOGUE.probe).facts(spec)))


def test_a_model_without_inputs_in_its_file_is_served(tmp_path):
    place(tmp_path, "m", COMPLETE.format(TENSORS) + EXECUTE, "", "")
    answers = []

    async def play(server):
        done = asyncio.get_running_loop().create_future()
        server.submit(ask("m", 21), done.set_result)
        part = await done
        assert part.error is None
        answers.append(part.payload["OUT"].tolist())

    scene(play, tmp_path)
    assert answers == [[[42]]]


def test_what_user_code_prints_is_in_the_log_and_spoils_nothing(tmp_path, caplog):
    with caplog.at_level("INFO", logger="trivium.worker.m"):
        spec = asked(
            tmp_path, "print('printed'); os.write(1, b'raw'); pb_utils.Logger.log_info('logged');" + TENSORS
        )
    assert [tensor.name for tensor in spec.inputs] == ["IN"]
    text = caplog.text
    assert "completing: " in text
    assert all(words in text for words in ("printed", "raw", "logged"))


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (
            "return None",
            "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.",
        ),
        ("return {'name': 'm'}", "must return a valid pb.ModelConfig object."),
        (
            "raise RuntimeError('bad')",
            r"RuntimeError: bad\n\nAt:\n  .*1/model.py\(\d+\): auto_complete_config\n",
        ),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("c.as_dict()['input'] = {1, 2}; return c", "is no JSON"),
        (
            "pb_utils.load_model('other'); return c",
            "is not to be had while a model's configuration is completed",
        ),
        ("os._exit(3)", "ended its process with status 3 while it was asked to complete its configuration"),
        ("sys.exit(4)", "ended its process with status 4"),
    ],
)
def test_a_model_that_cannot_complete_is_not_loaded(tmp_path, step, told):
    with pytest.raises(ServeError, match=told):
        asked(tmp_path, "import sys; " + step)


def test_a_model_that_never_ends_is_ended_with_its_interpreter(tmp_path):
    step = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n        while True: time.sleep(1)"
    for deadline in (1, 4, 16):  # until user code has begun within it
        with pytest.raises(ServeError, match=f"told nothing in {deadline} s"):
            asked(tmp_path / str(deadline), step, limits=Limits(startup_deadline=float(deadline)))
        if (tmp_path / "pid").exists():
            break
    pid = int((tmp_path / "pid").read_text())
    assert not (tmp_path.__class__(f"/proc/{pid}") / "exe").exists()
