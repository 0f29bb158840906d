import json
from pathlib import Path

import numpy as np
import pytest

from trivium.servers.triton.words.v2 import V2
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.operations import (
    Describe,
    Infer,
    Listing,
    Live,
    ModelDescription,
    Readiness,
    Ready,
    ResponsePart,
    ServerDescription,
    Statistics,
    VersionStatus,
)
from trivium.types.payload import Raw, RawPart
from trivium.types.spec import Batching, ModelSpec, TensorSpec
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import (
    BatchStatistics,
    Duration,
    GenerationStatistics,
    StatisticsReport,
    VersionStatistics,
)
from trivium.types.wire import Body, Head
from trivium.wires.v2 import documents
from trivium.wires.v2.abilities import EXTENSIONS, KServeOptions
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.original import V2Original

SPEC = ModelSpec(
    "m",
    "2",
    Path("m"),
    "identity",
    "",
    inputs=(TensorSpec("x", DataType.FP32, (-1, 4)),),
    outputs=(TensorSpec("y", DataType.BYTES, ()),),
)


class MadeDocuments:
    def platform(self, spec):
        return f"platform of {spec.name}"

    def config_json(self, spec):
        return b'{"name":"%b"}' % spec.name.encode()

    def config_bytes(self, spec):
        raise NotImplementedError


PROTOCOL: WireProtocol = KServeHttp(
    "trivium", "1.2", KServeOptions(original=V2Original(documents=MadeDocuments()))
)


def exchange(method, path, *parts, body=b"", headers=None, protocol=PROTOCOL):
    """A whole exchange but for the core: the operation, and the answers to these parts as bytes."""
    head = Head(method, path, "", headers or {}, len(body))
    try:
        operation, encoder = protocol.decode(head, protocol.head(head), Body(body))
    except ServeError as error:
        return None, [as_bytes(protocol.refuse(error))]
    return operation, [as_bytes(encoder.encode(part)) for part in parts]


def as_bytes(answer):
    content = b"".join(answer.buffers)
    assert answer.size == len(content)
    return b"%d\r\n%b\r\n%b" % (answer.status, answer.fields, content)


def answer(value):
    return ResponsePart(answer=value)


def ok(document):
    return b"200\r\nContent-Type: application/json\r\n\r\n" + document


def test_health():
    yes, no = answer(Readiness(True)), answer(Readiness(False, "draining"))
    empty = b"%d\r\nContent-Type: text/plain\r\n\r\n"
    assert exchange("GET", "/v2/health/live", yes) == (Live(), [ok(b'{"live":true}')])
    assert exchange("GET", "/v2/health/ready", yes, no) == (Ready(), [ok(b'{"ready":true}'), empty % 400])
    original = KServeHttp("triton", "2", KServeOptions(as_original=True))
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert exchange("GET", path, yes, protocol=original)[1] == [empty % 200]


def test_a_model_says_why_it_is_not_ready():
    operation, answers = exchange(
        "GET",
        "/v2/models/m/versions/2/ready",
        answer(Readiness(True)),
        answer(Readiness(False, "loading")),
        answer(Readiness(False)),
    )
    assert operation == Ready("m", "2")
    assert answers == [
        b"200\r\nContent-Type: text/plain\r\n\r\n",
        b'400\r\nContent-Type: application/json\r\n\r\n{"error":"loading"}',
        b'400\r\nContent-Type: application/json\r\n\r\n{"error":"The model \'m\' is not ready."}',
    ]


def test_server_metadata():
    part = answer(ServerDescription("core", "0", ServerState.SERVING))
    assert exchange("GET", "/v2", part) == (
        Describe(),
        [
            ok(
                b'{"name":"trivium","version":"1.2","extensions":'
                + json.dumps(EXTENSIONS, separators=(",", ":")).encode()
                + b"}"
            )
        ],
    )


@pytest.mark.parametrize(
    ("batching", "shapes"),
    [(Batching(), (b"[-1,4]", b"[]")), (Batching(True, 8, True), (b"[-1,-1,4]", b"[-1]"))],
)
def test_model_metadata(batching, shapes):
    spec = ModelSpec(
        SPEC.name, SPEC.version, SPEC.root, SPEC.engine, "", SPEC.inputs, SPEC.outputs, batching=batching
    )
    assert exchange("GET", "/v2/models/m", answer(ModelDescription(spec, ("1", "2")))) == (
        Describe("m"),
        [
            ok(
                b'{"name":"m","versions":["1","2"],"platform":"platform of m",'
                b'"inputs":[{"name":"x","datatype":"FP32","shape":%b}],'
                b'"outputs":[{"name":"y","datatype":"BYTES","shape":%b}]}' % shapes
            )
        ],
    )


def test_model_configuration():
    part = answer(ModelDescription(SPEC, ("2",)))
    assert exchange("GET", "/v2/models/m/versions/2/config", part) == (
        Describe("m", "2"),
        [ok(b'{"name":"m"}')],
    )


@pytest.mark.parametrize(("original", "status"), [(V2, b"200"), (V2Original(), b"404")])
def test_who_hands_over_documents_describes_a_model_of_any_format(original, status):
    part = answer(ModelDescription(SPEC, ("2",)))
    protocol = KServeHttp("trivium", "1.2", KServeOptions(original=original))
    (metadata,) = exchange("GET", "/v2/models/m", part, protocol=protocol)[1]
    (config,) = exchange("GET", "/v2/models/m/config", part, protocol=protocol)[1]
    assert isinstance(json.loads(metadata.partition(b"\r\n\r\n")[2])["platform"], str)
    assert config.startswith(status)


def test_statistics():
    once = Duration(1, 10)
    version = VersionStatistics(
        "m", "2", 99, 5, 3, Duration(4, 100), once, Duration(4, 20), once, Duration(4, 30), once,
        (BatchStatistics(2, once, Duration(1, 20), once),), {"invalid": 1}, 0, 0,
    )  # fmt: skip
    operation, answers = exchange("GET", "/v2/models/m/stats", answer(StatisticsReport((version,))))
    assert operation == Statistics("m")
    assert answers == [
        ok(
            b'{"model_stats":[{"name":"m","version":"2","last_inference":99,"inference_count":5,'
            b'"execution_count":3,"inference_stats":{"success":{"count":4,"ns":100},"fail":{"count":1,"ns":10},'
            b'"queue":{"count":4,"ns":20},"compute_input":{"count":1,"ns":10},'
            b'"compute_infer":{"count":4,"ns":30},"compute_output":{"count":1,"ns":10},'
            b'"cache_hit":{"count":0,"ns":0},"cache_miss":{"count":0,"ns":0}},"response_stats":{},'
            b'"batch_stats":[{"batch_size":2,"compute_input":{"count":1,"ns":10},'
            b'"compute_infer":{"count":1,"ns":20},"compute_output":{"count":1,"ns":10}}],"memory_usage":[]}]}'
        )
    ]
    assert exchange("GET", "/v2/models/stats", answer(StatisticsReport(()))) == (
        Statistics(),
        [ok(b'{"model_stats":[]}')],
    )


def test_statistics_by_tokens_are_an_object_of_their_own():
    none = Duration()
    counts = GenerationStatistics(
        3, 40, 2, Duration(20, 9), Duration(2, 5), (), Duration(38, 7), 4, 0.25, 2**31
    )
    version = VersionStatistics(
        "m", "2", 0, 0, 0, none, none, none, none, none, none, (), {}, 0, 6, generation=counts
    )
    _, (text,) = exchange("GET", "/v2/models/m/stats", answer(StatisticsReport((version,))))
    (row,) = json.loads(text.partition(b"\r\n\r\n")[2])["model_stats"]
    assert row["generation_stats"] == {
        "prompt_tokens": 3,
        "cached_tokens": 0,
        "generated_tokens": 40,
        "wasted_tokens": 2,
        "steps": {"count": 20, "ns": 9},
        "first_token": {"count": 2, "ns": 5},
        "between_tokens": {"count": 38, "ns": 7},
        "running": 4,
        "waiting": 6,
        "cache_share": 0.25,
        "cache_bytes": 2**31,
    }


def test_a_listing_is_the_index():
    listing = Listing(
        tuple(
            VersionStatus("m", str(index), state, "why" * (state is VersionState.FAILED))
            for index, state in enumerate(VersionState)
            if state is not VersionState.REGISTERED
        )
    )
    _, answers = exchange("GET", "/v2", answer(listing))
    entries = json.loads(answers[0].partition(b"\r\n\r\n")[2])
    assert entries[-1] == {"name": "m", "version": "6", "state": "UNAVAILABLE", "reason": "why"}
    assert [entry["state"] for entry in entries] == [
        documents.INDEX_STATES[state] for state in list(VersionState)[1:]
    ]


def test_a_model_that_was_never_to_be_loaded_has_a_name_in_the_index():
    listing = Listing((VersionStatus("m", "", VersionState.REGISTERED),))
    _, answers = exchange("GET", "/v2", answer(listing))
    assert json.loads(answers[0].partition(b"\r\n\r\n")[2]) == [{"name": "m"}]


@pytest.mark.parametrize(
    ("part", "status", "words"),
    [
        (ResponsePart(error=ServeError(Code.NOT_FOUND, "no model 'm'")), b"404", b"no model 'm'"),
        (ResponsePart(), b"500", b"no answer"),
        (answer(ModelDescription(SPEC, ("\ud800",))), b"500", b"could not be written"),
    ],
)
def test_a_read_that_fails_is_an_error(part, status, words):
    _, answers = exchange("GET", "/v2/models/m", part)
    assert answers[0].startswith(status)
    assert words in answers[0]


def test_infer():
    text = b'{"id":"7","inputs":[{"name":"x","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}'
    headers = {b"inference-header-content-length": b"%d" % len(text)}
    operation, _ = exchange("POST", "/v2/models/m/infer", body=text + b"\1\2", headers=headers)
    assert isinstance(operation, Infer)
    part = ResponsePart(operation.payload, model="m", version="2")
    _, answers = exchange("POST", "/v2/models/m/infer", part, body=text + b"\1\2", headers=headers)
    assert answers == [
        ok(
            b'{"id":"7","model_name":"m","model_version":"2",'
            b'"outputs":[{"name":"x","datatype":"INT8","shape":[2],"data":[1,2]}]}'
        )
    ]
    assert np.array_equal(operation.payload["x"], [1, 2])


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/v2/models/m/load", b"404", b"Routes near it"),
        (
            "GET",
            "/v2/models/m/infer",
            b"405\r\nContent-Type: application/json\r\nAllow: POST\r\n",
            b"use POST",
        ),
        ("GET", "/v3", b"404", b"Routes near it: /v2"),
        ("GET", "/v2/models/\udcff/nothing", b"404", b"udcff"),
    ],
)
def test_refusals(method, path, status, words):
    operation, answers = exchange(method, path)
    assert operation is None
    assert answers[0].startswith(status)
    assert words in answers[0]


@pytest.mark.parametrize(
    ("size", "length", "costly"),
    [
        (131072, None, False),
        (131073, None, True),
        (10**6, b"100", False),
        (10**6, b"131073", True),
        (10**6, b"x", False),
    ],
)
def test_large_json_is_costly(size, length, costly):
    headers = {} if length is None else {b"inference-header-content-length": length}
    assert PROTOCOL.is_costly(Head("POST", "/v2/models/m/infer", "", headers, size), bytes(size)) is costly


@pytest.mark.parametrize(
    ("action", "length", "lead"),
    [
        ("infer", b"151", 151),
        ("infer", b"0", 0),
        ("infer", b"-1", 0),
        ("infer", b"x", 0),
        ("infer", b"1" * 50, 0),
        ("infer", None, 0),
        ("generate", b"151", 0),
    ],
)
def test_a_head_tells_where_the_data_begins(action, length, lead):
    headers = {} if length is None else {b"inference-header-content-length": length}
    target = PROTOCOL.head(Head("POST", f"/v2/models/m/{action}", "", headers, 10**6))
    assert (target.model, target.takes_body, target.lead) == ("m", True, lead)


def test_a_raw_answer_is_refused_in_the_protocols_form():
    part = ResponsePart(Raw((RawPart(b"x"),)), model="m")
    _, answers = exchange("POST", "/v2/models/m/infer", part, body=b'{"inputs":[]}')
    assert answers[0].startswith(b'501\r\nContent-Type: application/json\r\n\r\n{"error":"The model \'m\'')
