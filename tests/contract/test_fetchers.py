"""The contract of `Fetcher`, kept by every fetcher against servers of this machine, some of them hostile."""

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.web import body, dripping, endless, redirect, s3, status, web, zipped

from trivium.fetchers.http import HttpFetcher, resolve
from trivium.fetchers.policy import read_places
from trivium.fetchers.s3 import S3Fetcher
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds

MODEL = zipped({"model.py": "x = 1\n", "serving.properties": "engine=Python\n"})


def bounds(*places: str, **fields: object) -> FetchBounds:
    allowed = read_places(",".join(places), ("http", "https", "s3"))
    return replace(FetchBounds(allowed, seconds=60.0), **fields)


def refused(fetcher: HttpFetcher | S3Fetcher, uri: str, into: Path, allowed: FetchBounds) -> ServeError:
    with pytest.raises(ServeError) as caught:
        fetcher.fetch(uri, into, allowed)
    return caught.value


# -- over HTTP ---------------------------------------------------------------------------------------------


def test_an_archive_comes_as_it_is(tmp_path: Path) -> None:
    with web({"/a/m.zip": body(MODEL)}) as server:
        path = HttpFetcher().fetch(f"{server.url}/a/m.zip?key=1", tmp_path, bounds(server.url))
        assert server.asked == ["/a/m.zip?key=1"]
    assert path == tmp_path / "m.zip"
    assert path.read_bytes() == MODEL


def test_a_redirect_within_the_list_is_followed(tmp_path: Path) -> None:
    with web({"/m.zip": redirect("/b/latest"), "/b/latest": body(MODEL)}) as server:
        path = HttpFetcher().fetch(f"{server.url}/m.zip", tmp_path, bounds(server.url))
        assert (path.name, path.read_bytes()) == ("m.zip", MODEL)


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{other}/m.zip",
        "http://localhost:{port}/m.zip",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/m.zip",
        "//127.0.0.1:{other}/m.zip",
        "s3://bucket/m.zip",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(location: str, tmp_path: Path) -> None:
    with web({"/m.zip": body(MODEL)}) as other:
        answers = {"/m.zip": status(404)}
        with web(answers) as server:
            answers["/m.zip"] = redirect(location.format(other=other.port, port=server.port))
            allowed = bounds(server.url, "s3://bucket")
            assert refused(HttpFetcher(), f"{server.url}/m.zip", tmp_path, allowed).code is Code.FORBIDDEN
            assert other.asked == []
            assert len(server.asked) == 1


@pytest.mark.parametrize(
    "location", ["http://[", "//[1.2/m.zip", "http://a:b:c/", "http://127.0.0.1:99999/m.zip"]
)
def test_a_redirect_to_no_url_is_refused(location: str, tmp_path: Path) -> None:
    with web({"/m.zip": redirect(location)}) as server:
        error = refused(HttpFetcher(), f"{server.url}/m.zip", tmp_path, bounds(server.url))
        assert error.code in (Code.LOAD_FAILED, Code.INVALID), error.message


def test_a_name_with_many_addresses_ends_in_time(tmp_path: Path) -> None:
    """Each is waited for; between two of them it is looked at the time."""
    asked: list[int] = []

    def is_given_up() -> bool:
        return len(asked) >= 3

    def addresses(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] * 1000

    allowed = bounds("http://127.0.0.1:1", is_given_up=is_given_up)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "create_connection", lambda address, seconds: refuse(asked))
        error = refused(HttpFetcher(addresses), "http://127.0.0.1:1/m.zip", tmp_path, allowed)
    assert "nobody waits for it any more" in error.message
    assert len(asked) == 3


def refuse(asked: list[int]) -> socket.socket:
    asked.append(1)
    raise ConnectionRefusedError("nobody is there")


def test_a_name_that_resolves_to_loopback_is_never_asked(tmp_path: Path) -> None:
    with web({"/m.zip": body(MODEL)}) as server:
        allowed = bounds(f"http://models.example:{server.port}", f"http://localhost:{server.port}")
        for host, fetcher in (
            ("models.example", HttpFetcher(lambda host, port: ["93.184.216.34", "127.0.0.1"])),
            ("localhost", HttpFetcher(resolve)),
        ):
            error = refused(fetcher, f"http://{host}:{server.port}/m.zip", tmp_path, allowed)
            assert (error.code, "not public" in error.message) == (Code.FORBIDDEN, True)
        assert server.asked == []


def test_the_address_that_was_judged_is_the_one_that_is_asked(tmp_path: Path) -> None:
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    fetcher = HttpFetcher(lambda host, port: answers.pop(0))
    with web({"/m.zip": body(MODEL)}) as server:
        fetcher.fetch(f"{server.url}/m.zip", tmp_path, bounds(server.url))
    assert len(answers) == 1  # a name is asked for once


def test_circles_of_redirects_end(tmp_path: Path) -> None:
    with web({"/m.zip": redirect("/m.zip")}) as server:
        error = refused(HttpFetcher(), f"{server.url}/m.zip", tmp_path, bounds(server.url))
        assert (error.code, "redirects" in error.message) == (Code.LOAD_FAILED, True)
        assert len(server.asked) == 6


@pytest.mark.parametrize("answer", [endless, body(b"", announced=10**12)])
def test_what_is_too_large_ends(answer, tmp_path: Path) -> None:
    with web({"/m.zip": answer}) as server:
        allowed = bounds(server.url, size=10**6)
        error = refused(HttpFetcher(), f"{server.url}/m.zip", tmp_path, allowed)
    assert (error.code, "--fetch-bytes" in error.message) == (Code.TOO_LARGE, True)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10**6


@pytest.mark.parametrize("in_head", [False, True])
@pytest.mark.parametrize("is_given_up", [False, True])
def test_who_drips_is_cut_off(in_head: bool, is_given_up: bool, tmp_path: Path) -> None:
    stop = threading.Event()
    with web({"/m.zip": dripping(stop, in_head)}) as server:
        allowed = bounds(server.url, seconds=0.3)
        if is_given_up:
            allowed = bounds(server.url, is_given_up=lambda: bool(server.asked))
        error = refused(HttpFetcher(), f"{server.url}/m.zip", tmp_path, allowed)
        stop.set()
    assert error.code is Code.LOAD_FAILED
    assert ("nobody waits" if is_given_up else "more than 0.3 s") in error.message


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (status(404), Code.NOT_FOUND, "answered 404"),
        (status(500), Code.LOAD_FAILED, "answered 500"),
        (status(302), Code.LOAD_FAILED, "answered 302"),
        (body(MODEL, announced=len(MODEL) + 1), Code.LOAD_FAILED, "ended after"),
        (lambda handler: handler.wfile.write(b"\0garbage\r\n"), Code.LOAD_FAILED, "garbage"),
        (lambda handler: None, Code.LOAD_FAILED, "could not be fetched"),
    ],
)
def test_what_servers_answer_else(answer, code: Code, words: str, tmp_path: Path) -> None:
    with web({"/m.zip": answer}) as server:
        error = refused(HttpFetcher(), f"{server.url}/m.zip?secret=1", tmp_path, bounds(server.url))
    assert error.code is code
    assert words in error.message
    assert "secret" not in error.message


def test_only_archives_come_over_http(tmp_path: Path) -> None:
    with web({"*": body(MODEL)}) as server:
        error = refused(HttpFetcher(), f"{server.url}/model", tmp_path, bounds(server.url))
        assert (error.code, server.asked) == (Code.UNSUPPORTED, [])
        assert ".tar.gz" in error.message


# -- from S3 -----------------------------------------------------------------------------------------------

OBJECTS = {
    "bucket/models/m/model.py": b"x = 1\n",
    "bucket/models/m/": b"",
    "bucket/models/m/serving.properties": b"engine=Python\n",
    "bucket/models/m/data/a.txt": b"a",
    "bucket/models/m2/model.py": b"other\n",
    "bucket/models/n.zip": MODEL,
    "bucket/evil/../../../x": b"evil",
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch):
    with web(s3(OBJECTS)) as server:
        for name, value in {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


def test_a_folder_of_objects_becomes_a_folder(aws, tmp_path: Path) -> None:
    path = S3Fetcher().fetch("s3://bucket/models/m", tmp_path, bounds("s3://bucket/models"))
    assert path == tmp_path / "m"
    files = {
        file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }
    assert files == {"model.py": b"x = 1\n", "serving.properties": b"engine=Python\n", "data/a.txt": b"a"}


def test_an_archive_is_one_object(aws, tmp_path: Path) -> None:
    path = S3Fetcher().fetch("s3://bucket/models/n.zip", tmp_path, bounds("s3://bucket"))
    assert (path.name, path.read_bytes()) == ("n.zip", MODEL)


@pytest.mark.parametrize(
    ("uri", "fields", "code"),
    [
        ("s3://other/models/m", {}, Code.FORBIDDEN),
        ("s3://bucket/models/none", {}, Code.NOT_FOUND),
        ("s3://bucket/models/none.zip", {}, Code.NOT_FOUND),
        ("s3://bucket/evil", {}, Code.LOAD_FAILED),
        ("s3://bucket/models/m", {"size": 5}, Code.TOO_LARGE),
        ("s3://bucket/models/m", {"files": 2}, Code.TOO_LARGE),
        ("s3://bucket/models/m", {"is_given_up": lambda: True}, Code.LOAD_FAILED),
    ],
)
def test_what_s3_is_refused(aws, uri: str, fields: dict[str, object], code: Code, tmp_path: Path) -> None:
    error = refused(S3Fetcher(), uri, tmp_path, bounds("s3://bucket", **fields))
    assert error.code is code
    assert not (tmp_path.parent / "x").exists()


def test_without_boto3_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    error = refused(S3Fetcher(), "s3://bucket/m", tmp_path, bounds("s3://bucket"))
    assert (error.code, "-m pip install 'boto3" in error.message) == (Code.UNSUPPORTED, True)
