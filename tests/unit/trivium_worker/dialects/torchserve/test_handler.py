"""TorchServe's handlers: entry points, the context, and what becomes of what they return or raise."""

import json
import logging
import sys

import pytest
from tests.harness.torchserve_child import (
    SEES,
    TorchServeChildHarness,
    body,
    bytes_tensor,
    failures,
    returning,
    stage,
)

from trivium_worker.wire.values import Failure, Part

__all__ = ["stage"]


# -- entry points ------------------------------------------------------------------------------------------


def test_a_function_is_called_once_at_load(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(SEES)
    ((data, context),) = sys.modules["handler"].SEEN
    assert data is None
    assert context is adapter.context


def test_a_named_function(stage: TorchServeChildHarness) -> None:
    text = "def handle(data, context):\n    return ['no']\ndef run(data, context):\n    return data and ['yes']\n"
    assert body(stage.load(text, function="run").run([stage.item()])[0]) == b"yes"


CLASS = """
from collections import OrderedDict
class Handler:
    def initialize(self, context):
        self.name = context.model_name
    def handle(self, data, context):
        return [self.name] * len(data)
"""


OLD = """
_service = Handler()
def handle(data, context):
    if data is None:
        _service.initialize(context)
    else:
        return _service.handle(data, context)
"""


def test_the_only_class(stage: TorchServeChildHarness) -> None:
    assert body(stage.load(CLASS).run([stage.item()])[0]) == b"m"
    assert body(stage.load(CLASS, "deep/other.py", function="nothing").run([stage.item()])[0]) == b"m"


def test_the_old_form_of_a_service(stage: TorchServeChildHarness) -> None:
    assert body(stage.load(CLASS + OLD).run([stage.item()])[0]) == b"m"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "these classes: none"),
        ("from collections import OrderedDict\n", "these classes: none"),
        ("class A:\n    pass\nclass B:\n    pass\n", "A, B"),
        ("class A:\n    pass\n", "no method handle"),
        ("async def handle(data, context):\n    pass\n", "asyncCommunication"),
        ("class A:\n    async def handle(self, data, context):\n        pass\n", "asyncCommunication"),
    ],
)
def test_handlers_that_cannot_be_loaded(stage: TorchServeChildHarness, text: str, words: str) -> None:
    with pytest.raises(Failure, match=words) as caught:
        stage.load(text)
    assert caught.value.code == "load failed"


def test_what_user_code_raises_at_load_is_told(stage: TorchServeChildHarness) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        stage.load("import no_such_library\n")
    with pytest.raises(ValueError, match="mine"):
        stage.load("def handle(data, context):\n    raise ValueError('mine')\n", "second.py")
    for number, what in enumerate(("MemoryError()", "RuntimeError('CUDA error')")):
        with pytest.raises(Failure, match="System out of memory") as caught:
            stage.load(f"def handle(data, context):\n    raise {what}\n", f"memory{number}.py")
        assert caught.value.code == "out of memory"
    with pytest.raises(RuntimeError, match="other"):
        stage.load("def handle(data, context):\n    raise RuntimeError('other')\n", "third.py")


def test_a_handler_called_like_a_module_of_python(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(returning("['mine']"), "json.py")
    assert body(adapter.run([stage.item()])[0]) == b"mine"
    assert sys.modules["json"] is json


def test_a_neighbour_is_imported(stage: TorchServeChildHarness) -> None:
    (stage.root / "neighbour_of_it.py").write_text("WORD = 'hello'\n")
    adapter = stage.load("import neighbour_of_it\n" + returning("[neighbour_of_it.WORD]"))
    assert body(adapter.run([stage.item()])[0]) == b"hello"


# -- the context -------------------------------------------------------------------------------------------


def test_what_the_context_says(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(
        SEES, manifest={"model": {"handler": "h"}}, config={"handler": {"k": 1}}, device="gpu", device_id=3
    )
    context = adapter.context
    headers = {"x-own": "1", "explain": "True", "ts_request_sequence_id": "s"}
    adapter.run(
        [stage.item(b"1", "text/plain", properties=headers, path="v1/x", request_id="r1"), stage.item(b"2")]
    )
    assert context.model_name == "m"
    assert context.manifest == {"model": {"handler": "h"}}
    assert context.model_yaml_config == {"handler": {"k": 1}}
    assert context.system_properties == {
        "model_dir": str(stage.root),
        "gpu_id": 3,
        "batch_size": 4,
        "server_name": "MMS",
        "server_version": "0.12.0",
        "limit_max_image_pixels": True,
    }
    assert context.get_request_id() == "r1"
    assert len(str(context.get_request_id(1))) == 36
    assert context.get_request_id(2) is None
    assert context.get_request_header(0, "X-OWN") == "1"
    assert context.get_request_header(0, "body") == {"content-type": "text/plain"}
    assert context.get_request_header(0, "url_path") == "v1/x"
    assert [context.get_request_header(i, "explain") for i in (0, 1)] == ["False", "False"]
    assert context.get_request_header(1, "nothing") is None
    everything = context.get_all_request_header(0)
    assert ("X-Own" in everything, everything["X-Own"], everything.get("N", 5)) == (True, "1", 5)
    assert (context.get_sequence_id(0), context.get_sequence_id(1)) == ("s", None)


def test_the_place_in_a_sequence_is_in_the_headers_whoever_said_it(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(SEES)
    said, starts, ends = (f"ts_request_sequence_{each}" for each in ("id", "start", "end"))
    own = {said.upper(): "s", starts: "no"}
    items = [
        stage.item(b"", sequence=["s", True, False], properties=own),
        stage.item(b"", sequence=["ts-seq-1", True, False], properties={said: ""}),
        stage.item([bytes_tensor("x", b"1")], sequence=["7", False, True]),
    ]
    adapter.run(items)
    context = adapter.context
    found = [[context.get_request_header(i, name) for name in (said, starts, ends)] for i in range(3)]
    assert found == [["s", "no", None], ["ts-seq-1", "true", None], ["7", None, "true"]]
    assert [context.get_sequence_id(i) for i in range(3)] == ["s", "ts-seq-1", "7"]
    assert list(own) == [said.upper(), starts]


def test_a_form_s_field_does_not_become_a_header_of_the_server(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(SEES)
    adapter.run([stage.item([Part(b"True", "", "explain")], properties={})])
    assert adapter.context.get_request_header(0, "explain") == "False"


def test_status_and_headers_of_an_answer(stage: TorchServeChildHarness) -> None:
    text = """
def handle(data, context):
    if data is None:
        return
    context.set_response_content_type(0, "text/x")
    context.set_response_header(0, "X-Number", 5)
    context.set_response_status(404, "not here", 1)
    assert context.get_response_content_type(0) == "text/x"
    assert context.get_response_headers(0) == {"content-type": "text/x", "X-Number": 5}
    assert context.get_response_status(1) == (404, "not here")
    return ["a", "b"]
"""
    adapter = stage.load(text)
    first, second = adapter.run([stage.item(), stage.item()])
    assert (first.properties, first.status, first.reason) == (
        {"content-type": "text/x", "X-Number": "5"},
        200,
        "",
    )
    assert (body(second), second.status, second.reason) == (b"b", 404, "not here")
    third, _ = adapter.run([stage.item(), stage.item()])
    assert third.properties == first.properties


def test_a_status_for_all_and_one_that_is_none(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(returning("[context.set_all_response_status(201, 'made'), 2]"))
    assert [(one.status, one.reason) for one in adapter.run([stage.item(), stage.item()])] == [
        (201, "made")
    ] * 2
    wrong = stage.load(returning("[context.set_response_status('fine')]"), "wrong.py").run([stage.item()])
    assert "no number" in failures(wrong)[0][1]


# -- results -----------------------------------------------------------------------------------------------

FAILING = """
from ts.service import PredictionException
def fail(error):
    raise error
def again(context):
    context.stopping_criteria = [lambda x: True, lambda x: False]
    return [1, 2]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b'raw'", b"raw"),
        ("bytearray(b'raw')", b"raw"),
        ("memoryview(b'raw')", b"raw"),
        ("'ä'", "ä".encode()),
        ("None", b"null"),
        ("3.5", b"3.5"),
        ("{'a': [1]}", b'{\n  "a": [\n    1\n  ]\n}'),
        ("[]", b"[]"),
    ],
)
def test_elements(stage: TorchServeChildHarness, text: str, expected: bytes) -> None:
    assert body(stage.load(returning(f"[{text}]")).run([stage.item()])[0]) == expected


def test_a_torch_tensor(stage: TorchServeChildHarness) -> None:
    torch = pytest.importorskip("torch")
    import io

    data = body(stage.load("import torch\n" + returning("[torch.tensor([1.0, 2.0])]")).run([stage.item()])[0])
    assert torch.load(io.BytesIO(data), weights_only=True).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "code", "words", "status"),
    [
        ("1 / 0", "model failed", "Prediction failed: ZeroDivisionError: division by zero (", 503),
        ("['a'] * 3", "model failed", "number of batch response mismatched", 503),
        ("('a', 'b')", "model failed", "Invalid model predict output", 503),
        ("None", "model failed", "Invalid model predict output", 503),
        ("['a', object()]", "model failed", "Unsupported model output data type.", 503),
        ("['a', '\\ud800']", "model failed", "Unsupported model output data type.", 503),
        ("fail(MemoryError('x'))", "out of memory", "Out of resources", 507),
        ("fail(RuntimeError('CUDA error'))", "out of memory", "Out of resources", 507),
        ("fail(PredictionException('mine', 418))", "model failed", "mine", 418),
        ("fail(PredictionException('mine'))", "model failed", "mine", 500),
        ("fail(PredictionException('mine', 413))", "model failed", "mine", 507),
        ("fail(PredictionException('mine', 200))", "model failed", "mine", 500),
        ("fail(PredictionException('mine', 'x'))", "model failed", "mine", 500),
        ("fail(StopIteration())", "model failed", "Prediction failed: StopIteration", 503),
        ("again(context)", "unsupported", "continuous batching", None),
    ],
)
def test_failures_are_the_whole_batch_s_and_told_in_the_log(
    stage: TorchServeChildHarness,
    text: str,
    code: str,
    words: str,
    status: int | None,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = stage.load(FAILING + returning(text)).run([stage.item(), stage.item()])
    for found in failures(outcomes):
        assert (found[0], found[2]) == (code, status)
        assert found[1].startswith(words) or words == "continuous batching"
    assert outcomes[0].message in caplog.messages or "Traceback" in capsys.readouterr().err


def test_criteria_that_are_all_met(stage: TorchServeChildHarness) -> None:
    head = "def again(context):\n    context.stopping_criteria = [lambda x: x == 1]\n    return [1]\n"
    assert body(stage.load(head + returning("again(context)")).run([stage.item()])[0]) == b"1"


def test_leaving_ends_the_worker(stage: TorchServeChildHarness) -> None:
    adapter = stage.load("import sys\n" + returning("sys.exit(3)"))
    with pytest.raises(SystemExit):
        adapter.run([stage.item()])


def test_the_next_batch_is_a_new_one(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(returning("[context.get_request_id(0) if data[0]['body'] else 1 / 0]"))
    assert isinstance(adapter.run([stage.item(b"")])[0], Failure)
    assert body(adapter.run([stage.item(b"x", request_id="two")])[0]) == b"two"


# -- parts before the answer -------------------------------------------------------------------------------

STREAM = """
from {} import send_intermediate_predict_response
def handle(data, context):
    if data is None:
        return
    context.set_response_header(0, "X-A", "1")
    for step in range(2):
        parts = [f"{{i}}{{step}}" for i in range(len(data))]
        send_intermediate_predict_response([*parts, "left over"], context.request_ids, "text", 200, context)
    return ["end"] * len(data)
"""


@pytest.mark.parametrize("module", ["ts.handler_utils.utils", "ts.protocol.otf_message_handler"])
def test_parts(stage: TorchServeChildHarness, module: str) -> None:
    items = [stage.item(), stage.item()]
    outcomes = stage.load(STREAM.format(module)).run(items)
    assert [body(outcome) for outcome in outcomes] == [b"end", b"end"]
    assert [[body(part) for part in stage.parts[item.number]] for item in items] == [
        [b"00", b"01"],
        [b"10", b"11"],
    ]
    assert stage.parts[items[0].number][0].properties == {"X-A": "1"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("send([], context.request_ids, '', 200, context)", "number of batch response mismatched"),
        ("send('a', context.request_ids, '', 200, context)", "Invalid model predict output"),
        ("send([object()], context.request_ids, '', 200, context)", "Unsupported model output data type."),
        ("send(['a'], context.request_ids, '', 200)", "Prediction failed: ValueError: send_intermediate"),
    ],
)
def test_parts_that_are_none(stage: TorchServeChildHarness, call: str, words: str) -> None:
    head = "from ts.handler_utils.utils import send_intermediate_predict_response as send\n"
    outcomes = stage.load(head + returning(call)).run([stage.item()])
    assert failures(outcomes)[0][1].startswith(words)
    assert stage.parts == {}


def test_a_part_that_belongs_to_no_request_is_refused(stage: TorchServeChildHarness) -> None:
    adapter = stage.load(returning("['x']"))
    adapter.run([stage.item()])
    with pytest.raises(Failure, match="1 elements for 0 requests"):
        adapter.send_parts(["late"], {}, "", 200)


def test_a_part_with_another_code_is_an_error(stage: TorchServeChildHarness) -> None:
    head = "from ts.handler_utils.utils import send_intermediate_predict_response as send\n"
    stage.load(head + returning("[send(['a'], context.request_ids, 'no', 429, context)]")).run(
        [item := stage.item()]
    )
    assert failures(stage.parts[item.number]) == [("model failed", "no", 429)]


def test_logging_goes_to_the_worker_s_output(
    stage: TorchServeChildHarness, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = stage.load("import logging\n" + returning("[logging.getLogger('x').warning('hello')]"))
    with caplog.at_level(logging.INFO):
        adapter.run([stage.item()])
    assert "hello" in caplog.text
