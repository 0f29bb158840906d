"""Where the URL of a registration leads: into the store, to what the operator allows, or nowhere."""

import pytest

from trivium.servers.torchserve.words.model_urls import ModelStore, read_patterns
from trivium.types.errors import Code, ServeError

STORE = ModelStore("/store")
OPEN = ModelStore("/store", read_patterns(r"file:///shared/.*, https?://models\.example/.*"))


def refused(url: str, store: ModelStore = STORE) -> str:
    with pytest.raises(ServeError) as caught:
        store.place(url)
    assert caught.value.code is Code.NOT_FOUND
    assert caught.value.message.endswith(".")
    return str(caught.value.metadata["words"])


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("m.mar", "/store/m.mar"),
        ("m", "/store/m"),
        ("m/", "/store/m"),
        ("/store/m.mar", "/store/m.mar"),
        ("/store/a/m.mar", "/store/a/m.mar"),
        ("/elsewhere/m.mar", "/store/m.mar"),
        ("/store", "/store/store"),
        ("/storey/m.mar", "/store/m.mar"),
        ("ftp://h/m.mar", "/store/m.mar"),
        ("C:\\m.mar", "/store/C:\\m.mar"),
        ("s3://bucket/m.mar", "s3://bucket/m.mar"),
    ],
)
def test_what_names_no_other_server_is_looked_for_in_the_store(url: str, place: str) -> None:
    assert STORE.place(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "..",
        "../m.mar",
        "a/../m.mar",
        "m..mar",
        "%2e%2e/m.mar",
        "%252e%252E/m.mar",
        "%25252e.%2fm.mar",
        "file:///store/../etc/passwd",
        "http://h/%2e%2e/m.mar",
        "/store/.%2e/etc",
    ],
)
def test_nothing_leads_upwards_before_or_after_decoding(url: str) -> None:
    for store in (STORE, OPEN, ModelStore()):
        assert refused(url, store) == f"Relative path is not allowed in url: {url}"


def test_what_names_nothing_is_not_found() -> None:
    assert refused("") == "empty url"
    for url in ("/", "m\0.mar", "%00", "x" * 9000):
        assert refused(url) == f"Model not found at: {url}"
    assert refused("m.mar", ModelStore()) == "Model not found at: m.mar"


def test_other_places_are_the_operators_to_allow() -> None:
    for url in ("http://h/m.mar", "HTTPS://h/m.mar", "file:///store/m.mar"):
        assert refused(url) == f"Given URL {url} does not match any allowed URL(s)"
    assert OPEN.place("FILE:///shared/a%20b.mar") == "/shared/a b.mar"
    assert OPEN.place("https://models.example/m.mar") == "https://models.example/m.mar"


def test_links_may_lead_out_of_the_store_only_where_the_operator_allows_the_place_itself() -> None:
    assert [OPEN.bounds(url) for url in ("m.mar", "/store/a/m", "ftp://h/m.mar")] == ["/store"] * 3
    allowed = ("file:///shared/m.mar", "FILE:///shared/m.mar", "https://models.example/m.mar", "s3://b/m.mar")
    assert [OPEN.bounds(url) for url in allowed] == [""] * 4
    for url in ("https://models.example.evil/m.mar", "http://h/?https://models.example/"):
        assert refused(url, OPEN) == f"Given URL {url} does not match any allowed URL(s)"


def test_a_place_is_shown_as_it_was_named() -> None:
    assert STORE.shown("/store/a/m.mar") == "a/m.mar"
    assert STORE.shown("/storey/m.mar") == "/storey/m.mar"
    assert STORE.shown("https://h/m.mar") == "https://h/m.mar"
    assert ModelStore().shown("/store/m.mar") == "/store/m.mar"


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ServeError) as caught:
        read_patterns("https://h/.*,(")
    assert "'('" in caught.value.message
