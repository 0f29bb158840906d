"""Requests that a server prints: those of its profile, for what each model takes."""

import json
import shlex
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from trivium.catalogue import CATALOGUE
from trivium.cli.example_requests import example_request, print_requests
from trivium.demo import places
from trivium.types.datatype import DataType
from trivium.types.spec import Batching, ModelSpec, TensorSpec, TranslatorSpec

URL = "http://h:1"
NATIVE = CATALOGUE.servers["native"]
BODY = '{"inputs": "Hello"}'
PICTURE = str(places.pictures()[7])


def spec(name: str = "m", *inputs: TensorSpec) -> ModelSpec:
    return ModelSpec(name, "1", Path("/m"), "onnx", "model.onnx", inputs=inputs)


TENSORS = spec("m", TensorSpec("x", DataType.FP32, (2,)), TensorSpec("it's", DataType.BYTES, (-1,)))
LARGE = spec("m", TensorSpec("x", DataType.FP32, (3, 224, 224)))
FILES = spec("m")
DATA = [
    {"name": "x", "shape": [2], "datatype": "FP32", "data": [0, 0]},
    {"name": "it's", "shape": [1], "datatype": "BYTES", "data": ["text"]},
]


@pytest.mark.parametrize(
    ("profile", "model", "url", "words"),
    [
        ("native", TENSORS, "/v2/models/m/infer", ["-d"]),
        ("native", LARGE, "/v2/models/m", []),
        ("native", FILES, "/predictions/m", ["-d", BODY]),
        ("triton", TENSORS, "/v2/models/m/infer", ["-d"]),
        ("triton", LARGE, "/v2/models/m", []),
        ("triton", FILES, "/v2/models/m", []),
        (
            "djl",
            TENSORS,
            "/predictions/m",
            ["-d", "Content-Type: application/json", "Accept: application/json"],
        ),
        ("djl", LARGE, "/predictions/m", ["-T", "FILE", "Accept: application/json"]),
        ("djl", FILES, "/predictions/m", ["-d", BODY]),
        ("torchserve", TENSORS, "/predictions/m", ["-d", "Content-Type: application/json"]),
        ("torchserve", LARGE, "/predictions/m", ["-T", "FILE"]),
        ("torchserve", FILES, "/predictions/m", ["-d", BODY]),
    ],
)
def test_a_request_is_the_profiles(profile: str, model: ModelSpec, url: str, words: list[str]) -> None:
    command, *given = shlex.split(example_request(model, URL, CATALOGUE.servers[profile]))
    assert command == "curl"
    assert URL + url in given
    assert set(words) <= set(given)
    if "-d" in words and BODY not in words:
        assert json.loads(given[given.index("-d") + 1]) == {"inputs": DATA}
    assert ("-d" in given, "-T" in given) == ("-d" in words, "-T" in words)


@pytest.mark.parametrize(
    ("translator", "given"),
    [
        ("image-classification", ["-T", PICTURE]),
        ("custom", ["-T", PICTURE]),
        ("text-classification", ["-H", "Content-Type: application/json", "-d", '{"inputs": "a text"}']),
        ("nobodys", ["-T", PICTURE]),
    ],
)
def test_a_request_is_what_the_translator_takes(translator: str, given: list[str]) -> None:
    model = replace(TENSORS, translator=TranslatorSpec(translator))
    words = shlex.split(example_request(model, URL, NATIVE))
    assert set(given) <= set(words)
    assert f"{URL}/predictions/m" in words
    assert "/v2/" in example_request(model, URL, CATALOGUE.servers["triton"])


def test_a_name_is_quoted() -> None:
    assert f"{URL}/v2/models/a%20b%27/infer" in example_request(spec("a b'", *TENSORS.inputs), URL, NATIVE)


def test_rows_are_shown_where_a_model_batches() -> None:
    model = ModelSpec(
        "m", "1", Path("/m"), "onnx", "", inputs=TENSORS.inputs[:1], batching=Batching(batch_axis=True)
    )
    assert '"shape":[1,2]' in example_request(model, URL, NATIVE)


def printed(profile: str, *specs: ModelSpec) -> list[str]:
    file = StringIO()
    print_requests(Console(file=file, width=80), URL, specs, CATALOGUE.servers[profile])
    return file.getvalue().splitlines()


def test_the_last_line_says_what_to_do_next() -> None:
    *requests, last = printed("native", TENSORS, spec("n", *TENSORS.inputs))
    assert len(requests) == 2
    assert last.startswith("Next: paste a request into another terminal; ")
    assert "FILE" in printed("djl", LARGE)[-1]


@pytest.mark.parametrize("profile", ["djl", "torchserve"])
def test_the_only_model_is_asked_without_its_name_too(profile: str) -> None:
    for model, words in ((TENSORS, "-d"), (LARGE, "-X POST"), (FILES, BODY)):
        _, nameless, _ = printed(profile, model)
        assert f"{URL}/invocations" in nameless
        assert words in nameless
    assert len(printed(profile, TENSORS, FILES)) == 3
    assert len(printed("triton", TENSORS)) == 2


@pytest.mark.parametrize(
    ("profile", "files", "route"),
    [
        ("native", {"tokenizer_config.json": '{"chat_template": "x"}'}, "/v1/chat/completions"),
        ("djl", {"chat_template.jinja": "x"}, "/v1/chat/completions"),
        ("torchserve", {}, "/v1/completions"),
        ("native", {"tokenizer_config.json": "no JSON"}, "/v1/completions"),
        ("native", {"tokenizer_config.json": "5"}, "/v1/completions"),
        ("triton", {}, "/v2/models/m/generate"),
    ],
)
def test_a_language_model_is_asked_for_text(
    tmp_path: Path, profile: str, files: dict[str, str], route: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    model = replace(TENSORS, engine="hf", root=tmp_path)
    words = shlex.split(example_request(model, URL, CATALOGUE.servers[profile]))
    assert f"{URL}{route}" in words
    asked = json.loads(words[words.index("-d") + 1])
    assert {"prompt", "messages", "text_input"} & asked.keys()


def test_a_server_of_another_protocol_has_nothing_to_paste() -> None:
    file = StringIO()
    print_requests(Console(file=file), URL, [TENSORS], replace(NATIVE, protocols=("plain",)))
    assert file.getvalue() == ""
