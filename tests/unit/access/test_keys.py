"""The key file: what is read of it, and what every fault in it is said to be, without a word of its values."""

import os
import re
import time
from pathlib import Path

import pytest

from trivium.access.authorizer import KeyAuthorizer, find
from trivium.access.key_file import KeyFile, read_file
from trivium.access.keys import digest_of, parse_keys
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.wire import Head, RpcCall

SECRET = "the-text-of-a-key"
DIGEST = digest_of(SECRET).hex()


def row(**fields: str) -> str:
    lines = {"name": '"ci"', "sha256": f'"{DIGEST}"', "scopes": '["infer"]', **fields}
    return "[[key]]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items() if value)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("", None),
        ("2027-01-31", 1801353600.0),
        ("2027-01-31T00:00:00", 1801353600.0),
        ("2027-01-31T01:00:00+01:00", 1801353600.0),
    ],
)
def test_a_key_and_its_end_which_without_a_zone_is_utc(written: str, seconds: float | None) -> None:
    (key,) = parse_keys(row(expires=written, sha256=f'"{DIGEST.upper()}"'), "keys.toml")
    assert (key.name, key.digest, key.scopes) == ("ci", digest_of(SECRET), {AccessScope.INFER})
    assert key.expires == seconds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "keys.toml: key: no key; expected at least one [[key]]. Run `trivium key`"),
        ("[[key]\n", "keys.toml: not TOML: "),
        ("a = " + "[" * 3000, "keys.toml: not TOML: "),
        ("a = " + "9" * 5000, "keys.toml: not TOML: "),
        ("key = 1", "no list of tables"),
        ("[key]\nname = 'x'\n", "no list of tables"),
        (row() + "[other]\n", "keys.toml: other: no such table"),
        (row(name=""), "keys.toml:1: key[0].name: no name"),
        (row(name='"a\\u001bb"'), "key[0].name: no name"),
        ("\n" + row(sha256=f'"{SECRET}"'), f"keys.toml:2: key[0].sha256: a text of {len(SECRET)} characters"),
        (row(sha256="1"), "key[0].sha256: no text; expected 64 hexadecimal digits"),
        (row(scopes="[]"), "key[0].scopes: no such list; expected a list of infer, observe, manage"),
        (row(scopes='["open"]'), "key[0].scopes"),
        (row(scopes='"infer"'), "key[0].scopes"),
        (row(expires='"2027-01-31"'), "key[0].expires: no date"),
        (row(expires="01:00:00"), "key[0].expires: no date"),
        (row(key=f'"{SECRET}"'), "key[0].key: no such field; expected name, sha256, scopes, expires"),
        (row() + row(sha256=f'"{"0" * 64}"'), "key[1].name: the name of another key"),
        (row() + row(name='"two"'), "key[1].sha256: the digest of another key"),
    ],
)
def test_faults_name_their_place_and_never_a_value(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_keys(text, "keys.toml")
    assert words in caught.value.message
    assert SECRET not in caught.value.message


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_keys(row(name="") + row(scopes="[]"), "keys.toml")
    assert [finding.line for finding in caught.value.findings] == [1, 4]


def test_blank_lines_cost_no_more_than_themselves() -> None:
    began = time.process_time()
    with pytest.raises(ConfigError) as caught:
        parse_keys("\n" * 200_000 + row(name=""), "keys.toml")
    assert [finding.line for finding in caught.value.findings] == [200_001]
    assert time.process_time() - began < 5


def test_a_key_is_found_by_its_text() -> None:
    keys = parse_keys(row() + row(name='"two"', sha256=f'"{digest_of("other").hex()}"'), "keys.toml")
    assert [key.name for key in (find(SECRET, keys), find("other", keys)) if key] == ["ci", "two"]
    assert find("", keys) is None
    assert find("the-text-of-a-ke\xff", keys) is None


@pytest.mark.parametrize(
    ("field", "is_let_in"),
    [
        (f"Bearer {SECRET}", True),
        (f"bearer {SECRET}", True),
        (f"BEARER   {SECRET} ", True),
        (f"Bearer {SECRET.upper()}", False),
        (f"Bearer{SECRET}", False),
        (f"Basic {SECRET}", False),
        (SECRET, False),
        ("Bearer ", False),
        (f"Bearer {SECRET}, Bearer {SECRET}", False),
        (f"Bearer {DIGEST}", False),
        ("", False),
    ],
)
def test_how_a_key_is_shown_over_http_and_grpc(field: str, is_let_in: bool) -> None:
    authorizer = KeyAuthorizer(lambda: parse_keys(row(), "keys.toml"), lambda: 0.0)
    headers = {b"authorization": field.encode()} if field else {}
    for request in (Head("GET", "/", "", headers), RpcCall("/a/B", {"authorization": field})):
        authorizer.authorize(AccessScope.OPEN, request)
        if is_let_in:
            authorizer.authorize(AccessScope.INFER, request)
            continue
        with pytest.raises(ServeError) as caught:
            authorizer.authorize(AccessScope.INFER, request)
        assert caught.value.code is Code.UNAUTHENTICATED
        assert SECRET not in caught.value.message


class FakeFile:
    """A file that says what the test wants."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, path: Path) -> str:
        if not self.text:
            raise ServeError(Code.NOT_FOUND, f"The key file {path} cannot be read.")
        return self.text


def test_a_change_counts_once_two_looks_have_seen_it(caplog: pytest.LogCaptureFixture) -> None:
    disk = FakeFile(row())
    file = KeyFile(Path("keys.toml"), disk)
    disk.text = row(name='"two"')
    file.look()
    assert [key.name for key in file.in_force()] == ["ci"]
    file.look()
    assert [key.name for key in file.in_force()] == ["two"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("text", ["", "[[key]]\n", "no TOML"])
def test_what_cannot_be_read_changes_nothing_and_is_said_once(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FakeFile(row())
    file = KeyFile(Path("keys.toml"), disk)
    disk.text = text
    for _ in range(5):
        file.look()
    assert [key.name for key in file.in_force()] == ["ci"]
    (said,) = [record.getMessage() for record in caplog.records]
    assert re.search(r"keys\.toml.* The keys read before stay in force\.$", said)
    disk.text = row(name='"back"')
    for _ in range(2):
        file.look()
    assert [key.name for key in file.in_force()] == ["back"]


def test_a_start_needs_a_file_that_can_be_read(tmp_path: Path) -> None:
    pipe, large, latin = tmp_path / "pipe", tmp_path / "large", tmp_path / "latin"
    large.write_bytes(b"#" * (2**20 + 1))
    latin.write_bytes(b"# \xff")
    os.mkfifo(pipe)
    for path, words in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "Is a directory"),
        (large, "larger than"),
        (latin, "no UTF-8"),
        (pipe, "a named pipe, not a file"),
    ):
        with pytest.raises(ServeError, match=words) as caught:
            read_file(path)
        assert str(path) in caught.value.message


def test_a_path_that_has_become_a_folder_costs_no_descriptor(tmp_path: Path) -> None:
    """It is looked at twice a second."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(ServeError, match="Is a directory"):
            read_file(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
