"""What `predict` of a typed handler gets of a request, and what becomes of what it returns."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.typed_child import TypedChild, answered, body

from trivium_worker.wire.values import END, Failure, Item, Raw, Tensor

SHOW = """
class M:
    def predict(self, text: str, k: int = 2, names: list[str] = []) -> dict[str, Any]:
        return {"text": text, "k": k, "names": names}
"""
ECHO = "class M:\n    def predict(self, x: {0}) -> {0}:\n        return x\n"
BOX = "@dataclass\nclass Box:\n    x: float\n    name: str = ''\n"
JSON, TEXT = "application/json", "text/plain"


def shown(text: str, k: int = 2, names: "list[str] | None" = None) -> dict[str, Any]:
    return {"text": text, "k": k, "names": names or []}


BODIES: dict[str, tuple[Raw, dict[str, Any]]] = {
    "an object": (body({"text": "a", "k": 5, "names": ["b"]}), shown("a", 5, ["b"])),
    "an object with a null": (body({"text": "a", "k": None}), shown("a")),
    "a text, which is the one that is needed": (body(b"a b", TEXT), shown("a b")),
    "a text that looks like JSON": (body(b'{"x"', TEXT), shown('{"x"')),
    "JSON that is a text": (body("a"), shown("a")),
    "the query": (body(b"a", TEXT, query=[("k", "7"), ("other", "x")]), shown("a", 7)),
    "the query alone": (body(b"", "", query=[("text", "q")]), shown("q")),
    "an object without a content type": (body(b'{"text": "a"}', ""), shown("a")),
    "a form": (Raw([body(b"a", "", "text").parts[0], body(b"3", "", "k").parts[0]]), shown("a", 3)),
    "a form with JSON": (
        Raw([body(b"a", "", "text").parts[0], body(b'["b"]', "", "names").parts[0]]),
        shown("a", 2, ["b"]),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_gives_the_parameters(name: str, tmp_path: Path) -> None:
    child, (payload, wanted) = TypedChild(tmp_path), BODIES[name]
    (outcome,) = child.ask(child.adapter(SHOW), payload)
    assert answered(outcome) == wanted


REFUSED: dict[str, tuple[Raw, str]] = {
    "nothing": (body(b"", ""), "text is missing; expected a text."),
    "a field that lacks": (body({"k": 1}), "text is missing; expected a text."),
    "a field too many": (
        body({"text": "a", "z": 1}),
        "z is a field that is not known; expected text (a text), k (a whole",
    ),
    "another kind": (body({"text": 3}), "text is a whole number, 3; expected a text."),
    "within a list": (body({"text": "a", "names": ["b", None]}), "names[1] is null; expected a text."),
    "a truth for a number": (body({"text": "a", "k": True}), "k is true; expected a whole number."),
    "a fraction": (body({"text": "a", "k": 1.5}), "k is a number, 1.5; expected a whole number."),
    "too large": (body({"text": "a", "k": 2**63}), "expected a whole number of 64 bits"),
    "no JSON": (body(b'{"te'), "the body is no JSON (Unterminated"),
    "a list": (body([1]), "text is a list of 1; expected a text."),
    "a picture": (body(b"\x89PNG", "image/png"), "cannot take a body of content type 'image/png'"),
    "no UTF-8": (body(b"\xff", TEXT), "text is bytes that are no UTF-8"),
    "a form without fields": (Raw([]), "The body is called a form, and has no field"),
    "a form's field": (Raw([body(b"a", "", "txt").parts[0]]), "txt is a field that is not known"),
    "a form's number": (
        Raw([body(b"a", "", "text").parts[0], body(b"x", "", "k").parts[0]]),
        "k is a text, 'x'; expected a whole",
    ),
    "the query's number": (
        body(b"a", TEXT, query=[("k", "x")]),
        "k is a text, 'x'; expected a whole number.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_body_is_refused_by_the_name_of_the_field(name: str, tmp_path: Path) -> None:
    child, (payload, said) = TypedChild(tmp_path), REFUSED[name]
    (outcome,) = child.ask(child.adapter(SHOW), payload)
    assert isinstance(outcome, Failure)
    assert outcome.code == ("unsupported media" if name == "a picture" else "invalid")
    assert said in outcome.message


ROUND: dict[str, tuple[str, Any, str, list[Any], Any]] = {
    "text": ("str", "é", "BYTES", [1], ["é".encode()]),
    "whole": ("int", -3, "INT64", [1], [-3]),
    "number": ("float", 0.5, "FP64", [1], [0.5]),
    "truth": ("bool", True, "BOOL", [1], [True]),
    "list": ("list[int]", [1, 2], "INT64", [2], [1, 2]),
    "no elements": ("list[int]", [], "INT64", [0], []),
    "lists": ("list[list[str]]", [["a", "b"]], "BYTES", [1, 2], [b"a", b"b"]),
    "lists of nothing": ("list[list[int]]", [[], []], "INT64", [2, 0], []),
    "record": ("Box", {"x": 1.0, "name": "a"}, "BYTES", [1], [b'{"x":1.0,"name":"a"}']),
    "records": ("list[Box]", [{"x": 1.0, "name": ""}], "BYTES", [1], [b'{"x":1.0,"name":""}']),
    "array": ('Annotated[np.ndarray, tensor("FP32", [-1, 2])]', [[1.0, 2.0]], "FP32", [1, 2], [1.0, 2.0]),
    "bytes": ('Annotated[np.ndarray, tensor("BYTES", [-1])]', ["a"], "BYTES", [1], [b"a"]),
}


@pytest.mark.parametrize("name", ROUND)
def test_json_and_tensors_are_the_same_value(name: str, tmp_path: Path) -> None:
    hint, value, datatype, shape, elements = ROUND[name]
    child = TypedChild(tmp_path)
    adapter = child.adapter(BOX + ECHO.format(hint), "M")
    (as_body,) = child.ask(adapter, body(value))
    found = bytes(as_body.parts[0].data).decode() if hint == "str" else answered(as_body)
    assert found == value
    sent = np.array(elements, object if datatype == "BYTES" else None).reshape(shape)
    given = Tensor.of_array("x", sent if datatype == "BYTES" else sent.astype(_CODES[datatype]))
    (tensors,) = child.ask(adapter, [given])
    assert not isinstance(tensors, Failure), tensors
    assert [(one.name, one.datatype, list(one.shape)) for one in tensors] == [("output", datatype, shape)]
    assert tensors[0].array().ravel().tolist() == elements


_CODES = {"INT64": "i8", "FP64": "f8", "FP32": "f4", "BOOL": "?"}


def test_an_array_is_the_handlers_own(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = ECHO.format('Annotated[np.ndarray, tensor("FP32", [2])]').replace(
        "return x", "x *= 2\n        return x"
    )
    sent = Tensor.of_array("x", np.array([1, 2], np.float32))
    (tensors,) = child.ask(child.adapter(code), [sent])
    assert tensors[0].array().tolist() == [2, 4]
    assert sent.array().tolist() == [1, 2]


def test_bare_numbers_and_fields_of_arrays(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    adapter = child.adapter(ECHO.format('Annotated[np.ndarray, tensor("FP32", [-1, 2])]'))
    numbers = np.array([[1, 2]], np.float32)
    assert answered(child.ask(adapter, body(numbers.tobytes(), "application/octet-stream"))[0]) == [[1, 2]]
    assert answered(child.ask(adapter, body({"x": [[1, 2]]}))[0]) == [[1, 2]]
    for wrong, said in (
        ([[1]], "of the shape [1,1]"),
        ([["a", "b"]], "another kind"),
        ([[1], [1, 2]], "no array"),
    ):
        assert said in child.ask(adapter, body(wrong))[0].message
    assert "a body of 3 bytes" in child.ask(adapter, body(b"abc", ""))[0].message


MISTAKES = {
    "str": ("return 3", "output of what predict returned is a whole number, 3, and its hint says a text"),
    "list[int]": ("return 'abc'", "a text, 'abc', and its hint says a list"),
    "list[list[int]]": ("return [[1], [1, 2]]", "lists of several lengths"),
    "Box": ("return {'x': 'a'}", "output.x of what predict returned is a text"),
    "float": ("return float('nan')", "a value that JSON does not hold"),
    "bytes": ("return 'a'", "a text, 'a', and its hint says bytes"),
    'Annotated[np.ndarray, tensor("INT8", [1])]': ("return np.ones(1)", "an array of float64"),
    'Annotated[np.ndarray, tensor("FP32", [1])]': ("return np.ones(2)", "of the shape [2]"),
}


@pytest.mark.parametrize("hint", MISTAKES)
def test_what_the_hint_does_not_say_is_the_handlers_failure(hint: str, tmp_path: Path) -> None:
    child, (line, said) = TypedChild(tmp_path), MISTAKES[hint]
    adapter = child.adapter(
        f"{BOX}\nclass M:\n    def predict(self, x: int) -> {hint}:\n        {line}\n", "M"
    )
    payload = body(1) if hint == "float" else [Tensor.of_array("x", np.array([1]))]
    (outcome,) = child.ask(adapter, payload)
    assert isinstance(outcome, Failure)
    assert (outcome.code, said in outcome.message) == ("model failed", True), outcome.message


def test_numbers_of_numpy_and_bytes_that_are_a_picture(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    adapter = child.adapter(
        "class M:\n    def predict(self, x: int) -> float:\n        return np.float32(x)\n"
    )
    assert answered(child.ask(adapter, body(2))[0]) == 2.0
    adapter = child.adapter("class M:\n    def predict(self, x: bytes) -> bytes:\n        return x\n")
    (outcome,) = child.ask(adapter, body(b"{}", JSON))
    assert [(one.name, one.elements()) for one in outcome] == [("output", [b"{}"])], (
        "the server looks what it is"
    )


def test_refusals_and_faults(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    def predict(self, x: int) -> int:\n"
        "        if x > 1: raise Refusal('x is above 1', 422)\n        return 1 // x\n"
    )
    adapter = child.adapter(code)
    refused, failed, good = child.ask(adapter, body(2), body(0), body(1))
    assert (refused.message, refused.code, refused.status) == ("x is above 1", "invalid", 422)
    assert failed.code == "model failed"
    assert failed.message.startswith("The model raised ZeroDivisionError: ")
    assert "typed_app.py, line" in failed.message
    assert answered(good) == 1


SUMS = """
class M:
    calls = []
    @batched(8)
    def predict(self, x: Annotated[np.ndarray, tensor("FP32", [-1, -1])]) -> list[float]:
        self.calls.append(x.shape)
        return x.sum(axis=1)
"""


def test_a_batch_is_one_call_for_each_shape_and_fails_by_item(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    adapter = child.adapter(SUMS)
    rows = [Tensor.of_array("x", np.array([[1, 2], [3, 4]], np.float32))]
    one, bad, many, other = child.ask(adapter, body([1, 1]), body("a"), rows, body([1, 2, 3]))
    assert (answered(one), answered(other)) == (2.0, 6.0)
    assert many[0].array().tolist() == [3, 7]
    assert bad.code == "invalid"
    assert adapter.handler.calls == [(3, 2), (1, 3)]


def test_one_of_a_batch_may_fail_and_a_wrong_count_fails_all(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    @batched(8)\n    def predict(self, x: list[int]) -> list[int]:\n"
        "        return [Refusal('no') if one == 2 else one for one in x if one]\n"
    )
    adapter = child.adapter(code)
    good, bad = child.ask(adapter, body(1), body(2))
    assert (answered(good), bad.message, bad.status) == (1, "no", 400)
    for outcome in child.ask(adapter, body(0), body(1)):
        assert "predict returned 1 rows for output of a batch of 2" in outcome.message


def test_a_stream_sends_its_pieces_and_ends(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    def predict(self, n: int) -> Iterator[str]:\n"
        "        for i in range(n):\n            if i == 2: raise ValueError('two')\n            yield f'{i}'\n"
    )
    adapter = child.adapter(code)
    assert child.ask(adapter, body(2)) == [END]
    assert [bytes(one.parts[0].data) for one in child.sent] == [b"0", b"1"]
    assert "ValueError: two" in child.ask(adapter, body(3))[0].message
    (empty,) = child.ask(adapter, body(0))
    assert (empty.parts[0].data, empty.parts[0].content_type) == (b"", "text/plain; charset=utf-8")
    child.sent.clear()
    assert child.ask(adapter, [Tensor.of_array("n", np.array([1]))]) == [END]
    assert child.sent[0][0].elements() == [b"0"]


def test_a_cancelled_stream_is_closed(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    closed = 0\n    def predict(self, n: int) -> Iterator[int]:\n        try:\n"
        "            yield from range(n)\n        finally:\n            M.closed += 1\n"
    )
    adapter = child.adapter(code)
    item: Item = child.item(body(5))
    item.is_cancelled = True
    assert adapter.run([item])[0] is not None
    assert (child.sent, adapter.handler.closed) == ([], 1)


def test_async_functions_run_side_by_side_and_stream(tmp_path: Path) -> None:
    import asyncio as library

    child = TypedChild(tmp_path)
    code = (
        "import asyncio\nclass M:\n    async def setup(self, context: Context):\n        self.gate = asyncio.Event()\n"
        "    async def predict(self, n: int) -> int:\n"
        "        if n: self.gate.set()\n        else: await self.gate.wait()\n        return n\n"
    )
    adapter = child.adapter(code, in_flight=4)

    async def both() -> list[Any]:
        async def send(payload: Any) -> None:
            child.sent.append(payload)

        return await library.gather(*(adapter.serve(child.item(body(n)), send) for n in (0, 1)))

    assert [answered(one) for one in adapter.loop.run_until_complete(both())] == [0, 1]
    adapter.loop.close()
    code = "class M:\n    async def predict(self, n: int) -> AsyncIterator[int]:\n        for i in range(n): yield i\n"
    adapter = child.adapter(code, in_flight=4)

    async def stream() -> Any:
        async def send(payload: Any) -> None:
            child.sent.append(payload)

        return await adapter.serve(child.item(body(2)), send)

    assert adapter.loop.run_until_complete(stream()) is END
    assert [bytes(one.parts[0].data) for one in child.sent] == [b"0\n", b"1\n"]
    adapter.loop.close()
    asyncio.set_event_loop(None)


def test_setup_gets_its_context_or_nothing_and_close_is_called(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    def setup(self, context: Context) -> None:\n        self.said = context\n"
        "    def close(self): self.said = None\n    def predict(self, x: str) -> str: return self.said.folder\n"
    )
    adapter = child.adapter(code)
    (outcome,) = child.ask(adapter, body("a"))
    assert bytes(outcome.parts[0].data).decode() == str(tmp_path)
    adapter.close()
    assert adapter.handler.said is None
    with pytest.raises(Failure, match="setup is an async function"):
        child.adapter("class M:\n    async def setup(self): ...\n    def predict(self, x: str) -> str: ...\n")
    with pytest.raises(OSError, match="no weights"):
        child.adapter(
            "class M:\n    def setup(self): raise OSError('no weights')\n    def predict(self, x: str) -> str: ...\n"
        )


def test_parameters_of_a_v2_request_are_optional_ones(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    adapter = child.adapter(SHOW)
    item = child.item([Tensor.of_elements("text", [b"a"])], parameters={"k": 9, "other": 1})
    (outcome,) = adapter.run([item])
    assert outcome[0].elements() == [b'{"text":"a","k":9,"names":[]}']


def test_a_batch_that_answers_columns_is_no_list_of_rows(tmp_path: Path) -> None:
    """As many columns as rows came: LitServe's users get garbage then (Lightning-AI/LitServe issue 506)."""
    child = TypedChild(tmp_path)
    code = (
        "class M:\n    @batched(8)\n    def predict(self, x: list[int]) -> list[dict[str, float]]:\n"
        "        return {'a': [0.1, 0.2], 'b': [0.9, 0.8]}\n"
    )
    for outcome in child.ask(child.adapter(code), body(1), body(2)):
        assert "of what predict returned is an object with a, b, and its hint says a list" in outcome.message


def test_a_setup_that_wants_a_device_is_told_of_the_context(tmp_path: Path) -> None:
    code = "class M:\n    def setup(self, device): ...\n    def predict(self, x: str) -> str: return x\n"
    with pytest.raises(Failure, match=r"Write setup\(self, context\), and context.device"):
        TypedChild(tmp_path).adapter(code)


def test_the_services_that_people_write_elsewhere(tmp_path: Path) -> None:
    """BentoML's quickstart: lazy hints, a constructor that loads, a default; LitServe's first: a number squared."""
    code = (
        "class Summarization:\n    def __init__(self) -> None:\n"
        "        self.pipeline = lambda text: [{'summary_text': text[:5]}]\n"
        "    def predict(self, text: str = 'An example') -> str:\n"
        "        return self.pipeline(text)[0]['summary_text']\n"
        "class Square:\n    def setup(self, context):\n        self.model = lambda x: x**2\n"
        "    def predict(self, input: float) -> dict[str, float]:\n        return {'output': self.model(input)}\n"
    )
    child = TypedChild(tmp_path)
    adapter = child.adapter(code, "Summarization")
    shown = [
        bytes(one.parts[0].data) for one in child.ask(adapter, body({"text": "Breaking"}), body(b"", ""))
    ]
    assert shown == [b"Break", b"An ex"]
    assert answered(child.ask(child.adapter(code, "Square"), body({"input": 4}))[0]) == {"output": 16.0}
