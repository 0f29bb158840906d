"""The server's configuration: who wins, what is unknown, what is of a wrong type."""

from dataclasses import fields

import pytest

from trivium import config
from trivium.config import ServerConfig, from_process, load_config
from trivium.types.errors import Code, ConfigError, ServeError


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "trivium.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def faults(path=None, environment=None, **flags):
    with pytest.raises(ConfigError) as caught:
        load_config(path, environment or {}, flags)
    return caught.value.findings


def test_without_anything_the_defaults_hold():
    assert load_config(None, {"PATH": "/bin", "HTTP_PORT": "1"}, {"http_port": None}) == ServerConfig()


def test_flags_win_over_environment_over_file_over_defaults(file):
    path = file("http_port = 1\nqueue_items = 2\nhost = 'file'\n")
    environment = {"TRIVIUM_HTTP_PORT": "3", "TRIVIUM_QUEUE_ITEMS": "4"}
    loaded = load_config(path, environment, {"http_port": 5})
    assert (loaded.http_port, loaded.queue_items, loaded.host) == (5, 4, "file")
    assert loaded.max_connections == ServerConfig().max_connections


def test_the_process_has_the_environment(monkeypatch):
    monkeypatch.setitem(config.os.environ, "TRIVIUM_HTTP_PORT", "17")
    assert from_process(None, {}).http_port == 17


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("OPEN", "true", True),
        ("OPEN", "FALSE", False),
        ("OPEN", "1", True),
        ("IDLE_TIMEOUT", "1.5", 1.5),
        ("IDLE_TIMEOUT", "3", 3.0),
        ("HTTP_PORT", "0", 0),
        ("HOST", "::1", "::1"),
        ("ACCESS_LOG", "", ""),
    ],
)
def test_environment(key, text, value):
    loaded = getattr(load_config(None, {f"TRIVIUM_{key}": text}, {}), key.lower())
    assert (loaded, type(loaded)) == (value, type(value))


@pytest.mark.parametrize(
    ("line", "value"),
    [("open = true", True), ("idle_timeout = 3", 3.0), ("idle_timeout = 1.5", 1.5), ("host = ''", "")],
)
def test_lines_of_a_file(file, line, value):
    loaded = getattr(load_config(file(line), {}, {}), line.split()[0])
    assert (loaded, type(loaded)) == (value, type(value))


def test_an_unknown_key_suggests_the_near_one(file):
    near, far = faults(file("http_prot = 1\n[zzz]\nx = 1\n"))
    assert (near.key, near.found, near.mend) == ("http_prot", "no such option", "Did you mean 'http_port'?")
    assert near.file.endswith("trivium.toml")
    assert (far.key, far.mend) == ("zzz", "Remove it.")
    assert "http_port" in far.expected
    (there,) = faults(environment={"TRIVIUM_HTTP_PROT": "1"})
    assert (there.file, there.mend) == ("environment", "Did you mean 'http_port'?")


@pytest.mark.parametrize("value", ["own", "grpcio"])
def test_an_option_that_was_removed_says_so_wherever_it_is_set(file, value):
    found = faults(file(f"grpc_layer = '{value}'\n"), {"TRIVIUM_GRPC_LAYER": value}, grpc_layer=value)
    assert [fault.file.rpartition("/")[2] for fault in found] == [
        "trivium.toml",
        "environment",
        "command line",
    ]
    said = "grpc_layer: was removed: gRPC is served by Trivium's own HTTP/2 alone. Drop it."
    assert all(str(fault).endswith(said) for fault in found)
    assert not config.REMOVED.keys() & {option.name for option in fields(ServerConfig)}


def test_every_fault_is_named_at_once(file):
    found = faults(file("http_prot = 1\nhttp_port = 'x'\n"), {"TRIVIUM_OPEN": "maybe"}, queue_items=0)
    assert [fault.key for fault in found] == ["http_prot", "http_port", "open", "queue_items"]


WRONG = {
    "http_port": ["'8080x'", "true", "1.0", "[1]", "-1", "65536", "''", "nan"],
    "queue_items": ["0", "1e3"],
    "idle_timeout": ["'soon'", "true", "-0.5", "nan", "inf", "[]", "1" + "0" * 400],
    "open": ["'maybe'", "2", "1.0", "''"],
    "host": ["1", "true", "[]"],
    "log_level": ["'loud'", "1", "''"],
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in WRONG.items() for text in texts])
def test_what_is_of_a_wrong_type_or_out_of_bounds(file, key, text):
    (fault,) = faults(file(f"{key} = {text}\n"))
    assert fault.key == key
    kind = {option.name: option.type for option in fields(ServerConfig)}[key]
    words = {
        int: "a whole number from ",
        float: "a number from ",
        bool: "true or false",
        str: ("text", "one of "),
    }
    assert fault.expected.startswith(words[kind])


def test_every_option_says_what_it_is_for():
    assert all(option.metadata["help"].endswith(".") for option in fields(ServerConfig))


@pytest.mark.parametrize("text", ["http_port 1", b"host = '\xff'", "a = 1\na = 2"])
def test_a_file_that_is_no_toml(file, text):
    (fault,) = faults(file(text))
    assert fault.found.startswith("not TOML: ")
    assert fault.expected == "lines like: http_port = 8080"


@pytest.mark.parametrize(
    ("name", "said"), [("missing", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read(tmp_path, name, said):
    with pytest.raises(ServeError) as caught:
        load_config(tmp_path / name, {}, {})
    assert caught.value.code is Code.NOT_FOUND
    assert caught.value.message == f"Cannot read the configuration {tmp_path / name}: {said}."


def test_no_tls_without_files():
    assert config.read_grpc_tls(ServerConfig()) is None


def test_tls_takes_a_certificate_and_its_key(file):
    path = str(file("no certificate"))
    for options in ({"grpc_tls_certificate": path}, {"grpc_tls_client_authorities": path}):
        with pytest.raises(ServeError, match="Give both"):
            config.read_grpc_tls(ServerConfig(**options))
    for key in (path, "/nowhere/key.pem"):
        with pytest.raises(ServeError, match="cannot be used") as caught:
            config.read_grpc_tls(ServerConfig(grpc_tls_certificate=path, grpc_tls_key=key))
        assert caught.value.code is Code.INVALID
        assert path in caught.value.message
