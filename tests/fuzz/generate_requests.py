"""Requests to generate in every dialect: what each reads it can hand on, and answer in its own form."""

import json
import random
from collections.abc import Callable

import msgspec
from tests.fuzz import mutations
from tests.fuzz.djl_routes import check, check_refusal
from tests.fuzz.target import Change, Target

from trivium.codecs.generation import as_tensors, to_generate
from trivium.codecs.protobuf_schema import classes_of
from trivium.core.workers.generation_wire import read_request, request_text
from trivium.servers.djl.wire.grpc import PREDICT as DJL_PREDICT
from trivium.servers.djl.wire.grpc import DjlGrpc
from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.torchserve.wire.grpc import STREAM, TorchServeGrpc
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.types.errors import Code, ServeError
from trivium.types.generation import (
    Finish,
    Generate,
    Generated,
    GeneratedChoice,
    GenerationUsage,
    TokenText,
)
from trivium.types.interfaces import RpcProtocol
from trivium.types.operations import Defer, Fetched, Infer, ResponsePart
from trivium.types.payload import Raw
from trivium.types.wire import Body, Head, RpcAnswer, RpcCall
from trivium.types.wire import Target as WireTarget
from trivium.wires.openai.http import OpenAiHttp
from trivium.wires.v2.generate import decode_generate
from trivium_worker.wire import values

CHAT = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": "be short"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "n"},
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
    "logprobs": True,
    "top_logprobs": 2,
    "temperature": 0.5,
    "stop": ["a", "b"],
    "logit_bias": {"5": -1},
    "n": 2,
    "tools": [],
    "chat_template_kwargs": {"x": 1},
}
COMPLETION = {
    "model": "m",
    "prompt": ["a", "b"],
    "max_tokens": 5,
    "logprobs": 1,
    "best_of": 3,
    "echo": False,
    "seed": 7,
    "top_k": 3,
    "suffix": None,
}
LMI = {
    "inputs": "hi",
    "parameters": {
        "do_sample": True,
        "details": True,
        "top_n_tokens": 1,
        "stop_sequences": ["x"],
        "truncate": 5,
    },
    "stream": True,
}
LLM_API = {"text": "hi", "temperature": 0.5, "top_k": 5, "stop_strings": ["a"]}
EMBEDDED = {"inputs_embeds": [[0.5, 1], [2, 3]], "max_new_tokens": 3}
FIELDS = {
    "text_input": "hi",
    "stream": False,
    "sampling_parameters": '{"temperature": "0"}',
    "parameters": {"n": 2},
}
IDS = {"input_ids": [1, 2, 3], "min_tokens": 1, "exclude_input_in_output": True}
_TOKENS = (TokenText(1, "é", -0.5, ((1, "é", -0.5), (2, "", float("-inf")))), TokenText(-1, "", None))
PARTS = (
    ResponsePart(Generated((GeneratedChoice(0, "a", (1,), _TOKENS),)), final=False),
    ResponsePart(
        Generated((GeneratedChoice(1, "", (2,)), GeneratedChoice(0, "é", (3,), _TOKENS, Finish.STOP)))
    ),
    ResponsePart(Generated(usage=GenerationUsage(1, 2))),
    ResponsePart(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),))),
    ResponsePart(error=ServeError(Code.MODEL_FAILED, "why")),
    ResponsePart(),
)


def handed_on(generate: Generate) -> None:
    """It crosses to a worker and is there what it was here."""
    fields, pieces = request_text(generate)
    shape = fields["generate"][1:] if len(fields["generate"]) > 1 else None
    data = [memoryview(piece).cast("B") for piece in pieces]
    told = values.Generate(data[0], data[1] if shape else None, tuple(shape) if shape else None)
    found = read_request(told)
    assert msgspec.structs.replace(found, embeds=None) == msgspec.structs.replace(
        generate, embeds=None, lease=None
    )


def reading(protocol: object, path: str, kind: bytes = b"application/json") -> Callable[..., None]:
    """Read bodies as one protocol does, for a model that generates, and write an answer."""

    def read(data: bytes, chance: random.Random) -> None:
        head = Head("POST", path, "model_name=m", {b"content-type": kind}, len(data))
        parameters = chance.choice(({}, {"output_formatter": "jsonlines"}, {"tgi_compat": "true"}))
        try:
            operation, encoder = protocol.decode(head, protocol.head(head), Body(data))
        except ServeError as error:
            check_refusal(protocol.refuse(error), error)
            raise
        assert isinstance(operation, Infer)
        assert isinstance(operation.payload, Raw)
        try:
            generate = operation.as_generate(operation.payload, parameters)
        except ServeError as error:
            check_refusal(encoder.encode(ResponsePart(error=error)), error)
            raise
        handed_on(generate)
        for _ in range(chance.randrange(3)):
            check_answer(encoder.encode(PARTS[0]))
        check_answer(encoder.encode(chance.choice(PARTS[1:])))

    return read


def kept(data: bytes, chance: random.Random) -> None:
    """Read a body whose answer is fetched later, and write pages of it."""
    head = Head("POST", "/invocations", "model_name=m", {b"x-synchronous": b"false"}, len(data))
    operation, _ = DJL.decode(head, DJL.head(head), Body(data))
    assert isinstance(operation, Defer)
    assert operation.write is not None
    handed_on(operation.infer.as_generate(operation.infer.payload, {}))
    given = [PARTS[0]] * chance.randrange(3) + [chance.choice(PARTS[1:])]
    parts = [part for each in given if (part := operation.write(each)) is not None]
    assert [part.final for part in parts] == [False] * (len(parts) - 1) + [True]
    head = Head("POST", "/invocations", "", {b"x-starting-token": b"0" * 36}, 0)
    _, encoder = DJL.decode(head, DJL.head(head), Body(b""))
    check_answer(encoder.encode(ResponsePart(answer=Fetched(tuple(parts), len(parts), True, True))))


def calling(protocol: RpcProtocol, method: str, asked: Callable[[bytes], bytes]) -> Callable[..., None]:
    """Read bodies that come in the message that is `asked`, for a model that generates, and write an answer."""

    def read(data: bytes, chance: random.Random) -> None:
        operation, encoder = protocol.decode(RpcCall(method), asked(data))
        assert isinstance(operation, Infer)
        assert isinstance(operation.payload, Raw)
        try:
            generate = operation.as_generate(operation.payload, {"tgi_compat": chance.choice(("", "true"))})
        except ServeError as error:
            check_ended(encoder.encode(ResponsePart(error=error)))
            raise
        handed_on(generate)
        for part in [PARTS[0]] * chance.randrange(3) + [chance.choice(PARTS[1:])]:
            answer = encoder.encode(part)
            assert answer.code or answer.final == part.final

    return read


def check_ended(answer: RpcAnswer) -> None:
    """It ends the call with a status."""
    assert answer.code
    assert answer.details


def check_answer(answer: object) -> None:
    """It can be sent; what it says is not looked at: it may be a piece."""
    check(msgspec.structs.replace(answer, fields=answer.fields.replace(b"application/json", b"x/y")))


def read_fields(data: bytes, chance: random.Random) -> None:
    """Read a body of the v2 route generate."""
    infer = decode_generate(WireTarget("generate", "m", "", True), Body(data))
    generate, _ = to_generate(infer.payload, infer.parameters, "m")
    handed_on(generate)
    as_tensors(PARTS[1].payload)


def corpus(*documents: dict) -> tuple[bytes, ...]:
    return tuple(json.dumps(document).encode() for document in documents)


def form(fields: dict) -> bytes:
    """The fields as a form, whose values are text or JSON."""
    boundary = b"--b\r\n"
    parts = [
        b'Content-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (name.encode(), (value if isinstance(value, str) else json.dumps(value)).encode())
        for name, value in fields.items()
    ]
    return boundary + boundary.join(parts) + b"--b--"


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """JSON that is right, but for odd values."""
    return mutations.json_changed(entry, chance)


NAMES = tuple(
    b'"%s"' % name.encode()
    for document in (CHAT, COMPLETION, LMI, LMI["parameters"], LLM_API, EMBEDDED, FIELDS, IDS)
    for name in document
)
WORDS = (*NAMES, *mutations.JSON_VALUES)
OPENAI, DJL, TORCHSERVE = OpenAiHttp(lambda: "id"), DjlHttp(lambda: "id"), TorchServeHttp(lambda: "id")
KIND = b"multipart/form-data; boundary=b"
MESSAGES = classes_of(
    "fuzz",
    {
        "Djl": "1 string model_name\n5 bytes input",
        "TorchServe": "1 string model_name\n3 map<string,bytes> input",
    },
)


def djl_message(data: bytes) -> bytes:
    return bytes(MESSAGES["Djl"](model_name="m", input=data).SerializeToString())


def torchserve_message(data: bytes) -> bytes:
    """A JSON object's members as inputs; what is none as one."""
    try:
        fields = json.loads(data)
        given = {name.encode().decode(): json.dumps(value).encode() for name, value in fields.items()}
    except (ValueError, AttributeError, RecursionError):
        given = {"data": data}
    return bytes(MESSAGES["TorchServe"](model_name="m", input=given).SerializeToString())


LMI_CHAT = {**CHAT, "stream_options": None, "n": 1}
TARGETS = (
    Target(
        "openai_chat", corpus(CHAT), reading(OPENAI, "/v1/chat/completions"), tokens=WORDS, rebuild=rebuilt
    ),
    Target(
        "openai_completion",
        corpus(COMPLETION),
        reading(OPENAI, "/v1/completions"),
        tokens=WORDS,
        rebuild=rebuilt,
    ),
    Target(
        "lmi",
        corpus(LMI, LMI_CHAT),
        reading(DJL, "/invocations"),
        tokens=WORDS,
    ),
    Target(
        "llm_api",
        corpus(LLM_API, EMBEDDED),
        reading(TORCHSERVE, "/predictions/m"),
        tokens=WORDS,
        rebuild=rebuilt,
    ),
    Target(
        "llm_api_form",
        (form(LLM_API), form(EMBEDDED)),
        reading(TORCHSERVE, "/predictions/m", KIND),
        tokens=(b"--b", b'name="text"', b'name="inputs_embeds"', b"\r\n\r\n", *mutations.JSON_VALUES),
    ),
    Target("lmi_later", corpus(LMI, LMI_CHAT), kept, tokens=WORDS),
    Target(
        "lmi_rpc",
        corpus(LMI, LMI_CHAT),
        calling(DjlGrpc(lambda: "id"), DJL_PREDICT, djl_message),
        tokens=WORDS,
    ),
    Target(
        "llm_api_rpc",
        corpus(LLM_API, EMBEDDED),
        calling(TorchServeGrpc(lambda: "id"), STREAM, torchserve_message),
        tokens=WORDS,
        rebuild=rebuilt,
    ),
    Target("generate_fields", corpus(FIELDS, IDS), read_fields, tokens=WORDS, rebuild=rebuilt),
)
