"""The Triton dialect: how model.py is loaded, what execute gets, and what becomes of what it returns."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.triton_child import ECHO, PREFIX, TritonChildHarness, failures, fp32, model, rows, stage

from trivium_worker.wire.values import Failure, Tensor

__all__ = ["stage"]

# -- loading -----------------------------------------------------------------------------------------------


def test_every_argument_of_initialize_is_text(stage: TritonChildHarness) -> None:
    text = (
        ECHO
        + "    def initialize(self, args):\n        pb_utils.Logger.log_info(repr(sorted(args.items())))\n"
    )
    stage.load(text, device="gpu", device_id=1)
    told = dict(eval(stage.host.lines[0][1].partition("] ")[2]))  # noqa: S307 - our own text
    assert told.pop("model_config").startswith('{"name":"m"')
    assert told == {
        "model_instance_kind": "GPU",
        "model_instance_name": "m_0_0",
        "model_instance_device_id": "1",
        "model_repository": str(stage.folder.parent),
        "model_version": "1",
        "model_name": "m",
    }


def test_the_module_is_the_version_s_and_its_siblings_are_found(stage: TritonChildHarness) -> None:
    (stage.folder / "beside_it.py").write_text("WORD = 'beside'\n")
    (stage.folder.parent / "above_it.py").write_text("WORD = 'above'\n")
    text = (
        "from .beside_it import WORD as relative\nfrom beside_it import WORD as absolute\nimport above_it\n"
        "import triton_python_backend_utils as pb_utils\n"
        "class TritonPythonModel:\n"
        "    def initialize(self, args):\n"
        "        words = [__name__, __file__, relative, absolute, above_it.WORD, pb_utils.get_model_dir()]\n"
        "        pb_utils.Logger.log_info(' '.join(words))\n"
    )
    stage.load(text)
    file = stage.folder / "model.py"
    assert stage.host.lines == [("info", f"model.py:8] 1.model {file} beside beside above {stage.folder}")]


def test_a_package_of_its_own(stage: TritonChildHarness) -> None:
    (stage.folder / "__init__.py").write_text("WORD = 'package'\n")
    text = (
        "from . import WORD\n"
        "class TritonPythonModel:\n    def initialize(self, args):\n        raise OSError(WORD)\n"
    )
    with pytest.raises(Failure, match="OSError: package"):
        stage.load(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "AttributeError: module '1.model' has no attribute 'TritonPythonModel'"),
        (
            "class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('bad init')\n",
            "RuntimeError: bad init\n\nAt:\n  {file}(3): initialize\n",
        ),
        ("\nraise ValueError('at import')\n", "ValueError: at import\n\nAt:\n  {file}(2): <module>\n"),
        ("def f(:\n", "SyntaxError: invalid syntax (model.py, line 1)"),
        (
            "import a_module_that_is_not_there\n",
            "ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
        ),
    ],
)
def test_what_fails_the_load(stage: TritonChildHarness, text: str, said: str) -> None:
    with pytest.raises(Failure) as raised:
        stage.load(text)
    assert raised.value.message.startswith(said.format(file=stage.folder / "model.py"))
    assert raised.value.code == "load failed"


@pytest.mark.parametrize("entry", ["model.so", "gone.py"])
def test_an_entry_that_is_no_python_file(stage: TritonChildHarness, entry: str) -> None:
    with pytest.raises(Failure, match="is no Python file"):
        stage.open(entry=entry)


def test_an_interpreter_without_numpy(stage: TritonChildHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    with pytest.raises(Failure, match="has no numpy"):
        stage.open()


def test_sys_exit_while_loading_passes(stage: TritonChildHarness) -> None:
    with pytest.raises(SystemExit):
        stage.load("import sys\nsys.exit(3)\n")


def test_a_model_without_execute_loads_and_fails_its_requests(stage: TritonChildHarness) -> None:
    adapter = stage.load("class TritonPythonModel:\n    def finalize(self):\n        print('finalised')\n")
    file = stage.folder / "model.py"
    assert failures(adapter.run([stage.item()])) == [
        f"{PREFIX}Python model {file} does not implement `execute` method."
    ]


def test_finalize_is_called_and_may_raise(
    stage: TritonChildHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.load(
        ECHO + "    def finalize(self):\n        print('bye')\n        raise ValueError('too late')\n"
    ).close()
    printed = capsys.readouterr()
    assert printed.out == "bye\n"
    assert "ValueError: too late" in printed.err


# -- what execute returns ----------------------------------------------------------------------------------


def test_a_response_for_each_request(stage: TritonChildHarness) -> None:
    outcomes = stage.load(ECHO).run([stage.item(1), stage.item(2)])
    assert [rows(outcome) for outcome in outcomes] == [[[1.0, 2.0]], [[2.0, 2.0]]]


def test_outputs_that_nobody_asked_for_are_dropped(stage: TritonChildHarness) -> None:
    config = {"output": [{"name": name, "data_type": "TYPE_FP32", "dims": [2]} for name in ("OUT", "MORE")]}
    body = (
        "one = np.zeros((1, 2), np.float32)\n"
        "names = ('OUT', 'UNKNOWN', 'MORE')\n"
        "return [pb_utils.InferenceResponse([pb_utils.Tensor(n, one) for n in names]) for _ in requests]\n"
    )
    outcomes: Any = stage.load(model(body), config).run([stage.item(1), stage.item(2, outputs=["MORE"])])
    assert [[tensor.name for tensor in outcome] for outcome in outcomes] == [["OUT", "MORE"], ["MORE"]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "return []",
            "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            "InferenceRequest(s) size is:2, and InferenceResponse(s) size is:0\n",
        ),
        ("return 7", "Expected a list in the execute return, found type '<class 'int'>'."),
        (
            "return ['a', 'b']",
            "Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'str'>'.",
        ),
        ("raise ValueError('boom')", "ValueError: boom\n\nAt:\n  {file}(5): execute\n"),
        (
            "def inner():\n    raise KeyError('k')\ninner()",
            "KeyError: 'k'\n\nAt:\n  {file}(6): inner\n  {file}(7): execute\n",
        ),
        (
            "return [pb_utils.InferenceResponse([pb_utils.Tensor('', np.zeros(2))])]",
            "TritonModelException: Tensor name cannot be an empty string.\n\nAt:\n  {file}(5): execute\n",
        ),
    ],
)
def test_what_fails_the_whole_batch(stage: TritonChildHarness, body: str, said: str) -> None:
    outcomes: Any = stage.load(model(body)).run([stage.item(1), stage.item(2)])
    text = PREFIX + said.format(file=stage.folder / "model.py")
    assert failures(outcomes) == [text, text]
    assert {outcome.code for outcome in outcomes} == {"model failed"}


def test_lack_of_memory_is_told_as_such(stage: TritonChildHarness) -> None:
    outcomes: Any = stage.load(model("raise MemoryError('no room')")).run([stage.item()])
    assert outcomes[0].code == "out of memory"


def test_sys_exit_passes(stage: TritonChildHarness) -> None:
    adapter = stage.load(model("import sys\nsys.exit(3)"))
    with pytest.raises(SystemExit):
        adapter.run([stage.item()])


@pytest.mark.parametrize(
    ("code", "ours", "status"),
    [
        ("", "model failed", None),
        ("UNKNOWN", "unknown", None),
        ("INTERNAL", "model failed", None),
        ("NOT_FOUND", "not found", None),
        ("INVALID_ARG", "invalid", None),
        ("UNAVAILABLE", "not ready", None),
        ("UNSUPPORTED", "unsupported", None),
        ("ALREADY_EXISTS", "invalid", 409),
        ("CANCELLED", "cancelled", None),
    ],
)
def test_an_error_is_its_request_s_alone(
    stage: TritonChildHarness, code: str, ours: str, status: int | None
) -> None:
    given = f", pb_utils.TritonError.{code}" if code else ""
    body = (
        "good = pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.ones((1, 2), 'f4'))])\n"
        f"bad = pb_utils.InferenceResponse(error=pb_utils.TritonError('mine'{given}))\n"
        "return [bad, good]"
    )
    bad, good = stage.load(model(body)).run([stage.item(1), stage.item(2)])
    assert isinstance(bad, Failure)
    assert (bad.message, bad.code, bad.status) == ("mine", ours, status)
    assert rows(good) == [[1.0, 1.0]]


def test_parameters_of_a_response_go_with_its_final_part(stage: TritonChildHarness) -> None:
    body = "return [pb_utils.InferenceResponse([], parameters={'a': 1, 'b': True, 'c': 'x'})]"
    assert stage.load(model(body)).run([stage.item()]) == [None]
    assert stage.sent.parts == {1: [([], True, {"a": 1, "b": True, "c": "x"})]}


@pytest.mark.parametrize("body", ["return None", "return [None, None]"])
def test_nothing_returned_fails_instead_of_hanging(stage: TritonChildHarness, body: str) -> None:
    assert stage.load(model(body)).run([stage.item(1), stage.item(2)]) == [None, None]
    for number in (1, 2):
        ((outcome, final, _),) = stage.sent.ended(number)
        assert final
        assert "left without its last response" in outcome.message


# -- what execute gets -------------------------------------------------------------------------------------


def test_a_request_as_user_code_sees_it(stage: TritonChildHarness) -> None:
    body = (
        "r = requests[0]\n"
        "seen = [r.request_id(), r.correlation_id(), sorted(r.requested_output_names()), r.flags(), r.timeout(),\n"
        "        r.parameters(), r.is_cancelled(), [t.name() for t in r.inputs()], r.trace().get_context()]\n"
        "pb_utils.Logger.log_info(repr(seen))\n"
        "r.set_flags(2)\n"
        "pb_utils.Logger.log_info(repr(r.flags()))\n"
        "return [pb_utils.InferenceResponse() for r in requests]"
    )
    adapter = stage.load(model(body))
    about = {"parameters": {"a": 1, "s": "ü", "b": True}, "timeout": 0.5, "sequence": ("seven", True, False)}
    adapter.run([stage.item(1, request_id="q", **about)])
    adapter.run([stage.item(2, outputs=["OTHER"])])
    seen = [eval(line.partition("] ")[2]) for _, line in stage.host.lines]  # noqa: S307 - our own text
    first = ["q", "seven", ["OUT"], 1, 500000, '{"a":1,"s":"ü","b":true}', False, ["IN"], None]
    assert seen == [first, 2, ["", 0, ["OTHER"], 0, 0, "{}", False, ["IN"], None], 2]


def test_an_input_may_be_written_into_and_kept(stage: TritonChildHarness) -> None:
    body = (
        "kept = [pb_utils.get_input_tensor_by_name(r, 'IN').as_numpy() for r in requests]\n"
        "for array in kept:\n    array += 1\n"
        "return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', array)]) for array in kept]"
    )
    adapter = stage.load(model(body))
    tensor = fp32("IN", [1.0, 2.0])
    received = bytearray(tensor.data)
    (outcome,) = adapter.run([stage.item(1, Tensor("IN", "FP32", (1, 2), memoryview(received).toreadonly()))])
    assert np.frombuffer(received, "f4").tolist() == [1.0, 2.0]
    received[:] = bytes(8)
    assert rows(outcome) == [[2.0, 3.0]]


def test_an_array_may_be_used_again_for_the_next_answer(stage: TritonChildHarness) -> None:
    body = (
        "global BUFFER\n"
        "BUFFER[:] = requests[0].inputs()[0].as_numpy()\n"
        "return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', BUFFER)])]"
    )
    adapter = stage.load(model(body, "BUFFER = np.zeros((1, 2), np.float32)\n"))
    first, second = adapter.run([stage.item(1)]), adapter.run([stage.item(2)])
    assert (rows(first[0]), rows(second[0])) == ([[1.0, 2.0]], [[2.0, 2.0]])


def test_an_input_passed_on_is_not_copied(stage: TritonChildHarness) -> None:
    config = {"output": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [2]}]}
    item = stage.item()
    (outcome,) = stage.load(
        model("return [pb_utils.InferenceResponse(r.inputs()) for r in requests]"), config
    ).run([item])
    assert isinstance(outcome, list)
    assert isinstance(item.payload, list)
    assert outcome[0] is item.payload[0]


def test_the_shipped_text_model(stage: TritonChildHarness, tmp_path: Path) -> None:
    """A model that decodes its input and returns text as objects, as many do."""
    config = {"output": [{"name": "OUT", "data_type": "TYPE_STRING", "dims": [1]}]}
    body = (
        "text = requests[0].inputs()[0].as_numpy().astype(np.bytes_)[0][0].decode('utf-8')\n"
        "out = np.array([[text.upper()]], dtype=np.object_)\n"
        "return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor('OUT', out)])]"
    )
    item = stage.item(1, Tensor.of_elements("IN", [b"hi"], (1, 1)))
    (outcome,) = stage.load(model(body), config).run([item])
    assert rows(outcome) == [[b"HI"]]
