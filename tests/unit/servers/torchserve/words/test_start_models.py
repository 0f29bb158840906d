"""The words of --models, the properties models and model_snapshot, and the URLs that may be fetched."""

import json

import pytest

from trivium.servers.torchserve.words.allowed_urls import AllowedUrls, places_of
from trivium.servers.torchserve.words.start_models import (
    StartModel,
    read_snapshot,
    read_start_models,
    read_version_rules,
)
from trivium.types.errors import ServeError
from trivium.types.spec import Origin

HERE = Origin("here", "models")


@pytest.mark.parametrize(
    ("item", "name", "place"),
    [
        ("a.mar", "", "a.mar"),
        ("x=a.mar", "x", "a.mar"),
        ("x = a.mar", "x", "a.mar"),
        ("x=https://h/a.mar?s=1", "x", "https://h/a.mar?s=1"),
        ("https://h/a.mar?s=1", "", "https://h/a.mar?s=1"),
        ("/a=b/c", "", "/a=b/c"),
        ("all", "", "all"),
    ],
)
def test_a_word(item: str, name: str, place: str) -> None:
    assert read_start_models(f" {item} ,, ") == [StartModel(item, name, place)]


def test_where_a_place_leads() -> None:
    assert StartModel("", "", "https://h").is_url
    assert not StartModel("", "", "a:b").is_url
    assert StartModel("", "", "a/../../b").leaves
    assert not StartModel("", "", "a..b").leaves


def test_rules_of_versions() -> None:
    text = '{"m": {"1.0": {"minWorkers": 1, "batchSize": 4, "maxBatchDelay": true, "marName": "m.mar", "bachSize": 2}}}'
    found = read_version_rules(text, HERE)
    assert {key: one.value for key, one in found.settings["m", "1.0"].items()} == {
        "minWorkers": "1",
        "batchSize": "4",
    }
    assert ["maxBatchDelay is true" in found.notices[0], "bachSize is no key" in found.notices[1]] == [
        True,
        True,
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"m": []}', '{"m": {"1": 2}}', "[" * 100_000])
def test_what_is_no_such_document_is_refused(text: str) -> None:
    for read in (lambda: read_version_rules(text, HERE), lambda: read_snapshot(text)):
        with pytest.raises(ServeError, match="not JSON like"):
            read()


def test_a_snapshot() -> None:
    found = read_snapshot('{"models": {"m": {"1.0": {"marName": "a.mar", "minWorkers": 2}}}}')
    assert (found.models, found.defaults) == ([StartModel("a.mar", "m", "a.mar")], ())
    assert read_version_rules(found.rules, HERE).settings["m", "1.0"]["minWorkers"].value == "2"
    two = {"1.0": {"marName": "a.mar"}, "2.0": {"marName": "b.mar", "defaultVersion": True}}
    assert read_snapshot(json.dumps({"models": {"m": two}})).defaults == (("m", "2.0"),)
    with pytest.raises(ServeError, match="names no archive"):
        read_snapshot('{"models": {"m": {"1.0": {}}}}')


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("https://a.b/.*", ["https://a.b/"]),
        (r"https://a\.b/.*", ["https://a.b/"]),
        (r"https://a\.b:8/c/d/e.*\.mar", ["https://a.b:8/c/d/"]),
        ("http(s)?://a/.*", ["http://a/", "https://a/"]),
        ("https?://a/x", ["http://a/", "https://a/"]),
        ("s3://bucket/.*", ["s3://bucket/"]),
        ("http(s)?://.*", []),
        ("https://.*/x", []),
        ("https://(a|b)/.*", []),
        ("https://a.*", []),
        ("file://.*", []),
        ("", []),
    ],
)
def test_places_that_a_pattern_names(pattern: str, places: list[str]) -> None:
    assert list(places_of(pattern)) == places


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://a.b/m.mar", ""),
        ("HTTPS://A.B/m.mar", ""),
        ("https://a.b/../m.mar", "Relative path"),
        ("https://a.b/%2e%2e/m.mar", "Relative path"),
        ("https://a.b/%252e%252e/m.mar", "Relative path"),
        ("https://c/m.mar", "does not match"),
        ("xhttps://a.b/m.mar", "does not match"),
    ],
)
def test_who_is_allowed(url: str, words: str) -> None:
    refusal = AllowedUrls((r"https://a\.b/.*",)).refusal(url)
    assert words in refusal
    assert bool(refusal) == bool(words)
