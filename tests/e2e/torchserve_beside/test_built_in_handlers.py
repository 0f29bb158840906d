"""Built-in handlers beside those of the real TorchServe, whose answers `make original` has written down: equal labels,
and numbers within 1e-5, of pictures of all shapes and of texts with accents, markup and contractions.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.torchserve_beside.built_in import MODELS, asked_about, differing, questions, write_built_in
from tests.e2e.torchserve_beside.ours import ours
from tests.e2e.torchserve_beside.play import Player
from tests.e2e.torchserve_beside.record import OF_BUILT_IN

Image = pytest.importorskip("PIL.Image")
RECORDED: dict[str, Any] = json.loads(OF_BUILT_IN.read_text())
ASKED = {name: (model, data) for name, model, data in questions()}
MODES = ("L", "P", "RGBA", "CMYK", "I;16", "1")
"""Modes of pictures on which the original fails; here they become RGB."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("built-in")
    store = write_built_in(folder / "store")
    words = [f"{model}.mar" for model in MODELS]
    with ours(folder, store, "disable_token_authorization=true\n", "--ncs", "--models", *words) as addresses:
        for model in MODELS:
            Player(addresses, folder).wait(model)
        yield f"http://127.0.0.1:{addresses.inference}", folder / "log"


def test_the_record_is_of_what_is_asked() -> None:
    assert RECORDED.keys() == ASKED.keys()
    answered = [name for name, told in RECORDED.items() if told["status"] == 200]
    assert len(answered) >= 60
    assert {name.partition(":")[0] for name in answered} == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_answers_are_those_of_the_original(served: tuple[str, Path], model: str) -> None:
    url, _ = served
    told = {
        name: list(differing(RECORDED[name], asked_about(url, model, data)))[:3]
        for name, (of, data) in ASKED.items()
        if of == model
    }
    assert {name: found for name, found in told.items() if found} == {}


@pytest.mark.parametrize("mode", MODES)
def test_a_picture_of_another_mode_is_classified_and_told_once(served: tuple[str, Path], mode: str) -> None:
    url, log = served
    file = io.BytesIO()
    picture = (
        Image.new(mode, (30, 20), 500) if mode == "I;16" else Image.new("RGB", (30, 20), 5).convert(mode)
    )
    picture.save(file, "TIFF" if mode == "CMYK" else "PNG")
    for _ in range(2):
        answer = asked_about(url, "classifier", file.getvalue())
        assert answer["status"] == 200
        assert len(answer["answer"]) == 5
    assert "RGB" in log.read_text()
