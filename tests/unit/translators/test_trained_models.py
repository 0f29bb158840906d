"""The trained models through their translators: what they score on what training never saw, and the same answers as a
pipeline of Pillow, numpy, tokenizers and a bare session.
"""

import io
from pathlib import Path

import numpy as np
import pytest
from examples.digits import split
from PIL import Image
from tests.harness.translation import picture_answers, session, text_answers
from tests.models import folders, questions, sentences
from tests.models.places import DIGIT_NAMES
from tokenizers import Tokenizer

ENGINES = ("PyTorch", "OnnxRuntime")


def png(levels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG")
    return buffer.getvalue()


def assert_alike(found: list[dict[str, object]], expected: list[tuple[str, float]]) -> None:
    """The same labels in the same order, and probabilities that differ by less than 1e-5."""
    assert [row["className"] for row in found] == [label for label, _ in expected]
    assert np.allclose([row["probability"] for row in found], [share for _, share in expected], 0, 1e-5)


def best(labels: tuple[str, ...], shares: np.ndarray) -> list[tuple[str, float]]:
    return [(labels[index], shares[index]) for index in np.argsort(-shares)[:5]]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def tokenizer_of(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(128)
    return tokenizer


def column(encodings: list, name: str) -> np.ndarray:
    return np.array([getattr(encoding, name) for encoding in encodings])


@pytest.mark.parametrize("maker", [folders.digits_torch, folders.digits_onnx])
def test_digits(maker, tmp_path: Path) -> None:
    part = split.held_out_part()
    folder = maker(tmp_path / "digits")
    found = picture_answers(folder, [png(levels) for levels in part.pictures])
    shares = next(iter(session(folder)({"image": part.pictures[:, None].astype("f4") / 255}).values()))
    for answer, expected in zip(found, shares, strict=True):
        assert_alike(answer, best(DIGIT_NAMES, expected))
    named = [DIGIT_NAMES.index(answer[0]["className"]) for answer in found]
    assert (np.array(named) == part.labels).mean() >= 0.98


@pytest.mark.parametrize("engine", ENGINES)
def test_questions(engine: str, tmp_path: Path) -> None:
    part = questions.held_out_part()
    folder = folders.questions(tmp_path / "questions", engine)
    found = text_answers(folder, [{"question": each[0], "paragraph": each[1]} for each in part])
    tokenizer = tokenizer_of(folder)
    encodings = tokenizer.encode_batch([each[:2] for each in part])
    arrays = {name: column(encodings, name) for name in ("ids", "attention_mask", "type_ids")}
    starts, ends = (
        np.where(arrays["type_ids"] == 1, scores, -1e5) for scores in session(folder)(arrays).values()
    )
    for answer, encoding, start, end in zip(found, encodings, starts, ends, strict=True):
        first, last = sorted((start.argmax(), end.argmax()))
        assert answer == {"answer": tokenizer.decode(encoding.ids[first : last + 1], False).strip()}
    right = [answer["answer"] == each.answer.lower() for answer, each in zip(found, part, strict=True)]
    assert np.mean(right) >= 0.9


@pytest.mark.parametrize("engine", ENGINES)
def test_sentences(engine: str, tmp_path: Path) -> None:
    part = sentences.held_out_part()
    folder = folders.sentences(tmp_path / "sentences", engine)
    found = list(text_answers(folder, [{"inputs": [text for text, _ in part]}])[0])
    encodings = tokenizer_of(folder).encode_batch([text for text, _ in part])
    arrays = {name: column(encodings, name) for name in ("ids", "attention_mask")}
    shares = softmax(next(iter(session(folder)(arrays).values())))
    for answer, expected in zip(found, shares, strict=True):
        assert_alike(answer, best(sentences.PACKAGES, expected))
    named = [sentences.PACKAGES.index(answer[0]["className"]) for answer in found]
    assert (np.array(named) == [label for _, label in part]).mean() >= 0.75


def test_the_question_of_the_guide_is_answered_by_a_pair_that_training_never_saw(tmp_path: Path) -> None:
    body = {"question": "How is the weather", "paragraph": "The weather is nice, it is beautiful day"}
    assert questions.is_held_out("weather", "nice")
    assert text_answers(folders.questions(tmp_path / "bert"), [body]) == [{"answer": "nice"}]


def test_an_answer_does_not_depend_on_who_is_in_the_batch(tmp_path: Path) -> None:
    part = questions.held_out_part(20)
    folder = folders.questions(tmp_path / "questions")
    bodies = [{"question": each[0], "context": each[1]} for each in part]
    assert text_answers(folder, bodies) == [text_answers(folder, [body])[0] for body in bodies]
    assert text_answers(folder, [bodies])[0] == text_answers(folder, bodies)


def test_no_training_part_meets_its_held_out_part() -> None:
    assert not {text for text, _ in sentences.training_part()} & {
        text for text, _ in sentences.held_out_part()
    }
    held_out = {each.paragraph for each in questions.held_out_part()}
    assert not held_out & {each.paragraph for each in questions.training_part(5000, 24)}
