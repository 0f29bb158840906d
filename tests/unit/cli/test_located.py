"""What a word of the command line means: a path, a URL, or a model's name at a hub."""

from pathlib import Path

import pytest

from trivium.cli.located import hub_model, place_of
from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "smollm2").mkdir(parents=True)
    (tmp_path / "models" / "gone").symlink_to("nowhere")
    return tmp_path


@pytest.mark.parametrize(
    ("word", "uri", "is_named"),
    [
        ("org/model", "hf://org/model", True),
        ("org/model@v1", "hf://org/model@v1", True),
        ("org/model:Q4_K_M", "hf://org/model:Q4_K_M", True),
        ("hf://org/model", "hf://org/model", True),
        ("hf://models/smollm2", "hf://models/smollm2", True),
        ("s3://bucket/m", "s3://bucket/m", True),
        ("https://host/m.zip", "https://host/m.zip", False),
        ("djl://host/m.zip", "djl://host/m.zip", False),
    ],
)
def test_what_is_fetched(word: str, uri: str, is_named: bool) -> None:
    place = place_of(word)
    assert isinstance(place, ModelSource)
    assert (place.uri, place.is_named) == (uri, is_named)


@pytest.mark.parametrize(
    "word",
    [
        *("models/smollm2", "models/gone", "models", "smollm2", "./org/model", "/org/model", "org/model/"),
        *("org/m.onnx", "a/b/c", "file:org/model", "org/m.gguf"),
    ],
)
def test_what_is_a_path(word: str) -> None:
    assert place_of(word) == Path(word.removeprefix("file:"))


def test_a_mistyped_path_is_one_and_says_the_nearest_name() -> None:
    with pytest.raises(ServeError) as caught:
        place_of("models/smolm2")
    assert caught.value.code is Code.NOT_FOUND
    assert "Did you mean models/smollm2?" in caught.value.message
    assert "write hf://models/smolm2" in caught.value.message
    with pytest.raises(ServeError, match="Correct the path"):
        place_of("models/zzzzzzzzz")


def test_the_commands_for_the_cache_take_names_alone() -> None:
    assert hub_model("org/model@v1") == hub_model("hf://org/model@v1")
    for word in ("model", "models/../x", "https://host/m.zip", "s3://bucket/m"):
        with pytest.raises(ServeError) as caught:
            hub_model(word)
        assert caught.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("word", "name", "uri"),
    [
        ("iris=models/smollm2", "iris", "models/smollm2"),
        ("a.b-c=nowhere", "a.b-c", "nowhere"),
        ("iris=hf://org/model", "iris", "hf://org/model"),
    ],
)
def test_a_model_gets_the_name_in_front(word: str, name: str, uri: str) -> None:
    place = place_of(word)
    assert isinstance(place, ModelSource)
    assert (place.name, place.uri) == (name, uri)


def test_a_sign_of_equality_in_a_path_is_the_paths(here: Path) -> None:
    (here / "a=b").mkdir()
    assert place_of("a=b") == Path("a=b")
    assert place_of("./a=c") == Path("./a=c")


def test_a_name_that_no_model_may_have_is_refused() -> None:
    with pytest.raises(ServeError, match="before ="):
        place_of("=models")
