"""Functions of a model.py around an engine, called in this process; the engine is a list of answers."""

import asyncio
import json
import sys
import textwrap

import pytest
from tests.harness.djl_child import SHIMS, forget, raw
from tests.harness.outlet import CallingOutlet

from trivium_worker.dialects.djl import ADAPTER
from trivium_worker.runtime.adapter import Answer, Host, Setup
from trivium_worker.wire.values import END, Failure, Item, Part, Raw

HEAD = """\
import json
from djl_python.input_parser import input_formatter
from djl_python.output_formatter import TextGenerationOutput, output_formatter
from djl_python.request_io import TextInput, Token

"""


class Engine(Host):
    """Answers each call with parts that were prepared; `asked` has what it was asked."""

    def __init__(self, parts):
        self.parts = parts
        self.asked = []
        self.closed = 0

    def call(self, parent, call):
        (part,) = call.payload.parts
        self.asked.append(
            (call.model, call.payload.properties["answer"], json.loads(bytes(part.data)), call.form)
        )
        return Answers(self)


class Answers:
    def __init__(self, engine):
        self._engine = engine
        self._left = list(enumerate(engine.parts))

    def __iter__(self):
        return self

    def __next__(self):
        if not self._left:
            raise StopIteration
        at, part = self._left.pop(0)
        if isinstance(part, Exception):
            raise part
        document, kind = part if isinstance(part, tuple) else (part, "application/json")
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        return Answer(Raw([Part(data, kind)]), at == len(self._engine.parts) - 1, {})

    def close(self):
        self._engine.closed += 1


def token(id, text, log_prob=-0.5, alternatives=()):
    return [id, text, log_prob, False, list(alternatives)]


def part(*tokens, finish=None, index=0, **more):
    return {"sequences": [{"index": index, "tokens": list(tokens), "finish": finish}], **more}


WORDS = [
    part(token(244, "He", -0.334532), prompt=[4, 5, 6, 7, 8]),
    part(token(576, "llo", -0.123123)),
    part(token(4558, " world", -0.567854), finish="length"),
]


@pytest.fixture
def play(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    forget()

    def played(code, body, parts=WORDS, asynchronous=False, named=None, properties=None):
        (tmp_path / "model.py").write_text(HEAD + textwrap.dedent(code))
        engine = {"name": "m:engine", "weights": "", "named": named or {}, "asynchronous": asynchronous}
        told = {
            "dialect": "djl",
            "model": "m",
            "version": "1",
            "instance": "m_0",
            "device": "cpu",
            "device_id": 0,
            "root": str(tmp_path),
            "entry": "model.py",
            "function": "handle",
            "max_rows": 1,
            "settings": {"properties": properties or {}, "in_flight": 2, "engine": engine},
            "parameters": {},
        }
        host = Engine(parts)
        adapter = ADAPTER(Setup(told), host)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        item = Item(
            1, "r", 1, raw(data, content_type="application/json"), {}, CallingOutlet(lambda *rest: None)
        )
        sent = []

        async def send(payload):
            sent.append(payload)

        try:
            outcome = adapter.loop.run_until_complete(adapter.serve(item, send))
        finally:
            adapter.close()
            adapter.loop.close()
            forget()
        return host, [*sent, *([] if outcome is END else [outcome])]

    yield played
    asyncio.set_event_loop(None)


def text_of(parts):
    return b"".join(bytes(part.parts[0].data) for part in parts).decode()


def lines_of(parts):
    return [json.loads(line) for line in text_of(parts).splitlines()]


OLDER = """
@output_formatter
def custom(token: Token, first_token: bool, last_token: bool, details: dict, generated_tokens: str, id: int):
    told = {"token_id": token.id, "token_text": token.text, "request_id": token.request_id}
    if last_token:
        told["finish_reason"] = details["finish_reason"]
    return json.dumps(told) + "\\n"
"""
BODY = {"inputs": "This is a wonderful day", "parameters": {"max_new_tokens": 256, "details": True}}


def test_the_older_signature_gets_each_token(play):
    host, parts = play(OLDER, BODY)
    assert lines_of(parts) == [
        {"token_id": 244, "token_text": "He", "request_id": 0},
        {"token_id": 576, "token_text": "llo", "request_id": 0},
        {"token_id": 4558, "token_text": " world", "request_id": 0, "finish_reason": "length"},
    ]
    expected = {"inputs": "This is a wonderful day", "parameters": {"max_new_tokens": 256}}
    assert host.asked == [("m:engine", "tokens", expected, True)]
    assert (parts[0].status, parts[0].parts[0].content_type) == (200, "")


def test_the_details_of_the_older_signature_are_those_of_all_tokens_so_far(play):
    code = OLDER.replace("def custom", "def unused").replace("@output_formatter\n", "") + (
        "\n@output_formatter\n"
        "def custom(token: Token, first_token, last_token, details, generated_tokens, id):\n"
        "    return json.dumps(details) + '\\n'\n"
    )
    _, parts = play(code, BODY)
    first, _, last = lines_of(parts)
    assert first == {
        "finish_reason": None,
        "generated_tokens": 1,
        "inputs": "This is a wonderful day",
        "tokens": [{"id": 244, "text": "He", "log_prob": -0.334532}],
        "parameters": {"max_new_tokens": 256, "details": True},
        "prompt_tokens": 5,
    }
    assert (last["finish_reason"], last["generated_tokens"], len(last["tokens"])) == ("length", 3, 3)


@pytest.mark.parametrize("names", ["_, _, last", "_, _, _, last"])
def test_a_function_may_wait_for_the_last_token_with_either_count_of_members(play, names):
    _, parts = play(
        f"""
        @output_formatter
        def wait(request_output: TextGenerationOutput):
            best = request_output.sequences[request_output.best_sequence_index]
            {names} = best.get_next_token()
            if not last:
                return ""
            text = "".join(token.text for token in best.tokens)
            return json.dumps([text, best.finish_reason, request_output.get_tokens_as_dict()[0]["id"]])
        """,
        BODY,
    )
    assert lines_of(parts) == [["Hello world", "length", 244]]


def test_a_function_that_an_option_names_may_take_fewer_arguments(play):
    _, parts = play(
        "def plain(token, first, last, details, text):\n    return token.text.upper() + '.' * last\n",
        {"inputs": "x"},
        named={"output_formatter": "plain"},
    )
    assert text_of(parts) == "HELLO WORLD."


def test_alternatives_and_several_sequences_are_there(play):
    both = [
        part(token(1, "a", -1.0, [(1, "a", -1.0), (2, "b", -2.0)]), finish="length"),
        part(token(3, "c", -3.0), finish="eos_token", index=1),
    ]
    _, parts = play(
        """
        @output_formatter
        def all(request_output: TextGenerationOutput) -> str:
            if not request_output.finished:
                return ""
            told = {index: one.finish_reason for index, one in request_output.sequences.items()}
            return json.dumps([told, request_output.get_top_tokens_as_dict(0), request_output.other_sequences_indices])
        """,
        {"inputs": "x", "parameters": {"n": 2}},
        both,
    )
    ((reasons, top, others),) = lines_of(parts)
    assert (reasons, others) == ({"0": "length", "1": "eos_token"}, [1])
    assert [one["text"] for one in top[0]] == ["a", "b"]


def test_an_engine_that_breaks_off_is_a_last_token_with_an_error(play):
    code = """
    @output_formatter
    def lines(request_output: TextGenerationOutput) -> str:
        best = request_output.sequences[0]
        token, _, is_last = best.get_next_token()
        return json.dumps([token.text, token.error_msg, best.finish_reason]) + "\\n"
    """
    _, parts = play(code, BODY, [WORDS[0], Failure("no memory", "model failed", 424)])
    assert lines_of(parts) == [["He", None, None], ["", "no memory", "error"]]
    _, (refused,) = play(code, BODY, [Failure("'top_p' is 7", "invalid", 424)])
    assert (refused.status, json.loads(text_of([refused]))) == (424, {"code": 424, "error": "'top_p' is 7"})
    _, (outcome,) = play(code, BODY, [Failure("the queue is full", "queue full")])
    assert (outcome.code, outcome.status) == ("queue full", None)


def test_what_a_function_raises_is_told_with_its_place(play):
    code = """
    @input_formatter
    def read(decoded_payload: dict, **kwargs) -> dict:
        return {"inputs": decoded_payload["question"]}

    @output_formatter
    def write(request_output: TextGenerationOutput) -> str:
        token = request_output.sequences[0].get_next_token()[0]
        if token.text == "llo":
            raise RuntimeError("intentionally")
        return token.text
    """
    host, (refused,) = play(code, {"inputs": "x"})
    told = {"code": 424, "error": "Custom input formatter failed: KeyError: 'question' (model.py, line 9)"}
    assert (refused.status, json.loads(text_of([refused])), host.asked) == (424, told, [])
    host, parts = play(code, {"question": "x"})
    assert text_of(parts[:1]) == "He"
    assert "failed: RuntimeError: intentionally (model.py, line 15)" in text_of(parts[1:])
    assert host.closed == 1


def test_a_request_of_ones_own_form_and_class(play):
    code = """
    from djl_python import Input
    from djl_python.encode_decode import decode

    class Mine(TextInput):
        pass

    @input_formatter
    def read(input_item: Input, **kwargs):
        document = decode(input_item, input_item.get_property("Content-Type"))
        mine = Mine()
        mine.input_text, mine.parameters = document["q"], {"max_new_tokens": 3, "stream": True}
        mine.own = kwargs["configs"].rolling_batch
        return mine

    @output_formatter
    def write(request_output: TextGenerationOutput) -> str:
        return f"{request_output.input.own}:{request_output.sequences[0].get_next_token()[0].text} "
    """
    host, parts = play(code, {"q": "x"}, properties={"rolling_batch": "auto"})
    assert text_of(parts) == "auto:He auto:llo auto: world "
    assert host.asked[0][2] == {"inputs": "x", "parameters": {"max_new_tokens": 3}}
    _, (refused,) = play(code.replace("return mine", "return document"), {"q": "x"})
    assert "it returned dict; expected is a RequestInput" in text_of([refused])


def test_a_function_without_annotations_gets_what_its_runtime_passes(play):
    code = """
    @input_formatter
    def read(given, tokenizer=None):
        return {"inputs": type(given).__name__}
    """
    host, parts = play(code, {"inputs": "x"}, [{"generated_text": "y"}], asynchronous=True)
    assert (host.asked[0][1:3], text_of(parts)) == (("", {"inputs": "dict"}), '{"generated_text": "y"}')
    _, (refused,) = play(code, {"inputs": "x"}, [{"generated_text": "y"}])
    assert "expected is a RequestInput" in text_of([refused])


RESPONSE = """
@output_formatter
def change(output):
    if hasattr(output, "choices") and len(output.choices) > 0:
        first = output.choices[0]
        text = first.text if hasattr(first, "text") else first.message.content
        return {"applied": True, "generated_text": text, "model": output.model}
    return {"applied": False}
"""


def test_a_response_has_the_attributes_of_vllms(play):
    _, parts = play(RESPONSE, {"inputs": "x"}, [{"generated_text": "y"}], True)
    assert lines_of(parts) == [{"applied": True, "generated_text": "y", "model": "lmi"}]
    chat = {"model": "x", "choices": [{"message": {"content": "z"}}]}
    _, parts = play(RESPONSE, {"messages": []}, [chat], True)
    assert lines_of(parts) == [{"applied": True, "generated_text": "z", "model": "x"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("output.choices[0].text = 'new'", {"generated_text": "new"}),
        ("output['generated_text'] = 'own'; output['more'] = 1", {"generated_text": "own", "more": 1}),
        ("output.more = 2", {"generated_text": "y", "more": 2}),
        ("output = 'a text'", "a text"),
    ],
)
def test_a_response_may_be_changed_in_place(play, change, expected):
    code = f"@output_formatter\ndef change(output):\n    {change}\n    return output\n"
    _, parts = play(code, {"inputs": "x"}, [{"generated_text": "y"}], True)
    assert text_of(parts) == (expected if isinstance(expected, str) else json.dumps(expected))


def test_lines_and_events_are_changed_one_by_one(play):
    code = "@output_formatter\ndef change(output: dict) -> dict:\n    return {'at': output['index']}\n"
    lines = [
        (b'{"index": 0}\n{"index": 1}\n', "application/jsonlines"),
        (b'{"index": 2}\n', "application/jsonlines"),
    ]
    _, parts = play(code, {"inputs": "x", "stream": True}, lines)
    assert text_of(parts) == '{"at": 0}\n{"at": 1}\n{"at": 2}\n'
    assert parts[0].parts[0].content_type == "application/jsonlines"
    events = [(b'data: {"index": 0}\n\ndata: [DONE]\n\n', "text/event-stream")]
    _, parts = play(code, {"inputs": "x", "stream": True}, events)
    assert text_of(parts) == 'data: {"at": 0}\n\ndata: [DONE]\n\n'


def test_a_formatter_that_the_request_names_goes_before_the_folders(play):
    body = {"inputs": "x", "parameters": {"output_formatter": "json"}}
    host, parts = play(OLDER, body, [{"generated_text": "y"}])
    assert (text_of(parts), host.asked[0][1:3]) == ('{"generated_text": "y"}', ("", body))


def test_tokens_of_a_model_that_answers_whole_are_refused_with_the_way_out(play):
    _, (refused,) = play(OLDER, BODY, [{"generated_text": "y"}])
    assert "Write option.rolling_batch=auto." in text_of([refused])


def test_a_body_that_is_no_request_is_refused(play):
    for body in (b"no json", b"[1]"):
        host, (refused,) = play(OLDER, body)
        assert (refused.status, host.asked) == (424, [])


def test_the_tokenizer_is_loaded_when_it_is_used(play, monkeypatch):
    class AutoTokenizer:
        @classmethod
        def from_pretrained(cls, folder, local_files_only):
            return cls()

        def encode(self, text):
            return list(text)

    fake = type(sys)("transformers")
    fake.AutoTokenizer = AutoTokenizer
    monkeypatch.setitem(sys.modules, "transformers", fake)
    code = """
    @input_formatter
    def read(payload: dict, tokenizer=None) -> dict:
        return {"inputs": payload["inputs"], "parameters": {"max_new_tokens": len(tokenizer.encode(payload["inputs"]))}}
    """
    host, _ = play(code, {"inputs": "four"}, [{"generated_text": "y"}])
    assert host.asked[0][2]["parameters"] == {"max_new_tokens": 4}
