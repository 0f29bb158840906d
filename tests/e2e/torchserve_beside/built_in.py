"""Archives of built-in handlers with small seeded models, and the pictures and texts that both servers are asked about.

Models are scripted, so that an archive holds no code. `built_in.json` has what the original answered.
"""

import io
import json
import random
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

SHAPES = ((1, 1), (1, 40), (40, 1), (3, 300), (224, 224), (225, 223), (255, 257), (640, 480), (900, 1200))
"""Width and height of the pictures: narrow, tiny, huge."""

TEXTS = (
    "World war two",
    "<p>Bölsen &amp; banks</p> don't sell",
    "It's the team's best game, isn't it?",
    "naïve café déjà vu",
    "a",
    "Stocks UP 5% -- they've risen!",
    "<b>unclosed <i>tags",
    "can't won't shan't y'all",
    "  blanks   and\ttabs\n",
    "日本 market",
)
WORDS = (
    "world war two bolsen banks do not sell it is the teams best game naive cafe deja vu a stocks up 5 they have risen "
    "unclosed tags cannot will shall you all blanks and tabs market"
)
"""All words of the texts, once they are cleaned."""

LABELS = {str(number): f"class {number}" for number in range(8)}
KEPT = 32
"""Of the pixels that a segmenter answers with, one in so many of each row and column is compared."""

MODELS = ("classifier", "segmenter", "detector", "texts")


def write_built_in(store: Path) -> Path:
    """Make the store with the archives. Needs torch."""
    import torch

    store.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(26)
    handlers = {
        "classifier": ("image_classifier", _classifier(torch)),
        "segmenter": ("image_segmenter", _segmenter(torch)),
        "detector": ("object_detector", _detector(torch)),
        "texts": ("text_classifier", _texts(torch)),
    }
    for name, (handler, model) in handlers.items():
        weights = io.BytesIO()
        torch.jit.save(torch.jit.script(model.eval()), weights)
        entries = {"model.pt": weights.getvalue(), "index_to_name.json": json.dumps(LABELS).encode()}
        manifest: dict[str, Any] = {
            "modelName": name,
            "serializedFile": "model.pt",
            "handler": handler,
            "modelVersion": "1.0",
        }
        if name == "texts":
            vocabulary = io.BytesIO()
            torch.save(_vocabulary(), vocabulary)
            entries["source_vocab.pt"] = vocabulary.getvalue()
            manifest["sourceVocab"] = "source_vocab.pt"
        about = {"createdOn": "01/01/2026 00:00:00", "runtime": "python", "model": manifest}
        with zipfile.ZipFile(store / f"{name}.mar", "w") as archive:
            archive.writestr("MAR-INF/MANIFEST.json", json.dumps(about | {"archiverVersion": "0.12.0"}))
            for file, data in entries.items():
                archive.writestr(file, data)
    return store


def pictures() -> Iterator[tuple[str, bytes]]:
    """Yield each picture as PNG and as JPEG, with its name. Needs Pillow."""
    from PIL import Image

    for width, height in SHAPES:
        drawn = random.Random(width * 10_000 + height).randbytes(12 * 9 * 3)
        picture = Image.frombytes("RGB", (12, 9), drawn).resize((width, height), Image.Resampling.BICUBIC)
        for kind in ("PNG", "JPEG"):
            file = io.BytesIO()
            picture.save(file, kind)
            yield f"{width}x{height} {kind}", file.getvalue()


def questions() -> Iterator[tuple[str, str, bytes]]:
    """Yield all that is asked: its name, the model, and the body."""
    for name, data in pictures():
        for model in MODELS[:3]:
            yield f"{model}: {name}", model, data
    for text in TEXTS:
        yield f"texts: {text}", "texts", text.encode()


def asked_about(url: str, model: str, data: bytes) -> dict[str, Any]:
    """What a server answers to one of them, as it is recorded."""
    answer = httpx.post(f"{url}/predictions/{model}", content=data, timeout=120)
    if answer.status_code != 200:
        return {"status": answer.status_code}
    return {"status": 200, "answer": thinned(model, answer.json())}


def thinned(model: str, answer: Any) -> Any:
    """An answer as it is recorded: of the pixels a few."""
    if model == "segmenter" and isinstance(answer, list):
        return [row[::KEPT] for row in answer[::KEPT]]
    return answer


def differing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Yield where two answers differ: numbers by more than 1e-5."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        if list(theirs) != list(ours):
            yield f"{path}: {list(theirs)} and {list(ours)}"
            return
        for key in theirs:
            yield from differing(theirs[key], ours[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            yield f"{path}: {len(theirs)} and {len(ours)}"
            return
        for at, (mine, yours) in enumerate(zip(theirs, ours, strict=True)):
            yield from differing(mine, yours, f"{path}[{at}]")
    elif isinstance(theirs, float) and isinstance(ours, float):
        if abs(theirs - ours) > 1e-5 * max(1.0, abs(theirs)):
            yield f"{path}: {theirs} and {ours}"
    elif theirs != ours:
        yield f"{path}: {theirs!r} and {ours!r}"


def _vocabulary() -> dict[str, int]:
    """Each word of the texts, and each pair of them, has a number."""
    words = WORDS.split()
    pairs = [f"{first} {second}" for first in words for second in words]
    return {token: number * 7 % 60 for number, token in enumerate([*words, *pairs])}


def _classifier(torch: Any) -> Any:
    pool = torch.nn.AdaptiveAvgPool2d(4)
    return torch.nn.Sequential(pool, torch.nn.Flatten(), torch.nn.Linear(48, 8))


def _segmenter(torch: Any) -> Any:
    class Segmenter(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, pictures: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"out": self.layer(pictures)}

    return Segmenter()


def _detector(torch: Any) -> Any:
    class Detector(torch.nn.Module):  # type: ignore[misc]
        def forward(self, pictures: torch.Tensor) -> list[dict[str, torch.Tensor]]:
            found: list[dict[str, torch.Tensor]] = []
            for number in range(len(pictures)):
                means = pictures[number].mean(dim=1)
                scores = torch.sigmoid(means.mean(dim=1) * 2 - 0.5)
                boxes = torch.stack((means[:, 0], means[:, -1], means.amax(dim=1), means.amin(dim=1)), dim=1)
                found.append({"boxes": boxes, "labels": torch.arange(3), "scores": scores})
            return found

    return Detector()


def _texts(torch: Any) -> Any:
    class Texts(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.EmbeddingBag(60, 8)

        def forward(self, numbers: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return self.embedding(numbers, offsets)

    return Texts()
