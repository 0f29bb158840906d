"""Rows of section 10: what each translator takes, what it answers by construction of its model, and what it refuses."""

import base64
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from examples.digits import split
from PIL import Image
from tests.e2e.djl_table.rows import SEED, Row
from tests.e2e.djl_table.tensor_forms import JSON
from tests.models import folders
from tests.models.places import DIGIT_NAMES

MODELS = (
    *("digits_onnx", "questions", "sentences", "single_shot", "yolo_v8", "segmentation"),
    *("tokens", "embedding", "cross_encoder", "fill_mask", "entailment"),
)
TEXTS = ("sentences", "tokens", "embedding", "fill_mask")
PICTURES = ("digits_onnx", "single_shot", "yolo_v8", "segmentation")
FORM = "application/x-www-form-urlencoded"
NO_PICTURE = "Input is not an Image data type"
NO_JSON = "Input is not a valid json."
EMPTY = "Input data is empty."
WEATHER = {"question": "How is the weather", "paragraph": "The weather is nice, it is beautiful day"}

Check = Callable[[Mapping[str, str], bytes], None]


def lay_out(root: Path) -> Path:
    """Write the models."""
    for name in MODELS:
        folders.EACH[name](root / name)
    return root


def translator_rows() -> list[Row]:
    """Return the rows, in the order and with the pictures and cuts that the seed decides."""
    chance = random.Random(SEED + 10)
    found = [
        *_pictures(chance),
        *_bad_pictures(chance),
        *_questions(),
        *_bad_questions(),
        *_texts(),
        *_bad_texts(),
    ]
    found += [*_pairs(), *_candidates()]
    chance.shuffle(found)
    return found


def _row(model: str, send: object, status: int = 200, kind: str = JSON, query: str = "", **more: Any) -> Row:
    """`send` is bytes, or what becomes JSON; `error` the text alone."""
    body = send if isinstance(send, bytes) else json.dumps(send).encode()
    fields = {"Content-Type": kind} if kind else {}
    if "error" in more:
        more["error"] = ("TranslateException", more["error"])
    more.setdefault("note", str(send)[:60] if not isinstance(send, bytes) else repr(send[:16]))
    return Row(
        "10",
        "POST",
        f"/predictions/{model}{query}",
        status,
        body,
        {**fields, **more.pop("fields", {})},
        **more,
    )


def _near(expected: Any) -> Check:
    """Return a check of JSON: labels as they are, numbers within 1e-5."""

    def check(headers: Mapping[str, str], body: bytes) -> None:
        assert headers["content-type"] == JSON
        _alike(json.loads(body), expected)

    return check


def _alike(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            _alike(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, wanted in zip(found, expected, strict=True):
            _alike(one, wanted)
    elif isinstance(expected, float):
        assert abs(found - expected) < 1e-5, (found, expected)
    else:
        assert found == expected


# -- pictures ----------------------------------------------------------------------------------------------


def _encoded(array: np.ndarray, form: str = "PNG") -> bytes:
    made = io.BytesIO()
    Image.fromarray(array).save(made, form)
    return made.getvalue()


def _ways(picture: bytes) -> Iterator[tuple[str, bytes, str]]:
    """Yield each way to send a picture: what it is called, the body, and its content type."""
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    part = (
        b'--b\r\nContent-Disposition: form-data; name="data"; filename="p.png"\r\n\r\n%b\r\n--b--\r\n'
        % picture
    )
    yield "raw", picture, ""
    yield "raw png", picture, "image/png"
    yield "raw of any type", picture, "application/octet-stream"
    yield "a form", part, "multipart/form-data; boundary=b"
    yield "image_url", json.dumps({"image_url": url}).encode(), JSON
    yield "image_url with a charset", json.dumps({"image_url": url}).encode(), f"{JSON}; charset=utf-8"


def _names(*names: str) -> Check:
    """Return a check of labels, whose first comes first, with probabilities that fall."""

    def check(headers: Mapping[str, str], body: bytes) -> None:
        rows = json.loads(body)
        assert headers["content-type"] == JSON
        assert [row["className"] for row in rows][: len(names)] == list(names)
        shares = [row["probability"] for row in rows]
        assert shares == sorted(shares, reverse=True)

    return check


def _boxes(scale: float) -> Check:
    """The boxes of `folders`, of which the second is left out: the first nearly covers it."""
    kept = [(folders.THINGS[int(row.argmax())], float(row.max()), box) for row, box in _kept()]
    kept.sort(key=lambda one: -one[1])
    expected = [
        {
            "className": name,
            "probability": share,
            "boundingBox": {"rect": [float(one) * scale for one in box]},
        }
        for name, share, box in kept
    ]
    return _near(expected)


def _kept() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for place, (row, box) in enumerate(zip(folders.SCORES, folders.BOXES, strict=True)):
        if place != 1:
            yield row, box


def _pictures(chance: random.Random) -> Iterator[Row]:
    part = split.held_out_part()
    for place in chance.sample(range(len(part.pictures)), 3):
        digit = _encoded(part.pictures[place].astype("u1"))
        for note, body, kind in _ways(digit):
            holds = _names(DIGIT_NAMES[int(part.labels[place])])
            yield _row("digits_onnx", body, kind=kind, holds=holds, note=f"{note} {place}")
    white = _encoded(np.full((64, 64, 3), 255, np.uint8))
    for note, body, kind in _ways(white):
        yield _row("single_shot", body, kind=kind, holds=_names("cat"), note=note)
        yield _row("yolo_v8", body, kind=kind, holds=_names("cat", "bird", "dog"), note=note)
    for place, colour in enumerate(folders.COLOURS):
        pixels = np.zeros((8, 12, 3), np.uint8)
        if place:
            pixels[:, :, place - 1] = 255
        mask = {"classes": list(folders.COLOURS), "mask": [[place] * 12] * 8}
        yield _row("segmentation", _encoded(pixels), kind="image/png", holds=_near(mask), note=colour)


def _bad_pictures(chance: random.Random) -> Iterator[Row]:
    picture = _encoded(np.zeros((8, 8), np.uint8))
    noise = bytes(chance.randrange(256) for _ in range(64))
    damaged = picture[: chance.randrange(9, len(picture) - 20)]
    text = base64.b64encode(noise).decode()
    for model in PICTURES:
        for note, body in (("noise", noise), ("cut off", damaged), ("text", b"a picture")):
            yield _row(model, body, 400, "image/png", error=NO_PICTURE, note=note)
        yield _row(model, b"", 400, "image/png", error=EMPTY, note="nothing")
    for document, words in (
        ({}, 'Missing "image_url" in json.'),
        ({"image_url": 5}, 'Missing "image_url" in json.'),
        ([], "Invalid JsonObject input."),
        ("text", "Invalid JsonObject input."),
        ({"image_url": "data:image/png;base64,!"}, NO_PICTURE),
        ({"image_url": f"data:image/png;base64,{text}"}, NO_PICTURE),
        (b"{", NO_JSON),
        (b"\xff", NO_JSON),
    ):
        yield _row("digits_onnx", document, 400, error=words)
    for url in ("/etc/passwd", "file:///etc/passwd", "../serving.properties", "ftp://x/y.png", ""):
        yield _row("digits_onnx", {"image_url": url}, 400)
    yield _row("digits_onnx", {"image_url": "http://127.0.0.1:1/p.png"}, 400)


# -- questions ---------------------------------------------------------------------------------------------


def _questions() -> Iterator[Row]:
    bare = {"body": b"nice", "headers": {"content-type": "text/plain"}}
    renamed = {"question": WEATHER["question"], "context": WEATHER["paragraph"]}
    for document in (WEATHER, renamed):
        yield _row("questions", document, **bare)
        yield _row("questions", urlencode(document).encode(), kind=FORM, **bare)
        yield _row("questions", b"", kind="", query=f"?{urlencode(document, quote_via=quote)}", **bare)
        for accept in (JSON, f"text/plain;q=0.5, {JSON}"):
            yield _row(
                "questions", document, fields={"Accept": accept}, json={"answer": "nice"}, note=str(accept)
            )
    for count in (1, 3):
        yield _row(
            "questions", [WEATHER] * count, holds=_near([{"answer": "nice"}] * count), note=f"{count} of them"
        )


def _bad_questions() -> Iterator[Row]:
    missing = "Missing question or context in json."
    for document, words in (
        ({}, missing),
        ({"question": "How?"}, missing),
        ({"paragraph": "So."}, missing),
        ({"question": None, "context": "So."}, missing),
        ([], NO_JSON),
        ([WEATHER, {}], missing),
        ("text", NO_JSON),
        ({"question": {}, "context": "So."}, NO_JSON),
        (b"{", NO_JSON),
        (b"", EMPTY),
        (b"[" * 5000, NO_JSON),
    ):
        yield _row("questions", document, 400, error=words)
    yield _row("questions", b"question=How", 400, FORM, error="Missing question or context in input.")
    yield _row("questions", b"", 400, "", error=EMPTY, note="nothing")


# -- texts -------------------------------------------------------------------------------------------------


def _ids(*texts: str) -> list[int]:
    words = ["[CLS]", *" [SEP] ".join(texts).split(), "[SEP]"]
    return [folders.WORDS.index(word) for word in words]


def _vector(text: str) -> list[float]:
    mean = folders.vectors()[_ids(text)].mean(0)
    return [float(one) for one in mean / np.linalg.norm(mean)]


def _softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    shares: np.ndarray = grown / grown.sum(-1, keepdims=True)
    return shares


def _entities(text: str) -> list[dict[str, Any]]:
    shares = _softmax(folders.token_table()[_ids(text)])
    found, start = [], 0
    for place, word in enumerate(text.split(), 1):
        best = int(shares[place].argmax())
        at = text.index(word, start)
        start = at + len(word)
        if folders.LABELS[best] != "O":
            rows = {
                "entity": folders.LABELS[best],
                "score": float(shares[place, best]),
                "index": place,
                "word": word,
            }
            found.append({**rows, "start": at, "end": start})
    return found


def _texts() -> Iterator[Row]:
    """A text as itself, as a JSON string, under `inputs`, and lists of them."""
    answers: Mapping[str, Callable[[str], Any]] = {"embedding": _vector, "tokens": _entities}
    for text in ("anna lives in new york .", "acme corp", "the music is good"):
        for model, answer in answers.items():
            one = answer(text)
            yield _row(model, text.encode(), kind="text/plain", holds=_near(one))
            yield _row(model, text.encode(), kind="", holds=_near(one))
            yield _row(model, text, holds=_near(one), note=f"JSON {text}")
            yield _row(model, {"inputs": text}, holds=_near(one))
            yield _row(model, [text], holds=_near([one]))
            two = [answer("acme"), one]
            yield _row(model, {"inputs": ["acme", text]}, holds=_near(two), note=f"two, {text}")
    gaps = _names("new", "york", "good", "the", "music")
    yield _row("fill_mask", b"anna works for [MASK]", kind="text/plain", holds=gaps)
    yield _row("fill_mask", {"inputs": "the [MASK] is good"}, holds=gaps)
    for name, text in (("inputs", "Return the sum of a number."), ("bare", "Parse the file.")):
        document = {"inputs": text} if name == "inputs" else text
        yield _row("sentences", document, holds=_names())
        yield _row("sentences", text.encode(), kind="text/plain", holds=_names(), note=name)


def _bad_texts() -> Iterator[Row]:
    missing = 'Missing "inputs" in json.'
    for model in TEXTS:
        for document, words in (
            ({}, missing),
            ({"inputs": None}, missing),
            (b"null", missing),
            ({"inputs": []}, EMPTY),
            ({"inputs": {"a": 1}}, NO_JSON),
            ({"inputs": ["a", None]}, NO_JSON),
            (b'{"inputs": "a"', NO_JSON),
            (b"", EMPTY),
        ):
            yield _row(model, document, 400, error=words)
        yield _row(model, b"\xff\xfe", 400, "text/plain", error="Input is not text in UTF-8.")
    yield _row("fill_mask", {"inputs": "no gap"}, 400, error="Mask token [MASK] not found.")
    yield _row("fill_mask", {"inputs": "[MASK] [MASK]"}, 400, error="Only one mask supported.")


def _score(first: str, second: str) -> list[float]:
    total = float(folders.vectors()[_ids(first, second), 0].sum())
    return [1 / (1 + float(np.exp(-total)))]


def _pairs() -> Iterator[Row]:
    pair = ("anna lives", "new york")
    first, second = pair
    one = _score(*pair)
    yield _row("cross_encoder", {"text": first, "text_pair": second}, holds=_near(one))
    yield _row("cross_encoder", {"key": first, "value": second}, holds=_near(one))
    form = urlencode({"text": first, "text_pair": second}).encode()
    yield _row("cross_encoder", form, kind=FORM, holds=_near(one))
    yield _row("cross_encoder", [{"key": first, "value": second}], holds=_near([one]))
    several = [one, _score(first, "acme")]
    yield _row("cross_encoder", {"query": first, "texts": [second, "acme"]}, holds=_near(several))
    for document, words in (
        ({}, "Missing text or text_pair in json."),
        ({"text": "a"}, "Missing text or text_pair in json."),
        ({"query": "a"}, "Missing texts in json."),
        ([], "Unexpected json type."),
        ([5], NO_JSON),
        (b"{", NO_JSON),
    ):
        yield _row("cross_encoder", document, 400, error=words)
    yield _row("cross_encoder", b"", 400, error=EMPTY)


def _candidates() -> Iterator[Row]:
    text, labels = "anna plays music", ["music", "sport", "good"]

    def holds(headers: Mapping[str, str], body: bytes) -> None:
        found = json.loads(body)
        assert list(found) == ["sequence", "labels", "scores"]
        assert (found["sequence"], sorted(found["labels"])) == (text, sorted(labels))
        assert found["scores"] == sorted(found["scores"], reverse=True)
        assert abs(sum(found["scores"]) - 1) < 1e-5

    asked = {"text": text, "candidate_labels": labels}
    yield _row("entailment", asked, holds=holds)
    yield _row("entailment", asked, kind="text/plain", holds=holds, note="whatever its type")
    yield _row("entailment", {**asked, "hypothesis_template": "the {} is"}, holds=holds, note="a template")
    yield _row("entailment", {**asked, "multi_label": True}, json={"sequence": text}, note="several labels")
    for document, words in (
        ({}, "Missing candidates in input"),
        ({"text": text}, "Missing candidates in input"),
        ({"text": text, "candidate_labels": []}, "Missing candidates in input"),
        ({"text": text, "candidate_labels": "a"}, NO_JSON),
        ([], NO_JSON),
        (b"no json", NO_JSON),
    ):
        yield _row("entailment", document, 400, error=words)
    yield _row("entailment", b"", 400, error=EMPTY)
