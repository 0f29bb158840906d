import pytest
from tests.harness.djl_child import SHIMS, DjlChildHarness, forget, raw, text

from trivium_worker.dialects.djl import ndlist as djl_ndlist
from trivium_worker.wire.values import END, Failure, Part, Raw, Tensor

ECHO = """
from djl_python import Input, Output
started = None
def handle(inputs):
    global started
    if inputs.is_empty():
        started = dict(inputs.get_properties())
        return None
    kind = inputs.get_property("Content-Type") or "none"
    return Output().add_property("Content-Type", kind).add(inputs.get_as_bytes())
"""
SAYS = """
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    %s
"""
BATCH = """
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    output = Output().add_property("x-of", str(inputs.get_batch_size()))
    for index, item in enumerate(inputs.get_batches()):
        output.add(item.get_property("who") + item.get_as_string(), batch_index=index)
    return output
"""


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield DjlChildHarness(tmp_path)
    forget()


def answer(stage, statement, payload=None):
    """What a handler of this one statement makes of one request."""
    return stage.adapter(SAYS % statement).run([stage.item(payload or raw(b"x"))])[0]


# -- start ------------------------------------------------------------------------------------------------


def test_the_first_call_has_the_settings_and_no_content(stage):
    import importlib

    stage.adapter(ECHO, properties={"topK": "3", "batch_size": 4}, device="gpu", device_id=2)
    assert importlib.import_module("model").started == {
        "topK": "3",
        "batch_size": "4",
        "handler": "handle",
        "device_id": "2",
        "model_dir": str(stage.root),
    }


def test_another_file_and_another_function(stage):
    adapter = stage.adapter(ECHO.replace("handle", "serve"), entry="my-code.py", function="serve")
    assert text(adapter.run([stage.item(raw(b"hi"))])[0]) == "hi"


def test_a_module(stage):
    (stage.root / "djl_entry_model").mkdir()
    (stage.root / "djl_entry_model" / "inner.py").write_text(ECHO)
    adapter = stage.adapter(entry="djl_entry_model.inner")
    assert text(adapter.run([stage.item(raw(b"hi"))])[0]) == "hi"


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        ("def other(): pass", "no function handle; it defines: other", "load failed"),
        ("handle = 3", "no function handle", "load failed"),
        ("async def handle(inputs): pass", "async function", "load failed"),
        ("def handle(inputs): return 3", "Invalid output type: int", "load failed"),
        (
            "from djl_python import Output\ndef handle(inputs): return Output().error('no weights', 500)",
            "refused to start: 500 invoke handler failure.*no weights",
            "load failed",
        ),
        (
            "from djl_python import Output\ndef handle(inputs): return Output(507, 'full')",
            "507 full",
            "out of memory",
        ),
        ("def handle(inputs): raise MemoryError('full')", "full", "out of memory"),
    ],
)
def test_what_fails_the_load(stage, code, words, kind):
    with pytest.raises(Failure, match=f"(?s){words}") as failed:
        stage.adapter(code)
    assert failed.value.code == kind


def test_what_user_code_raises_at_start_passes(stage):
    with pytest.raises(ZeroDivisionError):
        stage.adapter("1/0")
    with pytest.raises(KeyError):
        stage.adapter("def handle(inputs): raise KeyError('weights')")
    with pytest.raises(SystemExit):
        stage.adapter("import sys\ndef handle(inputs): sys.exit(3)")
    with pytest.raises(Failure, match="no file"):
        stage.adapter(entry="gone.py")


# -- one request ------------------------------------------------------------------------------------------


def test_an_answer(stage):
    adapter = stage.adapter(ECHO)
    outcome = adapter.run([stage.item(raw(b"hi", {"content-type": "text/plain"}))])[0]
    assert (outcome.status, outcome.reason, text(outcome)) == (200, "OK", "hi")
    assert outcome.properties == {"Content-Type": "text/plain"}
    assert outcome.parts[0].content_type == "text/plain"
    adapter.close()


def test_query_arguments_are_content_in_front_of_the_body_and_headers_are_properties(stage):
    payload = raw(b"body", {"accept": "a/b"}, [("topK", "2"), ("ä", "ö"), ("topK", "3")])
    code = "return Output().add([inputs.get_content().get_keys(), inputs.get_properties()])"
    import json

    keys, properties = json.loads(text(answer(stage, code, payload)))
    assert keys == ["topK", "ä", "topK", "data"]
    assert properties == {
        "accept": "a/b",
        "requestId": "r",
        "handler": "handle",
        "device_id": "-1",
        "model_dir": str(stage.root),
    }


def test_form_fields_keep_their_names_and_a_request_without_a_body_is_not_empty(stage):
    fields = Raw([Part(b"1", "", "a"), Part(b"2", "image/png", "b", "x.png")])
    assert text(answer(stage, "return Output().add(inputs.get_as_bytes('b'))", fields)) == "2"
    adapter = stage.adapter(SAYS % "return Output().add(str(inputs.get_content().get_keys()))")
    assert text(adapter.run([stage.item(Raw([]))])[0]) == "['data']"


def test_a_request_without_an_id_gets_one(stage):
    adapter = stage.adapter(SAYS % "return Output().add(inputs.get_property('requestId'))")
    assert len(text(adapter.run([stage.item(raw(), "")])[0])) == 36


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("return None", (204, "No content", None)),
        ("return Output().add('a', 'k').add('b', 'data')", (200, "OK", "b")),
        ("return Output().add('a', 'k').add('b', 'l')", (200, "OK", "a")),
        ("return Output(202, 'later')", (202, "later", None)),
        ("return Output().add('a', batch_index=0)", (200, "OK", "a")),
    ],
)
def test_which_pair_is_the_body(stage, statement, expected):
    outcome = answer(stage, statement)
    body = text(outcome) if outcome.parts else None
    assert (outcome.status, outcome.reason, body) == expected


@pytest.mark.parametrize(
    ("statement", "message", "code", "status"),
    [
        ("raise ValueError('bad input')", "bad input", "model failed", 424),
        ("raise ValueError", "ValueError", "model failed", 424),
        ("return 'text'", "Invalid output type: str. handle must return", "model failed", 424),
        ("return later()", "coroutine", "model failed", 424),
        ("raise MemoryError('no room')", "no room", "out of memory", 507),
        ("raise type('OutOfMemoryError', (RuntimeError,), {})('gpu')", "gpu", "out of memory", 507),
        ("raise RuntimeError('CUDA error: out of memory at 3')", "CUDA error", "out of memory", 507),
        ("return Output('many')", "invalid literal", "model failed", 424),
    ],
)
def test_what_fails_a_request(stage, capsys, statement, message, code, status):
    adapter = stage.adapter("async def later(): pass\n" + SAYS % statement)
    failure = adapter.run([stage.item(raw(b"x"))])[0]
    assert isinstance(failure, Failure)
    assert message in failure.message
    assert (failure.code, failure.status) == (code, status)
    if statement.startswith("raise"):
        assert "Traceback" in capsys.readouterr().err


def test_a_handler_may_end_its_process(stage):
    adapter = stage.adapter(SAYS % "raise SystemExit(3)")
    with pytest.raises(SystemExit):
        adapter.run([stage.item(raw(b"x"))])


# -- tensors ----------------------------------------------------------------------------------------------


def test_one_element_of_bytes_is_the_body(stage):
    sent = [Tensor.of_elements("image", [b"\x89PNG"])]
    adapter = stage.adapter(ECHO)
    item = stage.item(sent, parameters={"content-type": "image/png"})
    outcome = adapter.run([item])[0]
    assert bytes(outcome.parts[0].data) == b"\x89PNG"
    assert outcome.parts[0].content_type == "image/png"


def test_other_tensors_are_an_ndlist(stage):
    sent = [Tensor("x", "FP32", (2,), b"\0\0\x80\x3f" * 2), Tensor.of_elements("t", [b"a", "ä".encode()])]
    code = "return Output().add(str([inputs.get_property('Content-Type'), inputs.get_as_numpy()]))"
    shown = text(answer(stage, code, sent))
    assert "tensor/ndlist" in shown
    assert "[1., 1.]" in shown
    assert "'ä'" in shown


def test_what_no_ndlist_holds_fails_that_request_alone(stage):
    adapter = stage.adapter(ECHO)
    bad = stage.item([Tensor.of_elements("t", [b"\xff", b"a"])])
    outcomes = adapter.run([bad, stage.item(raw(b"good"))])
    assert outcomes[0].code == "unsupported media"
    assert text(outcomes[1]) == "good"
    assert adapter.run([bad, bad])[1].code == "unsupported media"


# -- batches ----------------------------------------------------------------------------------------------


def two(stage):
    return [stage.item(raw(body, {"who": who})) for body, who in ((b"1", "a"), (b"2", "b"))]


def test_a_batch(stage):
    outcomes = stage.adapter(BATCH).run(two(stage))
    assert [text(outcome) for outcome in outcomes] == ["a1", "b2"]
    assert [outcome.properties for outcome in outcomes] == [{"x-of": "2"}] * 2


def test_a_batch_of_one_is_none(stage):
    adapter = stage.adapter(SAYS % "return Output().add(str(inputs.is_batch()))")
    assert text(adapter.run([stage.item(raw(b"1"))])[0]) == "False"


def test_the_keys_of_a_batch(stage):
    code = "return Output().add([*inputs.get_properties()], 'k', 0).add(str(inputs.get_content().get_keys()), 'k', 1)"
    properties, keys = (text(outcome) for outcome in stage.adapter(SAYS % code).run(two(stage)))
    assert "batch_001.who" in properties
    assert '"batch_size"' in properties
    assert keys == "['batch_000.data', 'batch_001.data']"


def test_a_batchs_answers_go_by_their_keys(stage):
    code = "return Output().add('second', 'batch_1.data').add('first', 'batch_000.data')"
    assert [text(outcome) for outcome in stage.adapter(SAYS % code).run(two(stage))] == ["first", "second"]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("return Output().add('a', batch_index=0)", "size mismatch, expected: 2, actual: 1"),
        ("return Output().add('a', 'data').add('b', 'other')", "'data' .* names no request"),
        ("return Output().add('a').add('b')", "None .* names no request"),
        ("return Output().add('a', batch_index=0).add('b', batch_index=0)", "or one again"),
        ("return Output().add('a', batch_index=0).add('b', batch_index=2)", "names no request"),
        ("return Output().add_stream_content(['a'])", "cannot be divided"),
    ],
)
def test_answers_that_do_not_fit_the_batch(stage, statement, words):
    for failure in stage.adapter(SAYS % statement).run(two(stage)):
        with pytest.raises(Failure, match=words):
            raise failure
        assert (failure.code, failure.status) == ("model failed", 400)


def test_an_error_is_every_items(stage):
    code = "return Output().error('no', 503)"
    for outcome in stage.adapter(SAYS % code).run(two(stage)):
        assert outcome.status == 503
        assert '"error":"no"' in text(outcome)
    assert [outcome.status for outcome in stage.adapter(SAYS % "return None").run(two(stage))] == [204, 204]
    assert [o.message for o in stage.adapter(SAYS % "raise OSError('x')").run(two(stage))] == ["x", "x"]


# -- streams and what comes after -------------------------------------------------------------------------


def streamed(stage, statement, before=""):
    adapter = stage.adapter(before + SAYS % statement)
    outcome = adapter.run([stage.item(raw(b"x"))])[0]
    return outcome, [
        (bytes(sent.parts[0].data), sent.status) for _, sent, _ in stage.sent if isinstance(sent, Raw)
    ]


def test_a_stream(stage):
    code = "return Output(206, 'bits').add_property('x', 1).add_stream_content(iter([{'a': 1}, 'é', '', float('nan')]))"
    outcome, parts = streamed(stage, code)
    assert outcome is END
    assert parts == [
        (b'{"outputs": {"a": 1}}\n', 206),
        (b'{"outputs": "\\u00e9"}\n', 0),
        (b'{"outputs": ""}\n', 0),
        (b'{"outputs": NaN}\n', 0),
    ]
    assert stage.sent[0][1].properties == {"x": "1"}
    assert stage.sent[0][1].reason == "bits"
    assert not any(final for _, _, final in stage.sent)


def test_a_stream_without_a_formatter(stage):
    code = "return Output().add_stream_content(['a', b'b', '', {'c': 1}], None)"
    assert streamed(stage, code)[1] == [(b"a", 200), (b"b", 0), (b'{\n  "c":1\n}', 0)]


def test_an_empty_stream_is_an_empty_answer(stage):
    outcome, parts = streamed(stage, "return Output(201).add_stream_content([])")
    assert (outcome.status, bytes(outcome.parts[0].data), parts) == (201, b"", [])


FAILING = "def pieces():\n    yield 'a'\n    raise OSError('disk')\n"


def test_what_a_stream_raises_is_its_last_piece(stage, capsys):
    outcome, parts = streamed(stage, "return Output().add_stream_content(pieces(), None)", FAILING)
    assert (outcome, parts) == (END, [(b"a", 200), (b"disk", 0)])
    assert "OSError: disk" in capsys.readouterr().err


ENDLESS = """
def pieces():
    try:
        while True:
            yield 'a'
    finally:
        print('cleaned up')
        raise OSError('late')
"""


def test_a_stream_ends_when_its_client_has_left(stage, capsys):
    stage.cancel_after = 3
    outcome, parts = streamed(stage, "return Output().add_stream_content(pieces(), None)", ENDLESS)
    assert (outcome, len(parts)) == (END, 3)
    said = capsys.readouterr()
    assert "cleaned up" in said.out
    assert "OSError: late" in said.err


@pytest.mark.parametrize("content", ["add('a')", "add_stream_content(['a'], None)"])
def test_the_last_function_for_the_end_runs_when_the_answer_is_out(stage, capsys, content):
    code = f"return Output().{content}.finalize(print, 'done').finalize(print, 'all')"
    adapter = stage.adapter(SAYS % code)
    assert adapter.run([stage.item(raw(b"x"))]) == [None]
    assert stage.sent[-1][2] is True
    assert capsys.readouterr().out.split() == ["all"]


def test_a_function_for_the_end_that_raises_harms_nobody(stage, capsys):
    adapter = stage.adapter(SAYS % "return Output().add('a').finalize(lambda: 1 / 0)")
    assert adapter.run([stage.item(raw(b"x"))]) == [None]
    assert text(stage.sent[-1][1]) == "a"
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_finalizers_of_a_batch(stage, capsys):
    code = "return Output().add('a', batch_index=0).add('b', batch_index=1).finalize(print, 'done')"
    assert stage.adapter(SAYS % code).run(two(stage)) == [None, None]
    assert [(text(outcome), final) for _, outcome, final in stage.sent] == [("a", True), ("b", True)]
    assert capsys.readouterr().out == "done\n"


def test_the_childs_ndlist_is_what_the_server_reads():
    from trivium.codecs import ndlist

    sent = [Tensor("x\0\U0001f600", "BOOL", (1, 2), b"\1\0"), Tensor.of_elements("", [b"a"], ())]
    tensors = ndlist.decode(bytes(djl_ndlist.write(sent)), 1000)
    assert [(tensor.name, tensor.array.tolist()) for tensor in tensors] == [
        ("x\0\U0001f600", [[True, False]]),
        ("", b"a"),
    ]
    assert [framed.word for framed in djl_ndlist.read(ndlist.encode(tensors))] == ["BOOLEAN", "STRING"]
