"""DJL's model URLs: every part, alone and together, and what is none."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.servers.djl.words.model_urls import DjlModelUrl, read_devices, read_list, read_url
from trivium.types.errors import Code, ServeError

EXAMPLES = {
    "resnet::Python=file:///tmp/resnet18.zip": DjlModelUrl("", "/tmp/resnet18.zip", "resnet", "", "Python"),
    "bert=file:///x.zip": DjlModelUrl("", "/x.zip", "bert"),
    "file:/resnet?translatorFactory=X&topK=1": DjlModelUrl(
        "", "/resnet", arguments={"translatorFactory": "X", "topK": "1"}
    ),
    "mlp:v1:PyTorch:*=https://h/m.zip": DjlModelUrl(
        "https", "https://h/m.zip", "mlp", "v1", "PyTorch", ("*",)
    ),
    "src/dir": DjlModelUrl("", "src/dir"),
    "[mlp:v1:PyTorch:*]=file:///m": DjlModelUrl("", "/m", "mlp", "v1", "PyTorch", ("*",)),
    "[mlp]=file:///m": DjlModelUrl("", "/m", "mlp"),
    "m:v1::0=/m": DjlModelUrl("", "/m", "m", "v1", "", ("0",)),
    "m:::gpu0;gpu1=/m": DjlModelUrl("", "/m", "m", "", "", ("gpu0", "gpu1")),
    "test::MPI=/opt/ml/model": DjlModelUrl("", "/opt/ml/model", "test", "", "MPI"),
    "w=s3://bucket/prefix/": DjlModelUrl("s3", "s3://bucket/prefix/", "w"),
    "djl://ai.djl.pytorch/resnet": DjlModelUrl("djl", "djl://ai.djl.pytorch/resnet"),
    "file:m.zip": DjlModelUrl("", "m.zip"),
    "FILE:/a%20b": DjlModelUrl("", "/a b"),
    "/models/a=b": DjlModelUrl("", "/models/a=b"),
    "/m?a=b=c&d": DjlModelUrl("", "/m", arguments={"a": "b=c", "d": ""}),
    "file:///m?model_name=x=y": DjlModelUrl("", "/m", arguments={"model_name": "x=y"}),
}


@pytest.mark.parametrize(("text", "url"), EXAMPLES.items())
def test_a_url_is_read(text: str, url: DjlModelUrl) -> None:
    assert read_url(text) == url


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("/x/bert-base-cased-squad2.zip", "bert_base_cased_squad2"),
        ("/x/my.model/", "my_model"),
        ("https://h/a/m-1.tar.gz?x=1", "m_1"),
        ("s3://b/llm.v2", "llm_v2"),
        ("my-own=/x/y.zip", "my-own"),
    ],
)
def test_a_name_is_inferred_unless_it_is_given(text: str, model: str) -> None:
    assert read_url(text).model == model


def test_lists_are_split_at_commas_and_blanks() -> None:
    assert [url.place for url in read_list(" /a,/b  c=/d\n,/e ")] == ["/a", "/b", "/d", "/e"]
    assert read_list("") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m=", "no URL"),
        ("a:b:c:cpu:e=/m", "5 fields"),
        ("m:::tpu=/m", "device name: 'tpu'"),
        ("file:", "no path"),
        ("/m?%ff=1", "a query that cannot be read"),
    ],
)
def test_what_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(ServeError, match=words) as caught:
        read_url(text)
    assert caught.value.code is Code.INVALID


def test_devices_are_those_of_djl() -> None:
    assert read_devices("*") == ("*",)
    assert read_devices("cpu; -1;gpu;gpu3;0;nc0;0+1") == ("cpu", "-1", "gpu", "gpu3", "0", "nc0", "0+1")


def test_a_source_carries_everything() -> None:
    source = read_url("m:v1:PyTorch:cpu=/x?topK=1").source("-m")
    assert (source.uri, source.name, source.version, source.engine, source.devices) == (
        "/x",
        "m",
        "v1",
        "PyTorch",
        ("cpu",),
    )
    assert source.over["topK"].value == "1"
    assert source.over["topK"].origin.file == "-m"


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ServeError):
        read_list(text)
