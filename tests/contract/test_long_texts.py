"""Long texts of translators: the answers of short ones, made where they can be ended, each request for itself."""

import asyncio
import json
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from tests.harness.server_process import until
from tests.harness.virtual_models import make_spec
from tests.models import folders

from trivium.catalogue import serving
from trivium.codecs.text_bounds import LONG
from trivium.translators import arguments, long_texts
from trivium.translators.texts import text_work
from trivium.translators.texts.embedding import TextEmbedding
from trivium.translators.texts.encoding import TextEncoder
from trivium.translators.texts.kind import TextTranslator
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart
from trivium.types.running import Translated

pytest.importorskip("tokenizers")

MORE = " anna plays music in new york ." * (LONG // 30)
TEXT = {"inputs": [f"anna lives in new york .{MORE}", "acme corp"]}
BODIES = {
    "questions": [{"question": "What is the weather like?", "context": f"the weather is nice .{MORE}"}],
    "cross_encoder": [{"text": "anna lives", "text_pair": f"new york{MORE}"}, {"key": "acme", "value": "x"}],
    "fill_mask": {"inputs": f"anna works for [MASK]{MORE}"},
    "entailment": {"text": f"anna plays music{MORE}", "candidate_labels": ["music", "sport"]},
}
HUGE = "anna lives " * (2**22 // 11)
COLUMNS = (
    *("ids", "attention_mask", "type_ids", "special_tokens_mask", "sequence_ids", "offsets", "tokens"),
)


def embedding(folder: Path, **given: str) -> TextTranslator:
    found, _ = arguments.read_embedding(given)
    return TextTranslator(make_spec(), TextEmbedding(folder, found), "")


@pytest.fixture
def translator(tmp_path):
    with closing(embedding(folders.embedding(tmp_path / "m"))) as made:
        yield made


def asked(*texts: str) -> list[Infer]:
    return [Infer("m", Raw([RawPart(text.encode(), content_type="text/plain")])) for text in texts]


def helpers() -> list[psutil.Process]:
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("helper_process" in word for word in one.cmdline()):
                found.append(one)
    return found


@pytest.mark.parametrize(
    ("texts", "is_long"),
    [
        (["a"], False),
        (["a" * LONG], False),
        (["a" * (LONG + 1)], True),
        (["é" * (LONG // 2)], False),
        (["é" * (LONG // 2), "b"], True),
        ([("a" * LONG, "")], False),
        ([("a" * (LONG // 4), "b")] * 4, True),
    ],
)
def test_a_request_is_long_by_the_bytes_of_all_its_rows(texts, is_long):
    assert text_work.is_long(texts) is is_long


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"padding": "max_length", "maxLength": "600"},
        {"truncation": "do_not_truncate"},
        {"doLowerCase": "true", "stripAccents": "true", "addSpecialTokens": "false"},
    ],
)
@pytest.mark.parametrize("name", ["embedding", "sentences", "questions"])
def test_each_column_of_an_encoding_is_that_of_the_tokenizer(tmp_path, name, given):
    folder = folders.EACH[name](tmp_path / name)
    told, _ = arguments.read_text(given, "a test")
    encoder = TextEncoder(folder, told)
    texts = ["Anna lives", "ÄÖ é 你好 👩‍👩‍👧 \x00 zzz", "", "new york . " * 300]
    with closing(encoder.long):
        for rows in (texts, list(zip(texts, reversed(texts), strict=True)), [("anna", "acme")] * 40):
            compare(encoder, rows)


def compare(encoder: TextEncoder, rows) -> None:
    expected = encoder.encode(rows)
    found = encoder.encode(rows, encoder.long.encoding())
    for name in COLUMNS:
        assert [list(getattr(one, name)) for one in found.encodings] == [
            list(getattr(one, name)) for one in expected.encodings
        ]
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert (found.arrays[name] == array).all()


@pytest.mark.parametrize("name", [*BODIES, "embedding", "sentences", "tokens"])
def test_a_long_text_has_the_answer_that_the_thread_would_make(tmp_path, monkeypatch, name):
    folder = folders.EACH[name](tmp_path / name)
    body = json.dumps(BODIES.get(name, TEXT)).encode()

    async def scene():
        async with serving(folder) as server:

            async def answer():
                made = await server.run(folder.name, body, "application/json")
                return json.loads(bytes(made.parts[0].data))

            with monkeypatch.context() as patch:
                patch.setattr("trivium.translators.texts.kind.is_long", lambda rows: False)
                expected = await answer()
            assert not helpers()
            assert await answer() == expected
            assert len(helpers()) == 2, "the process, and its child that reads"

    asyncio.run(scene())
    until(lambda: not helpers(), lambda: f"{helpers()} outlive their model")


def test_a_late_text_ends_its_own_request_and_its_mates_go_on(translator, monkeypatch):
    monkeypatch.setattr(long_texts, "SECONDS", 0.3)
    first, late, last, behind = translator.before(asked("anna", HUGE, "acme corp", HUGE))
    assert isinstance(first, Translated)
    assert isinstance(last, Translated)
    for error, words in (
        (late, "took longer than 0.3 s, and was ended"),
        (behind, "others of its batch took"),
    ):
        assert isinstance(error, ServeError)
        assert error.code is Code.EXPIRED
        assert words in error.message
    monkeypatch.setattr(long_texts, "SECONDS", 60.0)
    assert all(isinstance(one, Translated) for one in translator.before(asked(MORE, "anna", MORE)))


def test_a_text_that_takes_too_much_memory_ends_its_own_request(tmp_path, monkeypatch):
    monkeypatch.setattr(long_texts, "MOST_MEMORY", 2**28)
    with closing(embedding(folders.embedding(tmp_path / "m"))) as translator:
        good, large, other = translator.before(asked("anna", HUGE, MORE))
        assert isinstance(good, Translated)
        assert isinstance(other, Translated)
        assert isinstance(large, ServeError)
        assert large.code is Code.MODEL_FAILED
        assert "may have 256 MiB" in large.message


def test_a_text_that_stands_in_many_rows_crosses_once(tmp_path):
    rows = [(MORE, f"This example is {i}.") for i in range(1000)]
    assert len(text_work.as_work(rows)) < 2 * len(MORE)


def test_what_the_tokenizer_refuses_is_refused_in_its_words(tmp_path):
    folder = folders.embedding(tmp_path / "m")
    with closing(embedding(folder, padding="do_not_pad")) as translator:
        body = json.dumps({"inputs": [MORE, "anna"]}).encode()
        raw = Raw([RawPart(body, content_type="application/json")])
        (error,) = translator.before([Infer("m", raw)])
        assert isinstance(error, ServeError)
        assert error.code is Code.INVALID
        assert "different lengths" in error.message


@pytest.mark.parametrize(
    ("words", "expected"), [("[PAD]\n", "can no longer be opened"), ("", "is another one")]
)
def test_a_folder_that_was_changed_encodes_no_long_texts(tmp_path, words, expected):
    folder = folders.embedding(tmp_path / "m")
    place = folder / "vocab.txt"
    before = place.read_text()
    with closing(embedding(folder)) as translator:
        place.write_text(words or f"{before}another\n")
        for _ in range(2):
            good, error = translator.before(asked("anna", MORE))
            assert isinstance(good, Translated)
            assert isinstance(error, ServeError)
            assert error.code is Code.MODEL_FAILED
            assert expected in error.message
            assert str(tmp_path) not in error.message
        place.write_text(before)
        (made,) = translator.before(asked(MORE))
        assert isinstance(made, Translated)


def test_short_texts_start_no_process_and_a_closed_translator_has_none(tmp_path):
    with closing(embedding(folders.embedding(tmp_path / "m"))) as translator:
        translator.before(asked("anna", "a " * (LONG // 2)))
        assert not helpers()
        translator.before(asked(MORE))
        process = helpers()[0]
        told = Path(f"/proc/{process.pid}")
        assert "\nThreads:\t1\n" in (told / "status").read_text(), "what has threads must not be forked"
        assert "numpy" not in (told / "maps").read_text()
    assert not helpers()
