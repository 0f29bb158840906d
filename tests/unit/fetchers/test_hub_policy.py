"""Names of models at a hub, which of their files are fetched, and what does not fit: tables, without a hub."""

import pytest

from trivium.fetchers.hub_policy import (
    MOST_FILES,
    HubFile,
    HubModel,
    absent_shards,
    check_count,
    check_size,
    choose,
    hub_uri,
    in_bytes,
    looks_like_a_name,
    read_name,
    read_uri,
)
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds


def files(*names: str, size: int = 1) -> list[HubFile]:
    return [HubFile(name, size) for name in names]


def chosen(*names: str, file: str = "", with_code: bool = False) -> set[str]:
    return {one.path for one in choose(files(*names), HubModel("o/m", file=file), with_code)}


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("org/model", HubModel("org/model")),
        ("Qwen/Qwen2.5-0.5B_x", HubModel("Qwen/Qwen2.5-0.5B_x")),
        ("o/m@main", HubModel("o/m", "main")),
        ("o/m@refs/pr/1", HubModel("o/m", "refs/pr/1")),
        ("o/m@v1.0", HubModel("o/m", "v1.0")),
        ("o/m:Q4_K_M", HubModel("o/m", file="Q4_K_M")),
        ("o/m:m.Q8_0.gguf@abc123", HubModel("o/m", "abc123", "m.Q8_0.gguf")),
    ],
)
def test_a_name(text: str, model: HubModel) -> None:
    assert read_name(text) == model
    assert str(model) == text
    assert read_uri(f"hf://{text}") == model


@pytest.mark.parametrize(
    "text",
    [
        *("model", "", "/", "o/", "/m", "o/m/", "o/m/x", "./m", "../m", "o/..", "o/.m", "o/m.", "-o/m"),
        *(
            "o/a--b",
            "o/a..b",
            "o/m.git",
            "o/m x",
            "o/m\n",
            "\u00f6/m",
            "o/" + "m" * 97,
            "o" * 60 + "/" + "m" * 60,
        ),
        *("o/m@", "o/m@..", "o/m@a/../b", "o/m@a//b", "o/m@/a", "o/m@a/", "o/m@-x", "o/m@a.lock", "o/m@a/.b"),
        *(
            "o/m@a b",
            "o/m@" + "a" * 300,
            "o/m:",
            "o/m:a/b",
            "o/m@a:b",
            "o/m@a@b",
            "~/m",
            "o\\m",
            "o/m?x=1",
            "o/m#x",
        ),
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert read_name(text) is None
    assert not looks_like_a_name(text)
    with pytest.raises(ServeError) as caught:
        read_uri(f"hf://{text}")
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize(
    "text", ["models/m.onnx", "models/m.gguf", "a/config.properties", "store/m.mar", "m/x.PT"]
)
def test_a_file_of_a_folder_is_no_name_where_a_path_may_stand(text: str) -> None:
    assert not looks_like_a_name(text)


def test_a_uri_takes_the_revision_that_the_name_leaves_open() -> None:
    assert hub_uri("o/m", "v1") == hub_uri("hf://o/m", "v1") == "hf://o/m@v1"
    assert hub_uri("o/m@v2", "v1") == "hf://o/m@v2"
    assert hub_uri("o/m") == "hf://o/m"
    assert hub_uri("o/m", "../x") == hub_uri("gpt2") == hub_uri("/o/m") == hub_uri("s3://o/m") == ""


BESIDE = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "vocab.txt",
    "merges.txt",
}
NEVER = {
    *(
        "README.md",
        ".gitattributes",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
        "flax_model.msgpack",
    ),
    *(
        "original/consolidated.00.pth",
        "onnx/model.onnx",
        "a/b/config.json",
        "notes.txt",
        "x.pkl",
        "training_args.bin",
    ),
    *("../config.json", "/config.json", "a\\b.json", "a//b.json", "x\n.json", "unet/model.safetensors"),
}


def test_weights_and_what_stands_beside_them() -> None:
    extra = {"chat_template.jinja", "1_Pooling/config.json", "additional_chat_templates/tool.jinja"}
    wanted = {"model.safetensors", *BESIDE, *extra}
    assert chosen(*wanted, *NEVER, "modeling_x.py", "sub/code.py") == wanted


def test_code_comes_where_it_is_trusted() -> None:
    assert chosen("model.safetensors", "a.py", "sub/b.py", "../c.py", with_code=True) == {
        "model.safetensors",
        "a.py",
        "sub/b.py",
    }


def test_weights_that_are_there_twice_come_once() -> None:
    shards = {
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    }
    assert chosen(*shards, "consolidated.safetensors", "m.Q4_K_M.gguf") == shards
    assert chosen("consolidated.safetensors", "params.json") == {"consolidated.safetensors", "params.json"}


@pytest.mark.parametrize(
    ("names", "file", "found"),
    [
        (["m.Q8_0.gguf"], "", {"m.Q8_0.gguf"}),
        (["m.Q8_0.gguf", "m.Q4_K_M.gguf", "m.Q4_K_S.gguf"], "", {"m.Q4_K_M.gguf"}),
        (["m.Q8_0.gguf", "m.Q4_K_M.gguf"], "q8_0", {"m.Q8_0.gguf"}),
        (["m.gguf", "m.gguf-old.gguf"], "m.gguf", {"m.gguf"}),
        (["m.gguf", "mmproj-m.gguf"], "", {"m.gguf"}),
        (
            ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"],
            "",
            {"a-00001-of-00002.gguf", "a-00002-of-00002.gguf"},
        ),
        (["model.safetensors", "m.Q8_0.gguf"], "Q8_0", {"m.Q8_0.gguf"}),
    ],
)
def test_one_of_several_quantisations(names: list[str], file: str, found: set[str]) -> None:
    assert chosen(*names, file=file) == found


@pytest.mark.parametrize(
    ("file", "how"), [("", "none is named"), ("Q8", "name of 2 of them"), ("Q2", "name of none of them")]
)
def test_what_is_open_is_asked_back_with_the_names(file: str, how: str) -> None:
    with pytest.raises(ServeError, match=r"m\.Q5_0\.gguf, m\.Q8_0\.gguf") as caught:
        chosen("m.Q8_0.gguf", "m.Q5_0.gguf", "n.Q8_0.gguf", file=file)
    assert caught.value.code is Code.INVALID
    assert how in caught.value.message
    assert "like o/m:Q5_0." in caught.value.message


def test_a_model_without_weights_that_are_fetched_says_what_it_has() -> None:
    with pytest.raises(ServeError, match=r"pickled \(pytorch_model\.bin\)") as caught:
        chosen("config.json", "pytorch_model.bin")
    assert caught.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("lacking", "free", "size", "is_named", "words"),
    [
        (10, 10, 10, False, ""),
        (11, 10, 100, True, "10 bytes are free in /cache"),
        (11, 10, 100, False, "10 bytes are free in /cache"),
        (11, 100, 10, False, "--fetch-bytes allows 10 bytes"),
        (11, 100, 10, True, ""),
    ],
)
def test_what_does_not_fit_is_told_before(
    lacking: int, free: int, size: int, is_named: bool, words: str
) -> None:
    bounds = FetchBounds(size=size, is_named=is_named)
    if not words:
        check_size(HubModel("o/m"), lacking, free, "/cache", bounds)
        return
    with pytest.raises(ServeError, match="Nothing was fetched") as caught:
        check_size(HubModel("o/m"), lacking, free, "/cache", bounds)
    assert caught.value.code is Code.TOO_LARGE
    assert words in caught.value.message


def test_a_repository_of_too_many_files_is_refused_while_it_is_listed() -> None:
    check_count(MOST_FILES, HubModel("o/m"))
    with pytest.raises(ServeError, match="Nothing was fetched"):
        check_count(MOST_FILES + 1, HubModel("o/m"))


def test_shards_that_are_absent() -> None:
    assert absent_shards({"a": "1.safetensors", "b": "2.safetensors"}, ["1.safetensors"]) == ["2.safetensors"]


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (10**13, "10 TB"), (10**16, "1e+04 TB")],
)
def test_bytes_in_words(size: int, words: str) -> None:
    assert in_bytes(size) == words
