"""Hostile `tokenizer.json` in models with translators: each is served or refused by a sentence, and others answered."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.raw_http import Answer
from tests.models import folders

GOOD = b"anna works for [MASK]"
TEXTS = (GOOD, b"a" * 40 + b"b", b"a " * 2**18, b"[MASK]" * 1000)
WORDS = {word: place for place, word in enumerate(folders.WORDS)}
MEMORY = 2**30
"""Bytes by which the server may grow, whatever is in such a file."""


def document(**parts: Any) -> bytes:
    """A tokenizer's file with other parts."""
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
    }
    return json.dumps(whole | parts).encode()


def replace(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def model(kind: str, **fields: Any) -> dict[str, Any]:
    return {"model": {"type": kind, **fields}}


def nested(part: str, name: str, levels: int) -> bytes:
    inner = f'{{"type": "Sequence", "{name}": [' * levels + "]}" * levels
    return document(**{part: "HERE"}).replace(b'"HERE"', inner.encode())


def many_special(count: int) -> bytes:
    special = {"id": "[CLS]", "ids": [1] * count, "tokens": ["[CLS]"] * count}
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    return document(
        post_processor={
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": {"[CLS]": special},
        }
    )


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


HOSTILE: dict[str, Callable[[], bytes]] = {
    "deep_list": lambda: b"[" * 200_000,
    "deep_normalizer": lambda: nested("normalizer", "normalizers", 50_000),
    "deep_decoder": lambda: nested("decoder", "decoders", 60),
    "backtracking": lambda: document(pre_tokenizer=split("(a+)+$")),
    "backtracking_normalizer": lambda: document(normalizer=replace("", Regex="(a|a)*$")),
    "growing": lambda: document(
        normalizer={"type": "Sequence", "normalizers": [replace("a" * 100, String="a")] * 5}
    ),
    "growing_by_pattern": lambda: document(
        normalizer={"type": "Sequence", "normalizers": [replace("aa", Regex="a|$")] * 30}
    ),
    "growing_prefix": lambda: document(normalizer={"type": "Prepend", "prepend": "a" * 2**22}),
    "growing_decoder": lambda: document(
        decoder={"type": "Sequence", "decoders": [replace("a" * 100, String="a")] * 5}
    ),
    "many_special_tokens": lambda: many_special(500_000),
    "pattern_that_is_none": lambda: document(pre_tokenizer=split("(((")),
    "model_is_a_number": lambda: document(model=5),
    "vocabulary_is_a_number": lambda: document(**model("BPE", vocab=5, merges=[])),
    "merges_of_nothing": lambda: document(**model("BPE", vocab={"a": 0}, merges=[["x", "y"]])),
    "ids_below_zero": lambda: document(**model("WordLevel", vocab={"a": -1}, unk_token="a")),
    "ids_at_the_end": lambda: document(**model("WordLevel", vocab=WORDS | {"a": 2**32 - 1}, unk_token="a")),
    "one_id_for_all": lambda: document(
        **model("WordLevel", vocab=dict.fromkeys(WORDS, 7), unk_token="[UNK]")
    ),
    "no_unknown_token": lambda: document(**model("WordPiece", vocab={"a": 0}, unk_token="none")),
    "scores_that_are_none": lambda: document(**model("Unigram", vocab=[["a", "x"]], unk_id=0)),
    "unknown_out_of_range": lambda: document(**model("Unigram", vocab=[["a", 0.0]], unk_id=99)),
    "charsmap_of_garbage": lambda: document(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    ),
    "part_of_no_kind": lambda: document(normalizer={"type": "Brainwash"}),
    "added_tokens_are_a_text": lambda: document(added_tokens="many"),
    "long_padding": lambda: document(
        padding={
            "strategy": {"Fixed": 2**31},
            "direction": "Right",
            "pad_to_multiple_of": 2**31,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        }
    ),
    "long_truncation": lambda: document(
        truncation={"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 2**31}
    ),
    "many_added_tokens": lambda: document(
        added_tokens=[
            {
                "id": 1000 + i,
                "content": f"added {i}",
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False),
            }
            for i in range(20_000)
        ]
    ),
    "a_long_word": lambda: document(**model("WordLevel", vocab=WORDS | {"x" * 2**25: 9}, unk_token="[UNK]")),
    "a_hundred_megabytes": lambda: document(
        **model(
            "WordLevel",
            vocab=WORDS | {f"a word of number {i}": 50 + i for i in range(3_400_000)},
            unk_token="[UNK]",
        )
    ),
}


SAMPLE = ("deep_normalizer", "backtracking", "growing_decoder", "ids_at_the_end", "part_of_no_kind")
"""One of each kind: too deep, too slow, too long, numbers that are none, and parts that are none."""

EACH = [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.soak) for name in HOSTILE]


def lay_out(place: Path, tokenizer: bytes | None = None) -> Path:
    folders.fill_mask(place)
    with (place / "serving.properties").open("a") as file:
        file.write("minWorkers=1\nmaxWorkers=1\n")
    if tokenizer is not None:
        (place / "tokenizer.json").write_bytes(tokenizer)
    return place


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DjlServing]:
    root = tmp_path_factory.mktemp("tokenizers")
    lay_out(root / "store" / "neighbour")
    with djl_serving(root / "log", "-s", root / "store", variables={"RUST_BACKTRACE": "0"}) as running:
        yield running


class Neighbour:
    """Asks another model one time after the other, and counts the answers."""

    def __init__(self, server: DjlServing) -> None:
        self._server = server
        self._ends = threading.Event()
        self.answers: list[Answer] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Neighbour":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(0.002):
            self.answers.append(self._server.infer("POST", "/predictions/neighbour", GOOD))


def resident(server: DjlServing) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


@pytest.mark.parametrize("name", EACH)
def test_a_hostile_tokenizer_is_served_or_refused_and_neighbours_are_answered(
    server: DjlServing, tmp_path: Path, name: str
) -> None:
    place = lay_out(tmp_path / name, HOSTILE[name]())
    before = resident(server)
    with Neighbour(server) as neighbour:
        loaded = server.manage("POST", f"/models?url={place}")
        if loaded.status == 200:
            for text in TEXTS:
                answer = server.infer("POST", f"/predictions/{name}", text)
                assert answer.status in (200, 400, 424, 500, 503), answer
                if answer.status != 200:
                    assert answer.document["message"], answer
            server.manage("DELETE", f"/models/{name}")
        else:
            assert loaded.status == 500, loaded
            assert "tokenizer.json" in loaded.document["message"], loaded
    assert neighbour.answers
    assert {answer.status for answer in neighbour.answers} == {200}
    assert resident(server) < before + MEMORY
    assert server.infer("POST", "/predictions/neighbour", GOOD).status == 200


@pytest.mark.soak
def test_while_a_hundred_megabytes_are_read_the_interpreter_is_everybodys(
    server: DjlServing, tmp_path: Path
) -> None:
    """The package keeps the interpreter from beginning to end: a neighbour's answer in between says whose it is."""
    place = lay_out(tmp_path / "large", HOSTILE["a_hundred_megabytes"]())
    asked, listed = 0, ""
    loading = server.manage("POST", f"/models?url={place}&synchronous=false")
    assert loading.status == 202, loading
    while listed != "Healthy":
        assert server.infer("POST", "/predictions/neighbour", GOOD).status == 200
        asked += 1
        listed = server.status_of("large")
    assert asked > 50
    assert [
        one.name() for one in psutil.Process(server.process.pid).children() if one.memory_info().rss > 2**28
    ]
    server.manage("DELETE", "/models/large")
