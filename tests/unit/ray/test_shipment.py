"""What goes to a cluster of Ray: files by links, and models under names of their own."""

from pathlib import Path

import pytest
from tests.fixtures import models

from trivium.ray.shipment import laid_out, spread
from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource, Place


def test_files_are_found_below_the_folder_that_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models.add(tmp_path / "models", "add")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/app.py").write_text("import beside")
    (tmp_path / "code/beside.py").touch()
    into = tmp_path / "into"
    into.mkdir()
    monkeypatch.chdir(tmp_path)
    places: list[Place] = [
        Path("models"),
        tmp_path / "code/app.py:Sentiment",
        tmp_path / "code/app.py",
        ModelSource("hf://org/model"),
    ]
    found = laid_out(places, into, "a-")
    assert found == ["a-0/models", "a-1/files/app.py:Sentiment", "a-2/files/app.py", "hf://org/model"]
    assert (into / "a-0/models/add/config.pbtxt").exists()
    assert (into / "a-1/files/beside.py").exists()
    assert laid_out([tmp_path / "models"], into) == ["0/models"]


def test_the_models_of_a_repository_are_told_apart(tmp_path: Path) -> None:
    models.add(tmp_path / "models", "add")
    models.text(tmp_path / "models", "text")
    (tmp_path / "app.py").write_text("class Sentiment: ...")
    models.bare_add(tmp_path, "bare", [2])
    file = next(tmp_path.glob("bare*"))
    hub = ModelSource("hf://org/model")
    found = spread([tmp_path / "models", tmp_path / "app.py:Sentiment", file, hub])
    assert found == {
        "add": tmp_path / "models/add",
        "text": tmp_path / "models/text",
        "Sentiment": tmp_path / "app.py:Sentiment",
        "bare": file,
        "model": hub,
    }


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    models.add(tmp_path / "one", "add")
    models.add(tmp_path / "two", "add")
    with pytest.raises(ServeError, match="--spread all") as caught:
        spread([tmp_path / "one", tmp_path / "two"])
    assert caught.value.code is Code.INVALID
