"""Translators of texts: what they read, how a tokenizer is made, and answers that are known by construction."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.harness.translation import text_answers, text_translator
from tests.models import folders
from tests.models.folders import WORDS
from tests.models.places import QUESTIONS as TRAINED

from trivium.translators import arguments
from trivium.translators.pictures.pipeline import require_pillow
from trivium.translators.texts import requests
from trivium.translators.texts.embedding import POOLS
from trivium.translators.texts.encoding import TextEncoder
from trivium.types.errors import Code, ServeError

JSON = "application/json"
SENTENCE = "Anna lives in New York and works for Acme Corp."


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores.astype(np.float64)))


def ids(*words: str) -> list[int]:
    return [WORDS.index(word) for word in ("[CLS]", *words, "[SEP]")]


# What is read


@pytest.mark.parametrize(
    ("body", "kind", "rows", "is_list"),
    [
        (b'{"inputs": "a"}', JSON, ["a"], False),
        (b'{"inputs": ["a", "b"]}', f"{JSON}; charset=utf-8", ["a", "b"], True),
        (b'"a"', JSON, ["a"], False),
        (b'["a", 1, true]', JSON, ["a", "1", "true"], True),
        ("é".encode(), "text/plain", ["é"], False),
        (b'{"inputs": "a"}', "", ['{"inputs": "a"}'], False),
    ],
)
def test_texts(body: bytes, kind: str, rows: list[str], is_list: bool) -> None:
    assert requests.parse_texts(body, kind) == (rows, is_list)


@pytest.mark.parametrize(
    ("body", "fields", "rows", "is_list"),
    [
        ({"question": "q", "paragraph": "p"}, {}, [("q", "p")], False),
        ({"question": "q", "context": "p"}, {}, [("q", "p")], False),
        ([{"question": "q", "context": "p"}] * 2, {}, [("q", "p")] * 2, True),
        (None, {"question": "q", "paragraph": "p"}, [("q", "p")], False),
        (None, {"question": "q", "paragraph": "p", "context": "c"}, [("q", "c")], False),
    ],
)
def test_questions(body: object, fields: Mapping[str, str], rows: list, is_list: bool) -> None:
    content, kind = (json.dumps(body).encode(), JSON) if body else (b"", "application/x-www-form-urlencoded")
    assert requests.parse_questions(content, kind, fields) == (rows, is_list)


@pytest.mark.parametrize(
    ("body", "fields", "rows", "is_list"),
    [
        ({"text": "a", "text_pair": "b"}, {}, [("a", "b")], False),
        ({"key": "a", "value": "b"}, {}, [("a", "b")], False),
        ([{"key": "a", "value": "b"}], {}, [("a", "b")], True),
        ({"query": "q", "texts": ["a", "b"]}, {}, [("q", "a"), ("q", "b")], True),
        (None, {"key": "a", "value": "b"}, [("a", "b")], False),
    ],
)
def test_pairs(body: object, fields: Mapping[str, str], rows: list, is_list: bool) -> None:
    content, kind = (json.dumps(body).encode(), JSON) if body else (b"", "")
    assert requests.parse_pairs(content, kind, fields) == (rows, is_list)


def test_candidates() -> None:
    body = {"text": "t", "candidate_labels": ["a", "b"]}
    found = requests.parse_candidates(json.dumps(body).encode())
    assert found.rows == [("t", "This example is a."), ("t", "This example is b.")]
    body |= {"multi_label": True, "hypothesis_template": "about "}
    found = requests.parse_candidates(json.dumps(body).encode())
    assert found == ([("t", "about a"), ("t", "about b")], "t", ["a", "b"], True)


TEXTS, QUESTIONS, PAIRS, CANDIDATES = (
    requests.parse_texts,
    lambda content, kind: requests.parse_questions(content, kind, {}),
    lambda content, kind: requests.parse_pairs(content, kind, {}),
    lambda content, kind: requests.parse_candidates(content),
)
NESTED = b"[" * 200_000


@pytest.mark.parametrize(
    ("parse", "body", "words"),
    [
        *((parse, b"", "Input data is empty.") for parse in (TEXTS, QUESTIONS, PAIRS, CANDIDATES)),
        *((parse, b"{", "Input is not a valid json.") for parse in (TEXTS, QUESTIONS, PAIRS, CANDIDATES)),
        *((parse, NESTED, "Input is not a valid json.") for parse in (TEXTS, QUESTIONS, PAIRS, CANDIDATES)),
        *((parse, b"\xff", "Input is not a valid json.") for parse in (TEXTS, QUESTIONS, PAIRS, CANDIDATES)),
        (TEXTS, b'{"input": "a"}', 'Missing "inputs" in json.'),
        (TEXTS, b"null", 'Missing "inputs" in json.'),
        (TEXTS, b"[]", "Input data is empty"),
        (TEXTS, b'[["a"]]', "Input is not a valid json. Expected a text, found"),
        (TEXTS, b'["\\ud800"]', "half a character"),
        (QUESTIONS, b'"q"', "Input is not a valid json."),
        (QUESTIONS, b"[]", "Input is not a valid json."),
        (QUESTIONS, b'{"question": "q"}', "Missing question or context in json."),
        (QUESTIONS, b'[{"context": "p"}]', "Missing question or context in json."),
        (PAIRS, b'"q"', "Unexpected json type"),
        (PAIRS, b'{"text": "a"}', "Missing text or text_pair in json."),
        (PAIRS, b'[["a", "b"]]', "Input is not a valid json."),
        (PAIRS, b'{"query": "a"}', "Missing texts in json."),
        (CANDIDATES, b'{"text": "t"}', "Missing candidates in input"),
        (CANDIDATES, b'{"text": "t", "candidate_labels": []}', "Missing candidates in input"),
        (CANDIDATES, b'{"text": "t", "candidate_labels": "a"}', "Input is not a valid json."),
        (CANDIDATES, b'{"candidate_labels": ["a"]}', 'Missing "text" in json.'),
        (CANDIDATES, b"[]", "Input is not a valid json."),
    ],
)
def test_a_request_that_holds_no_text_is_refused_in_djls_words(parse, body: bytes, words: str) -> None:
    with pytest.raises(ServeError) as caught:
        parse(body, JSON)
    assert caught.value.code is Code.INVALID
    assert words in caught.value.message


def test_a_form_without_its_fields_is_refused() -> None:
    for parse, words in (
        (requests.parse_questions, "Missing question or context in input."),
        (requests.parse_pairs, "Missing key or value in input."),
    ):
        with pytest.raises(ServeError, match=words):
            parse(b"", "", {"text": "a"})
    with pytest.raises(ServeError, match="not text in UTF-8"):
        requests.parse_texts(b"\xff", "text/plain")


# The tokenizer


def encoder(folder: Path, **given: object) -> TextEncoder:
    found, findings = arguments.read_text(given, "a test")
    assert not [finding for finding in findings if not finding.is_notice]
    return TextEncoder(folder, found)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return folders.embedding(tmp_path / "words")


def test_texts_are_padded_together(words: Path) -> None:
    arrays, encodings = encoder(words).encode(["Anna lives", "music"])
    assert {name: array.dtype.str for name, array in arrays.items()} == {
        "input_ids": "<i8",
        "attention_mask": "<i8",
    }
    assert arrays["input_ids"].tolist() == [ids("anna", "lives"), [*ids("music"), 0]]
    assert arrays["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert [len(encoding.ids) for encoding in encodings] == [4, 4]


def test_pairs_have_types_of_32_bits_where_it_is_asked_for(words: Path) -> None:
    arrays, _ = encoder(words, includeTokenTypes="True", int32="true").encode([("anna", "good music")])
    assert arrays["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 1]]
    assert arrays["token_type_ids"].dtype == np.int32


@pytest.mark.parametrize(
    ("given", "length"),
    [
        ({"maxLength": "5"}, 5),
        ({"modelMaxLength": "6"}, 6),
        ({"maxLength": "9", "modelMaxLength": "6"}, 6),
        ({"truncation": "false"}, 22),
        ({"padding": "max_length", "maxLength": "40"}, 40),
        ({"padding": "max_length", "maxLength": "40", "padToMultipleOf": "16"}, 48),
        ({"padding": "max_length", "maxLength": "40", "padToMultipleOf": "16", "modelMaxLength": "40"}, 32),
        ({"padToMultipleOf": "8"}, 24),
        ({"addSpecialTokens": "false"}, 20),
    ],
)
def test_a_text_is_cut_and_padded_as_the_arguments_say(given, length: int, words: Path) -> None:
    text = " ".join(["music"] * 20)
    assert encoder(words, **given).encode([text, text]).arrays["input_ids"].shape == (2, length)


def test_texts_of_different_length_cannot_go_together_without_padding(words: Path) -> None:
    made = encoder(words, padding="false")
    assert made.encode(["music"]).arrays["input_ids"].shape == (1, 3)
    with pytest.raises(ServeError, match="do_not_pad") as caught:
        made.encode(["music", "the music"])
    assert caught.value.code is Code.INVALID


def test_a_pair_that_cannot_be_cut_to_fit_is_the_clients_fault(words: Path) -> None:
    made = encoder(words, truncation="only_second", maxLength="6")
    with pytest.raises(ServeError, match="cannot be tokenized") as caught:
        made.encode([("music " * 9, "good")])
    assert caught.value.code is Code.INVALID


def test_letters_are_changed_before_a_tokenizer_that_does_not(tmp_path: Path) -> None:
    folder = folders.embedding(tmp_path / "words")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "strip_accents": false}')
    unknown = ids("[UNK]")
    assert encoder(folder).encode(["MUSIC"]).encodings[0].ids == unknown
    assert encoder(folder, doLowerCase="true").encode(["MUSIC"]).encodings[0].ids == ids("music")
    assert encoder(folder).encode(["músic"]).encodings[0].ids == unknown
    assert encoder(folder, stripAccents="true").encode(["músic"]).encodings[0].ids == ids("music")


def test_a_configuration_that_is_named_is_followed(words: Path) -> None:
    config = {"model_max_length": 4, "clean_up_tokenization_spaces": True, "pad_token": "[PAD]"}
    (words / "settings.json").write_text(json.dumps(config))
    made = encoder(words, tokenizerConfigPath="settings.json")
    assert made.encode(["the good music"]).arrays["input_ids"].shape == (1, 4)
    assert made.tokenizer.decode(ids("music", ".")) == "[CLS] music. [SEP]"
    (words / "settings.json").write_text('{"model_max_length": 1e30}')
    made = encoder(words, tokenizerConfigPath="settings.json")
    assert made.encode(["music " * 600]).arrays["input_ids"].shape == (1, 512)
    assert made.tokenizer.decode(ids("music")) == "music"


def test_byte_pairs_of_two_files(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    assert encoder(tmp_path, addSpecialTokens="false").encode(["ab"]).encodings[0].ids == [2]
    (tmp_path / "merges.txt").write_text("a b\na b c\n")
    with pytest.raises(ServeError, match=r"merges.txt:2 has 3 parts"):
        encoder(tmp_path)
    (tmp_path / "merges.txt").write_text("a c\n")
    with pytest.raises(ServeError, match=r"vocab.json makes no tokenizer"):
        encoder(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("tokenizer.json", b"", "tokenizer.json makes no tokenizer"),
        ("tokenizer.json", b"{}", "tokenizer.json makes no tokenizer"),
        ("tokenizer.json", b"[" * 100_000, "tokenizer.json makes no tokenizer"),
        (
            "tokenizer.json",
            b'{"model": {"type": "WordPiece", "vocab": {"a": -1}}}',
            "tokenizer.json makes no",
        ),
        ("tokenizer.json", b"\n\n\xff", "tokenizer.json:3 is no UTF-8 text"),
        ("vocab.txt", b"", r"vocab.txt has no \[UNK\]"),
        ("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n", r"vocab.txt has no \[PAD\]"),
        ("vocab.txt", b"a\nb\na\n", "vocab.txt:3 repeats 'a'"),
        ("vocab.txt", b"\xff", "vocab.txt:1 is no UTF-8 text"),
    ],
)
def test_a_broken_tokenizer_is_named(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ServeError, match=words) as caught:
        encoder(tmp_path)
    assert caught.value.code is Code.LOAD_FAILED


def test_a_model_without_a_tokenizer_is_told_which_files_would_do(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"nor vocab.json with merges.txt, nor vocab.txt") as caught:
        encoder(tmp_path)
    assert caught.value.code is Code.LOAD_FAILED
    with pytest.raises(ServeError, match="names no file inside the model's folder"):
        encoder(tmp_path, tokenizerPath="../other")


def test_a_tokenizer_in_a_folder_of_its_own(words: Path, tmp_path: Path) -> None:
    (words / "vocab.txt").rename(tmp_path / "vocab.txt")
    (words / "pieces").mkdir()
    (tmp_path / "vocab.txt").rename(words / "pieces" / "vocab.txt")
    assert encoder(words, tokenizerPath="pieces").encode(["music"]).encodings[0].ids == ids("music")


@pytest.mark.parametrize(
    ("part", "name"),
    [("padding", "pad_to_multiple_of"), ("truncation", "max_length"), ("truncation", "stride")],
)
def test_a_tokenizer_that_would_fill_the_memory_is_refused(part: str, name: str, tmp_path: Path) -> None:
    document = json.loads((TRAINED / "tokenizer.json").read_bytes())
    document[part][name] = 2**31
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ServeError, match=f"tokenizer.json: {name} is {2**31}, over the limit") as caught:
        encoder(tmp_path)
    assert caught.value.code is Code.LOAD_FAILED


def test_a_tokenizer_damaged_at_any_place_is_read_or_refused(tmp_path: Path) -> None:
    data = (TRAINED / "tokenizer.json").read_bytes()
    chance = np.random.default_rng(24)
    for _ in range(300):
        broken = bytearray(data)
        for place in chance.integers(0, len(data), chance.integers(1, 4)):
            broken[place] = chance.integers(32, 127)
        (tmp_path / "tokenizer.json").write_bytes(broken)
        try:
            encoder(tmp_path).encode(["How is the weather?"])
        except ServeError as error:
            assert error.code in (Code.LOAD_FAILED, Code.INVALID)  # noqa: PT017


# Answers


def test_entities_of_single_tokens(tmp_path: Path) -> None:
    (found,) = text_answers(folders.tokens(tmp_path / "tokens"), [SENTENCE])
    pieces = ["anna", "lives", "in", "new", "york", "and", "works", "for", "acme", "corp", "."]
    shares = softmax(folders.token_table()[ids(*pieces)])
    expected = [
        (1, "B-PER", 0, 4),
        (4, "B-LOC", 14, 17),
        (5, "I-LOC", 18, 22),
        (9, "B-ORG", 37, 41),
        (10, "I-ORG", 42, 46),
    ]
    assert [(row["index"], row["entity"], row["start"], row["end"]) for row in found] == expected
    assert [row["word"] for row in found] == ["anna", "new", "york", "acme", "corp"]
    assert np.allclose([row["score"] for row in found], [shares[row[0]].max() for row in expected], 0, 1e-5)


@pytest.mark.parametrize("strategy", ["simple", "first", "average", "max"])
def test_words_of_one_entity_are_joined(strategy: str, tmp_path: Path) -> None:
    folder = folders.tokens(tmp_path / "tokens", aggregation_strategy=strategy)
    (found,) = text_answers(folder, [SENTENCE[:-1]])  # a full stop would be a piece of the word before it
    assert [(row["entity"], row["word"], row["start"], row["end"], row["index"]) for row in found] == [
        ("PER", "anna", 0, 4, -1),
        ("LOC", "new york", 14, 22, -1),
        ("ORG", "acme corp", 37, 46, -1),
    ]
    shares = softmax(folders.token_table()[[WORDS.index("new"), WORDS.index("york")]]).max(1)
    assert np.isclose(found[1]["score"], shares.mean(), 0, 1e-5)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("none", [("B-ORG", "play"), ("I-PER", "##er")]),
        ("simple", [("ORG", "play"), ("PER", "##er")]),
        ("first", [("ORG", "player")]),
        ("max", [("ORG", "player")]),
        ("average", [("ORG", "player")]),
    ],
)
def test_pieces_of_one_word(strategy: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    folder = folders.tokens(tmp_path / "tokens", aggregation_strategy=strategy)
    (found,) = text_answers(folder, ["the player"])
    rows = softmax(folders.token_table()[[WORDS.index("play"), WORDS.index("##er")]])
    best = {"first": rows[0].max(), "max": rows.max(), "average": rows.mean(0).max()}
    if strategy in best:
        label = {"first": rows[0], "max": rows[rows.max(1).argmax()], "average": rows.mean(0)}[
            strategy
        ].argmax()
        expected = [(folders.LABELS[label][2:], "player")]
        assert np.isclose(found[0]["score"], best[strategy], 0, 1e-5)
    assert [(row["entity"], row["word"]) for row in found] == expected


def test_scores_stay_as_they_are_without_softmax(tmp_path: Path) -> None:
    (found,) = text_answers(folders.tokens(tmp_path / "tokens", softmax="false"), ["anna"])
    assert np.isclose(found[0]["score"], folders.token_table()[WORDS.index("anna")].max())


@pytest.mark.parametrize("pooling", arguments.POOLINGS)
@pytest.mark.parametrize("normalize", ["true", "false"])
def test_vectors_are_pooled(pooling: str, normalize: str, tmp_path: Path) -> None:
    folder = folders.embedding(tmp_path / "vectors", pooling=pooling, normalize=normalize)
    found = text_answers(folder, [{"inputs": ["new york", "music"]}, "anna lives in new york"])
    rows = (("new", "york"), ("music",), ("anna", "lives", "in", "new", "york"))
    assert np.shape(found[0]) == (2, 6)
    for vector, tokens in zip([*found[0], found[1]], rows, strict=True):
        states = folders.vectors()[ids(*tokens)].astype(np.float64)
        weights = np.arange(1, len(states) + 1)[:, None]
        expected = {
            "mean": states.mean(0),
            "max": states.max(0),
            "cls": states[0],
            "mean_sqrt_len": states.sum(0) / np.sqrt(len(states)),
            "weightedmean": (states * weights).sum(0) / weights.sum(),
            "lasttoken": states[-1],
        }[pooling]
        expected = expected / np.linalg.norm(expected) if normalize == "true" else expected
        assert np.allclose(vector, expected, 0, 1e-5)


def test_the_last_token_of_a_text_that_is_padded_on_the_left() -> None:
    states = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    assert POOLS["lasttoken"](states, np.array([[0, 1, 1]], np.float32)).tolist() == [[4, 5]]
    assert POOLS["lasttoken"](states, np.array([[1, 1, 0]], np.float32)).tolist() == [[2, 3]]


@pytest.mark.parametrize("squash", ["true", "false"])
def test_pairs_are_scored(squash: str, tmp_path: Path) -> None:
    folder = folders.cross_encoder(tmp_path / "pairs", sigmoid=squash)
    found = text_answers(
        folder, [{"query": "music", "texts": ["good", "the sport"]}, {"text": "a", "text_pair": "bad"}]
    )
    pieces = [("music", "[SEP]", "good"), ("music", "[SEP]", "the", "sport"), ("a", "[SEP]", "bad")]
    scores = np.array([[folders.vectors()[ids(*words), 0].sum()] for words in pieces])
    expected = sigmoid(scores) if squash == "true" else scores
    assert np.allclose([*found[0], found[1]], expected, 0, 1e-5)


def test_a_gap_is_filled(tmp_path: Path) -> None:
    folder = folders.fill_mask(tmp_path / "gap")
    found = text_answers(folder, ["the [MASK] music", {"inputs": ["[MASK]"]}])
    scores = np.zeros(len(WORDS))
    scores[[WORDS.index(word) for word in ("new", "york", "good", "the", "music", "sport")]] = 9 - np.arange(
        6
    )
    shares = np.sort(softmax(scores))[::-1]
    assert [row["className"] for row in found[0]] == ["new", "york", "good", "the", "music"]
    assert np.allclose([row["probability"] for row in found[0]], shares[:5], 0, 1e-5)
    assert found[1] == [found[0]]
    assert len(text_answers(folder, ["[MASK]"], topK="6")[0]) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [("music", "Mask token [MASK] not found."), ("[MASK] [MASK]", "Only one mask supported.")],
)
def test_a_text_has_one_gap(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ServeError) as caught:
        text_translator(folders.fill_mask(tmp_path / "gap")).encode([text])
    assert (caught.value.code, caught.value.message) == (Code.INVALID, words)


def test_a_mask_that_the_tokenizer_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="maskToken is '<mask>'"):
        text_translator(folders.fill_mask(tmp_path / "gap"), maskToken="<mask>")


@pytest.mark.parametrize("multi_label", [False, True])
def test_candidates_are_ordered(multi_label: bool, tmp_path: Path) -> None:
    folder = folders.entailment(tmp_path / "candidates")
    body = {"text": "good music", "candidate_labels": ["sport", "new york", "a"], "multi_label": multi_label}
    (found,) = text_answers(folder, [body])
    rows = [
        ("good", "music", "[SEP]", "this", "example", "is", *label.split(), ".")
        for label in body["candidate_labels"]
    ]
    scores = np.array([folders.vectors()[ids(*words), :3].sum(0) for words in rows])
    shares = softmax(scores[:, [0, 2]])[:, 1] if multi_label else softmax(scores[:, 2])
    order = np.argsort(-shares)
    assert found["sequence"] == "good music"
    assert found["labels"] == [body["candidate_labels"][index] for index in order]
    assert np.allclose(found["scores"], shares[order], 0, 1e-5)


def test_one_candidate_is_held_against_its_contradiction(tmp_path: Path) -> None:
    folder = folders.entailment(tmp_path / "candidates")
    (found,) = text_answers(folder, [{"text": "music", "candidate_labels": ["sport"]}])
    scores = folders.vectors()[ids("music", "[SEP]", "this", "example", "is", "sport", "."), :3].sum(0)
    assert np.allclose(found["scores"], softmax(scores[[0, 2]])[1:], 0, 1e-5)


@pytest.mark.parametrize(
    ("problem", "squash"),
    [("multi_label_classification", sigmoid), ("single_label_classification", softmax), (None, softmax)],
)
def test_labels_of_several_kinds(problem: str | None, squash, tmp_path: Path) -> None:
    folder = folders.sentences(tmp_path / "labels", "OnnxRuntime")
    labels = {"0": "a", "1": "b", "2": "c", "3": "d"}
    (folder / "config.json").write_text(json.dumps({"id2label": labels, "problem_type": problem}))
    translator = text_translator(folder)
    scores = np.array([[1, 3, -2, 0]], np.float32)
    request = translator.parse(b'["music"]', JSON, {})
    (found,) = translator.decode({"logits": scores}, translator.encode(request.rows).encodings, request)
    assert [row["className"] for row in found] == ["b", "a", "d", "c"]
    assert np.allclose([row["probability"] for row in found], np.sort(squash(scores)[0])[::-1], 0, 1e-5)


def test_details_of_an_answer(tmp_path: Path) -> None:
    folder = folders.questions(tmp_path / "questions", "OnnxRuntime")
    translator = text_translator(folder, detail="true")
    request = translator.parse(b'{"question": "how is it", "context": "It is very nice"}', JSON, {})
    _, (encoding,) = translator.encode(request.rows)
    inside = [place for place, part in enumerate(encoding.sequence_ids) if part == 1]
    first, last = encoding.char_to_token(11, 1), encoding.char_to_token(14, 1)
    starts, ends = np.full((2, 1, len(encoding.ids)), -3, np.float32)
    starts[0, last], ends[0, first] = 4, 2  # they change places
    answer = translator.decode({"start": starts, "end": ends}, [encoding], request)
    found = json.loads(answer["answer"])
    expected = softmax(starts[0, inside]).max() * softmax(ends[0, inside]).max()
    assert (found["start"], found["end"], found["answer"]) == (first, last, "nice")
    assert np.isclose(found["score"], expected, 0, 1e-5)


def test_a_paragraph_without_a_word_has_no_answer(tmp_path: Path) -> None:
    folder = folders.questions(tmp_path / "questions", "OnnxRuntime")
    with pytest.raises(ServeError, match="No valid answer span found in context") as caught:
        text_answers(folder, [{"question": "how is it", "context": ""}])
    assert caught.value.code is Code.INVALID


# Models that do not fit


@pytest.mark.parametrize(
    ("maker", "body", "outputs"),
    [
        (folders.tokens, "music", {}),
        (folders.tokens, "music", {"a": np.zeros((1, 3, 6))}),
        (folders.tokens, "music", {"a": np.zeros((1, 2, 7))}),
        (folders.tokens, "music", {"a": np.full((1, 3, 7), np.inf)}),
        (folders.embedding, "music", {"a": np.zeros((1, 6))}),
        (folders.embedding, "music", {"a": np.zeros((1, 2, 6))}),
        (folders.embedding, "music", {"a": np.zeros((1, 3, 0))}),
        (folders.cross_encoder, {"key": "a", "value": "b"}, {}),
        (folders.cross_encoder, {"key": "a", "value": "b"}, {"a": np.zeros((2, 1))}),
        (folders.fill_mask, "[MASK]", {"a": np.zeros((1, 1, 4))}),
        (folders.entailment, {"text": "a", "candidate_labels": ["b"]}, {"a": np.zeros((1, 1))}),
        (folders.questions, {"question": "a", "context": "b"}, {"a": np.zeros((1, 9))}),
        (
            folders.questions,
            {"question": "a", "context": "b"},
            {"a": np.zeros((1, 99)), "b": np.zeros((1, 99))},
        ),
        (folders.sentences, "music", {"a": np.zeros((1, 9))}),
        (folders.sentences, "music", {"a": np.zeros((1, 4, 1))}),
    ],
)
def test_outputs_of_another_kind_are_the_models_fault(maker, body, outputs, tmp_path: Path) -> None:
    translator = text_translator(maker(tmp_path / "model"))
    request = translator.parse(json.dumps(body).encode(), JSON, {})
    with pytest.raises(ServeError) as caught:
        translator.decode(outputs, translator.encode(request.rows).encodings, request)
    assert caught.value.code is Code.MODEL_FAILED


def test_labels_are_held_against_the_outputs_before_the_model_serves(tmp_path: Path) -> None:
    for maker, good, bad in (
        (folders.sentences, (4,), (5,)),
        (folders.tokens, (-1, 7), (-1, 9)),
        (folders.entailment, (3,), (1,)),
    ):
        translator = text_translator(maker(tmp_path / maker.__name__))
        assert not translator.fault({"logits": good})
        assert not translator.fault({"logits": (*good[:-1], -1)})
        assert "config.json" in translator.fault({"logits": bad})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "config.json is not there"),
        ("{", "config.json:1 is no JSON"),
        ("[]", "config.json holds a list, not an object"),
        ("{}", "config.json: id2label is no object of labels"),
        ('{"id2label": {"0": "a", "2": "b"}}', "config.json: id2label has no label 1"),
        ('{"id2label": {"0": 1}}', "config.json: id2label has no label 0"),
    ],
)
def test_broken_labels_are_named(config: str | None, words: str, tmp_path: Path) -> None:
    folder = folders.sentences(tmp_path / "model")
    (folder / "config.json").unlink()
    if config is not None:
        (folder / "config.json").write_text(config)
    with pytest.raises(ServeError, match=words) as caught:
        text_translator(folder)
    assert caught.value.code is Code.LOAD_FAILED


def test_places_of_entailment(tmp_path: Path) -> None:
    folder = folders.entailment(tmp_path / "model")
    assert "token_type_ids" in text_translator(folder).encoder.names
    (folder / "config.json").write_text('{"label2id": {"entailment": -1}}')
    with pytest.raises(ServeError, match=r"config.json: label2id has -1 for 'entailment'"):
        text_translator(folder)
    (folder / "config.json").unlink()
    assert "token_type_ids" not in text_translator(folder).encoder.names


def test_without_the_package_the_error_has_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ServeError, match="-m pip install 'tokenizers>=") as caught:
        encoder(tmp_path)
    assert caught.value.code is Code.UNSUPPORTED
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ServeError, match="-m pip install 'pillow>="):
        require_pillow()
