"""Asynchronous DJL handlers in this process: what each kind of result becomes, and what the loop is given."""

import asyncio

import pytest
from tests.harness.djl_child import SHIMS, DjlChildHarness, forget, raw, text

from trivium_worker.dialects.djl.result import piece_of
from trivium_worker.wire.values import END, Failure

SAYS = """
import asyncio
from djl_python import Output
async def handle(inputs):
    if inputs.is_empty():
        return None
    await asyncio.sleep(0)
    %s
"""
YIELDS = """
from djl_python import Output
async def pieces():
    %s
async def handle(inputs):
    return None if inputs.is_empty() else pieces()
"""


def item(**texts):
    return f"Output().add(Output.binary_encode({texts}))"


class AsyncStage(DjlChildHarness):
    """Serves one request, and keeps the parts that were sent before its outcome."""

    def __init__(self, root):
        super().__init__(root)
        self.loops = []

    def adapter(self, code="", **told):
        settings = {"properties": told.pop("properties", {}), "in_flight": 5}
        adapter = super().adapter(code, settings=settings, **told)
        self.loops.append(adapter.loop)
        return adapter

    def serve(self, code, payload=None):
        """Parts as (status, reason, body), and the outcome."""
        adapter, parts = self.adapter(code), []

        async def send(part):
            parts.append((part.status, part.reason, text(part), dict(part.properties)))

        outcome = adapter.loop.run_until_complete(adapter.serve(self.item(payload or raw(b"x")), send))
        return parts, outcome


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    monkeypatch.syspath_prepend(str(tmp_path))
    stage = AsyncStage(tmp_path)
    yield stage
    for loop in stage.loops:
        loop.close()
    forget()
    asyncio.set_event_loop(None)


# -- start -------------------------------------------------------------------------------------------------


def test_the_first_call_and_the_requests_share_a_loop(stage):
    code = """
import asyncio
from djl_python import Output
lock = asyncio.Lock()  # made at import
started = []
async def handle(inputs):
    started.append(asyncio.get_running_loop())
    async with lock:
        return None if inputs.is_empty() else Output().add(str(len(set(started))))
"""
    parts, outcome = stage.serve(code)
    assert (parts, text(outcome)) == ([], "1")


def test_it_says_how_many_requests_it_takes(stage):
    assert stage.adapter(SAYS % "return None").in_flight == 5


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        (
            "def handle(inputs): pass",
            "NoneType, which cannot be awaited. Define it with async def",
            "model failed",
        ),
        ("async def handle(inputs): return 3", "Invalid output type: int", "load failed"),
        (
            "from djl_python import Output\nasync def handle(inputs): return Output().error('no weights', 500)",
            "refused to start: 500 invoke handler failure.*no weights",
            "load failed",
        ),
        (
            "from djl_python import Output\nasync def handle(inputs):\n    yield Output().error('none', 500)",
            "refused to start: 500",
            "load failed",
        ),
        ("async def handle(inputs): raise MemoryError('full')", "full", "out of memory"),
    ],
)
def test_what_fails_the_load(stage, code, words, kind):
    with pytest.raises(Failure, match=f"(?s){words}") as failed:
        stage.adapter(code)
    assert failed.value.code == kind


def test_without_the_mode_an_async_function_is_refused_with_the_way_out(tmp_path, stage):
    with pytest.raises(Failure, match=r"Set option\.async_mode=true"):
        DjlChildHarness.adapter(stage, "async def handle(inputs): pass")


@pytest.mark.parametrize(
    "code",
    [
        "async def handle(inputs):\n    if not inputs.is_empty():\n        yield Output().add('a')",
        "async def later(): return Output().add('a')\ndef handle(inputs): return later()",
        "class Handler:\n    async def __call__(self, inputs): return Output().add('a')\nhandle = Handler()",
    ],
)
def test_whatever_can_be_awaited_or_iterated_serves(stage, code):
    _, outcome = stage.serve("from djl_python import Output\n" + code)
    assert text(outcome) == "a" if outcome is not END else True


# -- one answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "status", "reason", "body"),
    [
        ("return Output().add('hi')", 200, "OK", "hi"),
        ("return Output(201, 'made').add('hi')", 201, "made", "hi"),
        ("return None", 204, "No content", None),
        (f"return {item(data='hi', last=True)}", 200, "OK", "hi"),
        (f"return {item(data='hi', last=False)}", 200, "OK", "hi"),
        (f"return {item(data='', last=True)}", 200, "OK", ""),
        (f"return {item(data='x', last=True, code=507, error='full')}", 507, "full", '{"code": 507, "error": "full"}'),
        (f"return {item(data='x', last=True, code=400)}", 400, "OK", '{"code": 400}'),
        ("return Output().error('no', 418)", 418, "invoke handler failure", None),
    ],
)  # fmt: skip
def test_an_answer(stage, statement, status, reason, body):
    parts, outcome = stage.serve(SAYS % statement)
    assert parts == []
    assert (outcome.status, outcome.reason) == (status, reason)
    if body is not None:
        assert text(outcome) == body
    elif status == 204:
        assert outcome.parts == []


@pytest.mark.parametrize(
    ("statement", "words", "code", "status"),
    [
        ("raise ValueError('no')", "no", "model failed", 424),
        ("raise MemoryError('full')", "full", "out of memory", 507),
        ("return 3", "Invalid output type: int", "model failed", 424),
        (f"return {item(data='x', last=True, code='teapot')}", "no HTTP status", "model failed", 400),
        (f"return {item(data='x', last=True, code=99)}", "no HTTP status", "model failed", 400),
    ],
)
def test_a_failure(stage, statement, words, code, status):
    parts, outcome = stage.serve(SAYS % statement)
    assert parts == []
    assert words in outcome.message
    assert (outcome.code, outcome.status) == (code, status)


def test_what_cannot_be_awaited_fails_its_request(stage):
    code = "async def none(): pass\ndef handle(inputs): return none() if inputs.is_empty() else 3"
    _, outcome = stage.serve(code)
    assert (outcome.status, outcome.code) == (424, "model failed")
    assert "returned int, which cannot be awaited" in outcome.message


def test_the_end_of_an_answer_is_told_when_it_is_out(stage):
    code = SAYS % "return Output().add('hi').finalize(ends.append, 1)" + "\nends = []"
    parts, outcome = stage.serve(code)
    assert (parts, outcome) == ([], None)
    ((_, sent, final),) = stage.sent
    assert (text(sent), final) == ("hi", True)
    import importlib

    assert importlib.import_module("model").ends == [1]


# -- answers in pieces -------------------------------------------------------------------------------------

WRONG = "Invalid output type: int. Each piece of a generator must be an Output."
KIND = ".add_property('content-type', 'application/jsonlines')"


@pytest.mark.parametrize(
    ("statements", "bodies", "last"),
    [
        ("for i in range(3): yield Output().add(str(i))", ["0", "1", "2"], END),
        (f"for i in range(3): yield {item(data='x', last=False)}", ["x", "x", "x"], END),
        (f"yield {item(data='a', last=False)}\n    yield {item(data='b', last=True)}\n    1/0", ["a"], "b"),
        (f"yield {item(data='a', last=True)}\n    1/0", [], "a"),
        (f"yield {item(data='a', last=False)}\n    yield {item(data='', last=True)}", ["a"], END),
        (f"yield {item(data='', last=False)}\n    yield {item(data='b', last=True)}", [], "b"),
        (f"yield {item(data='', last=False)}\n    yield {item(data='b', last=False)}", ["b"], END),
        (f"yield {item(data='', last=False)}", [], ""),
        (f"yield {item(data='a', last=False)}\n    yield {item(code=500)}", ["a"], '{"code": 500}'),
        ("yield Output().add('a')\n    yield Output(500).add('ill')\n    1/0", ["a"], "ill"),
        ("yield Output().add('a')\n    raise ValueError('no')", ["a"], "no"),
        ("yield Output().add('a')\n    yield 3", ["a"], WRONG),
    ],
)  # fmt: skip
def test_pieces(stage, statements, bodies, last):
    parts, outcome = stage.serve(YIELDS % statements)
    assert [body for _, _, body, _ in parts] == bodies
    assert (outcome is END) if last is END else text(outcome) == last


def test_nothing_at_all_is_no_content(stage):
    _, outcome = stage.serve(YIELDS % "return\n    yield")
    assert (outcome.status, outcome.parts) == (204, [])


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("raise ValueError('no')\n    yield", 424),
        ("yield 3", 424),
        ("yield None", 424),
        ("raise MemoryError\n    yield", 507),
    ],
)
def test_what_fails_before_the_first_piece_has_a_status(stage, statement, status):
    parts, outcome = stage.serve(YIELDS % statement)
    assert (parts, outcome.status) == ([], status)


def test_the_first_piece_that_holds_anything_has_the_status_and_all_headers_so_far(stage):
    statements = (
        f"yield Output(200, 'Well').add_property('a', '1')\n    "
        f"yield Output(206, 'Some').add_property('b', '2'){KIND}.add('x')\n    "
        "yield Output().add_property('c', '3').add('y')"
    )
    parts, outcome = stage.serve(YIELDS % statements)
    kind = {"content-type": "application/jsonlines"}
    assert parts[0] == (206, "Some", "x", {"a": "1", "b": "2", **kind, "c": "3"}) or parts[0][3] == {
        "a": "1",
        "b": "2",
        **kind,
    }
    assert parts[1] == (0, "", "y", {})
    assert outcome is END


def test_the_generator_is_closed_behind_its_last_piece(stage):
    code = YIELDS % (
        f"try:\n        yield {item(data='a', last=True)}\n        ends.append('on')\n    "
        "finally:\n        ends.append('closed')"
    )
    stage.serve(code + "\nends = []")
    import importlib

    assert importlib.import_module("model").ends == ["closed"]


def test_what_is_raised_while_a_generator_is_closed_hurts_no_answer(stage):
    code = YIELDS % f"try:\n        yield {item(data='a', last=True)}\n    finally:\n        1 / 0"
    parts, outcome = stage.serve(code)
    assert (parts, text(outcome)) == ([], "a")


def test_each_piece_is_told_when_it_is_out(stage):
    code = YIELDS % (
        "yield Output().add('a').finalize(ends.append, 1)\n    "
        f"yield {item(data='b', last=True)}.finalize(ends.append, 2)"
    )
    parts, outcome = stage.serve(code + "\nends = []")
    import importlib

    assert importlib.import_module("model").ends == [1, 2]
    assert ([body for _, _, body, _ in parts], outcome) == (["a"], None)
    assert text(stage.sent[0][1]) == "b"


@pytest.mark.parametrize(
    ("iterator", "bodies"),
    [
        ("iter(['a', 'b'])", ["a", "b"]),
        ("(1 / x for x in (1, 0))", ["1.0", "division by zero"]),
        ("iter([])", []),
    ],
)
def test_a_plain_iterator_streams_as_well(stage, iterator, bodies):
    parts, outcome = stage.serve(SAYS % f"return Output().add_stream_content({iterator}, None)")
    assert [body for _, _, body, _ in parts] == bodies
    assert (outcome is END) == bool(bodies)


# -- cancelling --------------------------------------------------------------------------------------------


def test_who_is_cancelled_hears_of_it_where_it_waits(stage):
    code = """
import asyncio
ends = []
async def handle(inputs):
    if inputs.is_empty():
        return None
    try:
        await asyncio.sleep(3600)
    finally:
        ends.append(True)
"""
    adapter = stage.adapter(code)

    async def play():
        task = asyncio.ensure_future(adapter.serve(stage.item(raw(b"x")), None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    adapter.loop.run_until_complete(play())
    import importlib

    assert importlib.import_module("model").ends == [True]


# -- items of continuous batching --------------------------------------------------------------------------


def output(data):
    from djl_python.outputs import Output

    return Output().add(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"\x00", b"\x00\x01", b"\x00\x00", b"\xff\xff", b"\x00\x01\x00\x00\x00\x04data",
     b"\x7f\xff" + bytes(64),
     b"\x00\x01\x00\x00\x00\x04data\x00\x00\x00\x01xrest", b"\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x01x",
     b"\x00\x01\x00\x00\x00\x04data\x7f\xff\xff\xffx", b"\x00\x01\x00\x00\x00\x04data\x00\x00\x00\x01\xff"],
)  # fmt: skip
def test_bytes_that_are_no_item_are_a_piece_as_they_are(stage, data):
    piece, is_last = piece_of(output(data))
    assert (bytes(piece.parts[0].data), is_last) == (data, False)


def test_an_item_without_a_text_has_none(stage):
    from djl_python.outputs import Output

    piece, is_last = piece_of(output(Output.binary_encode({"data": "ä", "last": "TRUE", "more": "1"})))
    assert (bytes(piece.parts[0].data).decode(), is_last) == ("ä", True)
    assert text(piece_of(output(Output.binary_encode({"last": False})))[0]) == ""
