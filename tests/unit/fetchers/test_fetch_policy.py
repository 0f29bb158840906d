"""The allow-list of fetches and the addresses that may be reached, as tables; no name is resolved here."""

from pathlib import Path

import pytest

from trivium.fetchers.gate import gate
from trivium.fetchers.policy import archive_suffix, judge_address, permitted, read_places, safe_name
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds, FetchPlace
from trivium.types.sources import ModelSource

SCHEMES = ("http", "https", "s3", "hf")


def places(text: str) -> tuple[FetchPlace, ...]:
    return read_places(text, SCHEMES)


@pytest.mark.parametrize(
    ("entry", "uri"),
    [
        ("https://h", "https://h/m.zip"),
        ("https://h/", "https://h/m.zip"),
        ("https://h/models", "https://h/models/m.zip"),
        ("https://h/models/", "https://h/models/a/m.zip?x=..%2f"),
        ("https://H.example", "https://h.Example.:443/m.zip"),
        ("http://h:8080", "http://h:8080/m.zip"),
        ("http://127.0.0.1:81", "http://127.0.0.1:81/m.zip"),
        ("http://[::1]:81", "http://[::1]:81/m.zip"),
        ("s3://bucket/a", "s3://bucket/a"),
        ("https://h/m", "https://h/m/a..b;v=1/..a/100%25/%20x/%C3%A9;..;/m.zip"),
        ("hf", "hf://org/model"),
        ("https://h,HF", "hf://org/model"),
        ("hf://Org", "hf://org/model"),
        ("hf://org/model", "hf://org/model"),
        ("ftp://h, https://h".partition(", ")[2], "https://h/x"),
    ],
)
def test_what_an_entry_covers(entry: str, uri: str) -> None:
    assert permitted(uri, places(entry)).scheme == uri.partition(":")[0]


@pytest.mark.parametrize(
    ("entry", "uri", "code"),
    [
        ("", "https://h/m.zip", Code.FORBIDDEN),
        ("https://h", "http://h/m.zip", Code.FORBIDDEN),
        ("https://h", "https://h:444/m.zip", Code.FORBIDDEN),
        ("https://h", "https://h.evil/m.zip", Code.FORBIDDEN),
        ("https://h/models", "https://h/models2/m.zip", Code.FORBIDDEN),
        ("https://h/models", "https://h/models/../m.zip", Code.INVALID),
        ("https://h/models", "https://h/models/%2e%2e/m.zip", Code.INVALID),
        ("https://h/models", "https://h/models/..%2fm.zip", Code.INVALID),
        *(
            ("https://h/models", f"https://h/models/{segment}/m.zip", Code.INVALID)
            for segment in (
                *(
                    "..;",
                    "..;a=b",
                    ".;",
                    "..%3b",
                    "%2e%2e;",
                    "%2e%2e%3bx",
                    ".%2e",
                    "%252e%252e",
                    "%25252e%25252e",
                ),
                *(
                    "..%5c",
                    "..%255c",
                    "a%2fb",
                    "a%252fb",
                    "..%20",
                    "%20..",
                    "...",
                    "%00",
                    "..%00",
                    "%0a",
                    "%7f",
                ),
                *("%c0%ae%c0%ae", "%ff"),
            )
        ),
        ("https://h", "https://h@evil/m.zip", Code.INVALID),
        ("https://h", "https://evil\\@h/m.zip", Code.INVALID),
        ("https://h", "https://h/m.zip\r\nX: y", Code.INVALID),
        ("https://h", "https://h:x/m.zip", Code.INVALID),
        ("https://h", "https:///m.zip", Code.INVALID),
        ("https://h", "file:///etc/passwd", Code.INVALID),
        ("https://h", "https://h/" + "m" * 9000, Code.INVALID),
        ("http://127.0.0.1", "http://2130706433/m.zip", Code.FORBIDDEN),
        ("s3://bucket/a", "s3://bucket/ab", Code.FORBIDDEN),
        ("s3://hf", "hf://org/model", Code.FORBIDDEN),
        ("hf", "https://org/model", Code.FORBIDDEN),
        ("hf://org/model", "hf://org/model2", Code.FORBIDDEN),
        ("hf://org", "hf://org2/model", Code.FORBIDDEN),
    ],
)
def test_what_an_entry_does_not_cover(entry: str, uri: str, code: Code) -> None:
    with pytest.raises(ServeError) as caught:
        permitted(uri, places(entry))
    assert caught.value.code is code


@pytest.mark.parametrize("text", ["h", "ftp://h", "https://", "https://h/..", "https://a b", "gs://bucket"])
def test_an_entry_that_is_none_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ServeError, match=r"--fetch-from.*scheme://host"):
        places(f"https://good,{text}")


PUBLIC, LOOPBACK, LINK = "93.184.216.34", "127.0.0.1", "169.254.169.254"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (PUBLIC, "h"),
        ("2606:2800:220:1::1", "h"),
        (LOOPBACK, LOOPBACK),
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("fd00::7", "fd00::7"),
        ("::ffff:127.0.0.1", LOOPBACK),
    ],
)
def test_addresses_that_may_be_reached(address: str, host: str) -> None:
    judge_address(address, host)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (LOOPBACK, "localhost"),
        (LOOPBACK, "h"),
        (LOOPBACK, "127.0.0.2"),
        (LOOPBACK, "2130706433"),
        ("10.0.0.7", "h"),
        ("100.64.0.1", "h"),
        ("::1", "h"),
        ("fd00:ec2::254", "h"),
        ("::ffff:10.0.0.7", "h"),
        ("64:ff9b::7f00:1", "h"),
        ("2002:7f00:1::", "h"),
        (LINK, "h"),
        (LINK, LINK),
        (f"::ffff:{LINK}", f"::ffff:{LINK}"),
        ("fe80::1%eth0", "fe80::1"),
        ("0.0.0.0", "0.0.0.0"),
        ("224.0.0.1", "224.0.0.1"),
    ],
)
def test_addresses_that_are_never_reached_so(address: str, host: str) -> None:
    with pytest.raises(ServeError) as caught:
        judge_address(address, host)
    assert caught.value.code is Code.FORBIDDEN


@pytest.mark.parametrize(
    ("path", "name", "suffix"),
    [
        ("/a/m.zip", "m.zip", ".zip"),
        ("/a/M.TAR.GZ", "M.TAR.GZ", ".tar.gz"),
        ("/a/m.mar", "m.mar", ".mar"),
        ("/a/m%2e%2e%2fx.zip", "m.._x.zip", ".zip"),
        ("/.ssh", "ssh", ""),
        ("/", "model", ""),
        ("/m\u00e9.zip", "m_.zip", ".zip"),
    ],
)
def test_names_of_files(path: str, name: str, suffix: str) -> None:
    assert (safe_name(path), archive_suffix(path)) == (name, suffix)


@pytest.mark.parametrize("uri", ["djl://ai.djl/x", "gs://b/m", "hdfs://h/m", "ftp://h/m.zip"])
def test_other_schemes_are_refused_with_the_way_out(uri, tmp_path) -> None:
    fetch = gate((), "", 1, 1.0)
    with pytest.raises(ServeError, match=r"not fetched from .*Download the model") as caught:
        fetch(ModelSource(uri), tmp_path, lambda: False)
    assert caught.value.code is Code.UNSUPPORTED


@pytest.mark.parametrize("text", ["hf://org/model@main", "hf://org/model:Q4"])
def test_a_permission_names_no_revision(text: str) -> None:
    with pytest.raises(ServeError, match=r"--fetch-from.*hf://ORG/MODEL"):
        places(text)


class Noting:
    """Fetches nothing, and keeps what it was allowed."""

    schemes = ("hf", "s3")

    def __init__(self) -> None:
        self.bounds = FetchBounds()

    def fetch(self, uri: str, into: Path, bounds: FetchBounds) -> Path:
        self.bounds = bounds
        permitted(uri.partition("@")[0], bounds.places)
        return into


@pytest.mark.parametrize("uri", ["hf://org/model@v1", "s3://bucket/models/m"])
def test_a_word_of_the_command_is_a_permission_for_itself_alone(uri: str, tmp_path: Path) -> None:
    noting = Noting()
    fetch = gate([noting], "", 10, 1.0)
    with pytest.raises(ServeError) as caught:
        fetch(ModelSource(uri), tmp_path, lambda: False)
    assert (caught.value.code, noting.bounds.is_named) == (Code.FORBIDDEN, False)
    fetch(ModelSource(uri, is_named=True), tmp_path, lambda: False)
    assert noting.bounds.is_named
    with pytest.raises(ServeError, match="allows 1 other"):
        permitted("hf://org/other", noting.bounds.places)


@pytest.mark.parametrize(
    ("server", "model", "comes"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_code_comes_where_the_server_or_the_model_trusts_it(server, model, comes, tmp_path: Path) -> None:
    noting = Noting()
    gate([noting], "hf", 10, 1.0, with_code=server)(
        ModelSource("hf://o/m", with_code=model), tmp_path, lambda: False
    )
    assert noting.bounds.with_code is comes
