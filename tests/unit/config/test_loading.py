"""The server's configuration: who wins, what is unknown, what is of a wrong type, what is only noticed."""

from operator import attrgetter

import pytest

from trivium.catalogue import CATALOGUE, configured
from trivium.config import loading
from trivium.config.loading import from_process, load_config
from trivium.config.options import HttpConfig, ServerConfig
from trivium.settings.kinds import OneOf
from trivium.types.errors import Code, ConfigError, ServeError

SCHEMA = CATALOGUE.schema


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "trivium.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def removed(monkeypatch):
    monkeypatch.setitem(loading.REMOVED, "grpc_lair", "Drop it: there is one lair.")


def faults(path=None, environment=None, **flags):
    with pytest.raises(ConfigError) as caught:
        load_config(SCHEMA, path, environment or {}, flags)
    return caught.value.findings


def config(path=None, environment=None, **flags):
    return load_config(SCHEMA, path, environment or {}, flags).config


def notices(path=None, environment=None, **flags):
    return load_config(SCHEMA, path, environment or {}, flags).notices


def value_of(loaded, name):
    return SCHEMA.value(loaded, name)


# -- who wins ----------------------------------------------------------------------------------------------


def test_without_anything_the_defaults_hold():
    loaded = load_config(SCHEMA, None, {"PATH": "/bin", "HTTP_PORT": "1"}, {"http_port": None})
    assert (loaded.config, loaded.notices) == (ServerConfig(), ())


@pytest.mark.parametrize("text", ["http_port = 1\nqueue_items = 2\nhost = 'file'\n", (
    "[http]\nport = 1\n[models]\nqueue_items = 2\n[server]\nhost = 'file'\n"
)])  # fmt: skip
def test_flags_win_over_environment_over_file_over_defaults(file, text):
    environment = {"TRIVIUM_HTTP_PORT": "3", "TRIVIUM_QUEUE_ITEMS": "4"}
    loaded = config(file(text), environment, http_port=5)
    assert (loaded.http.port, loaded.models.queue_items, loaded.server.host) == (5, 4, "file")
    assert loaded.server.max_connections == ServerConfig().server.max_connections


def test_the_process_has_the_environment(monkeypatch):
    monkeypatch.setitem(loading.os.environ, "TRIVIUM_HTTP_PORT", "17")
    assert from_process(SCHEMA, None, {}).config.http.port == 17


@pytest.mark.parametrize("name", SCHEMA.options)
def test_every_option_is_read_from_every_source(file, name):
    option = SCHEMA.options[name]
    value = {bool: True, str: option.kind.words[-1] if isinstance(option.kind, OneOf) else "text"}.get(
        option.type, 7
    )
    text = "true" if value is True else repr(value)
    loaded = (
        config(file(f"[{option.group}]\n{option.key} = {text}\n")),
        config(file(f"{name} = {text}\n")),
        config(environment={option.variable: str(value)}),
        config(**{name: value}),
        configured(**{name: value}),
    )
    for each in loaded:
        assert (value_of(each, name), type(value_of(each, name))) == (value, option.type)


# -- values ------------------------------------------------------------------------------------------------


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
    loaded = value_of(config(environment={f"TRIVIUM_{key}": text}), key.lower())
    assert (loaded, type(loaded)) == (value, type(value))


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("[security]\nopen = true", True),
        ("[http]\nidle_timeout = 3", 3.0),
        ("[http]\nidle_timeout = 1.5", 1.5),
        ("[server]\nhost = ''", ""),
    ],
)
def test_lines_of_a_file(file, lines, value):
    loaded = value_of(config(file(lines)), lines.split()[1])
    assert (loaded, type(loaded)) == (value, type(value))


def test_every_fault_is_named_at_once(file):
    text = "http_prot = 1\nmax_body_bytes = 'x'\n"
    found = faults(file(text), {"TRIVIUM_OPEN": "maybe"}, queue_items=0)
    assert [fault.key for fault in found] == ["http_prot", "max_body_bytes", "TRIVIUM_OPEN", "--queue-items"]
    assert [fault.file for fault in found[2:]] == ["environment", "command line"]


WRONG = {
    "http.port": ["'8080x'", "true", "1.0", "[1]", "-1", "65536", "''", "nan", "{}"],
    "models.queue_items": ["0", "1e3"],
    "http.idle_timeout": ["'soon'", "true", "-0.5", "nan", "inf", "[]", "1" + "0" * 400],
    "security.open": ["'maybe'", "2", "1.0", "''"],
    "server.host": ["1", "true", "[]"],
    "server.log_level": ["'loud'", "1", "''"],
}
WORDS = {
    int: "a whole number from ",
    float: "a number from ",
    bool: "true or false",
    str: ("text", "one of "),
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in WRONG.items() for text in texts])
def test_what_is_of_a_wrong_type_or_out_of_bounds(file, key, text):
    table, name = key.split(".")
    (fault,) = faults(file(f"[{table}]\n{name} = {text}\n"))
    assert fault.key == key
    assert fault.expected.startswith(WORDS[type(attrgetter(key)(ServerConfig()))])


# -- unknown, doubled and removed options ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "key", "hint"),
    [
        ("http_prot = 1", "http_prot", "Did you mean 'port' in [http]?"),
        ("port = 1", "port", "Did you mean 'port' in [http]?"),
        ("[http]\nprot = 1", "http.prot", "Did you mean 'port' in [http]?"),
        ("[http]\nhttp_port = 1", "http.http_port", "Did you mean 'port' in [http]?"),
        ("[grpc]\nprot = 1", "grpc.prot", "Did you mean 'port' in [grpc]?"),
        ("[http]\nquantiles = '0.5'", "http.quantiles", "Did you mean 'quantiles' in [metrics]?"),
        (
            "[metrics]\nmax-body-bytes = 1",
            "metrics.max-body-bytes",
            "Did you mean 'max_body_bytes' in [server]?",
        ),
        ("[metric]\nport = 1", "metric", "Did you mean [metrics]?"),
        ("[zzz]\nx = 1", "zzz", "Remove it."),
        ("zzz = 1", "zzz", "Remove it."),
        ("http = 8080", "http", "Write [http] and its keys below."),
    ],
)
def test_an_unknown_key_suggests_the_near_one(file, lines, key, hint):
    (fault,) = faults(file(lines))
    assert (fault.key, fault.hint) == (key, hint)
    assert fault.file.endswith("trivium.toml")


def test_an_unknown_key_names_those_that_there_are(file):
    inside, outside = faults(file("zzz = 1\n[workers]\nzzz = 1\n"))[::-1]
    assert inside.expected.startswith("one of run_timeout, startup_timeout, items, ")
    assert outside.expected.startswith("one of [server], [http], ")


def test_a_key_that_is_given_twice(file):
    (fault,) = faults(file("http_port = 1\n[http]\nport = 2\n"))
    assert (fault.key, fault.found, fault.hint) == (
        "http.port",
        "http_port gives it, too",
        "Keep port in [http].",
    )


def test_keys_outside_of_a_table_are_noticed_in_one_line(file):
    (notice,) = notices(file("http_port = 1\nworker_items = 2\n[grpc]\nport = 3\n"))
    assert notice.endswith("In tables, http_port is port in [http], worker_items is items in [workers].")
    assert notices(file("[http]\nport = 1\n")) == ()


def test_an_option_that_was_removed_is_an_error_from_any_source(file, removed):
    for path in (file("grpc_lair = 'own'"), file("[grpc]\nlair = 'own'")):
        (fault,) = faults(path)
        assert (fault.found, fault.hint) == ("this option was removed", "Drop it: there is one lair.")
    (variable,) = faults(environment={"TRIVIUM_GRPC_LAIR": "own"})
    (flag,) = faults(grpc_lair="own")
    assert (variable.key, flag.key) == ("TRIVIUM_GRPC_LAIR", "--grpc-lair")
    assert variable.hint == flag.hint == "Drop it: there is one lair."


def test_no_option_is_both_there_and_removed():
    assert not loading.REMOVED.keys() & SCHEMA.options.keys()


def test_a_configuration_in_code():
    assert configured(http_port=0) == ServerConfig(http=HttpConfig(port=0))
    with pytest.raises(
        ConfigError, match=r"options: http_prot: no such option; .* Did you mean 'http_port'\?"
    ):
        configured(http_prot=0)
    with pytest.raises(
        ConfigError, match=r"options: --http-port: -1; expected a whole number from 0 to 65535"
    ):
        configured(http_port=-1)


# -- the environment ---------------------------------------------------------------------------------------


def test_an_unknown_variable_is_a_warning_with_the_near_name():
    near, far = notices(environment={"TRIVIUM_HTTP_PROT": "1", "TRIVIUM_ZZZ": "1"})
    assert (
        near
        == "The variable TRIVIUM_HTTP_PROT is no option and has no effect. Did you mean TRIVIUM_HTTP_PORT?"
    )
    assert far == "The variable TRIVIUM_ZZZ is no option and has no effect."


def test_a_flag_replaces_a_bad_variable():
    environment = {"TRIVIUM_QUEUE_ITEMS": "few"}
    (fault,) = faults(environment=environment)
    assert (fault.file, fault.key, fault.found) == ("environment", "TRIVIUM_QUEUE_ITEMS", "'few'")
    assert config(environment=environment, queue_items=5).models.queue_items == 5
    (fault,) = faults(environment=environment, queue_items=0)
    assert fault.file == "command line"


SERVICE = {
    "TRIVIUM_SERVICE_HOST": "10.0.0.1",
    "TRIVIUM_SERVICE_PORT": "80",
    "TRIVIUM_SERVICE_PORT_HTTP": "80",
    "TRIVIUM_SERVICE_PORT_GRPC_WEB": "81",
    "TRIVIUM_PORT": "tcp://10.0.0.1:80",
    "TRIVIUM_PORT_80_TCP": "tcp://10.0.0.1:80",
    "TRIVIUM_PORT_80_TCP_PROTO": "tcp",
    "TRIVIUM_PORT_80_TCP_PORT": "80",
    "TRIVIUM_PORT_80_TCP_ADDR": "10.0.0.1",
    "TRIVIUM_PORT_53_UDP": "udp://10.0.0.1:53",
    "TRIVIUM_PORT_53_UDP_ADDR": "10.0.0.1",
    "TRIVIUM_PORT_9_SCTP_PROTO": "sctp",
    "TRIVIUM_HTTP_PORT": "tcp://10.0.0.1:80",
    "TRIVIUM_HTTP_SERVICE_HOST": "10.0.0.1",
    "TRIVIUM_HTTP_SERVICE_PORT": "80",
    "TRIVIUM_METRICS_PORT_8002_TCP_ADDR": "10.0.0.1",
    "TRIVIUM_A_B_C_SERVICE_PORT_HTTP": "80",
    "TRIVIUM_A_B_C_PORT": "udp://10.0.0.1:80",
    "TRIVIUM__X_SERVICE_HOST": "10.0.0.1",
}


@pytest.mark.parametrize("variable", SERVICE)
def test_a_variable_of_a_service_is_skipped(variable):
    loaded = load_config(SCHEMA, None, {variable: SERVICE[variable]}, {})
    assert loaded.config == ServerConfig()
    (notice,) = loaded.notices
    assert notice.startswith(f"Skipped variables that Kubernetes sets for Services: {variable}. ")


def test_one_line_tells_of_all_that_were_skipped_options_first():
    (notice,) = notices(environment=SERVICE)
    assert notice.startswith(
        "Skipped variables that Kubernetes sets for Services: TRIVIUM_HTTP_PORT, TRIVIUM_A_B_C_PORT, "
    )
    assert f" and {len(SERVICE) - 6} more. " in notice


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TRIVIUM_SERVICE", "10.0.0.1"),
        ("TRIVIUM_PORT", "80"),
        ("TRIVIUM_PORT_X_TCP", "tcp://10.0.0.1:80"),
        ("TRIVIUM_PORT_80_ICMP", "1"),
        ("TRIVIUM_PORT_80_TCP_NAME", "1"),
        ("TRIVIUM_SERVICE_HOSTS", "10.0.0.1"),
    ],
)
def test_a_variable_that_only_looks_like_that_is_unknown(variable, value):
    (notice,) = notices(environment={variable: value})
    assert notice.startswith(f"The variable {variable} is no option")


def test_no_option_is_taken_for_a_variable_of_a_service():
    values = {option.variable: str(option.default).lower() for option in SCHEMA.options.values()}
    assert load_config(SCHEMA, None, values, {}) == loading.LoadedConfig(ServerConfig(), ())


def test_a_port_that_is_neither_a_number_nor_a_url_is_an_error():
    (fault,) = faults(environment={"TRIVIUM_HTTP_PORT": "eighty"})
    assert fault.key == "TRIVIUM_HTTP_PORT"


# -- files that cannot be read -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["http_port 1", b"host = '\xff'", "a = 1\na = 2"])
def test_a_file_that_is_no_toml(file, text):
    (fault,) = faults(file(text))
    assert fault.found.startswith("not TOML: ")
    assert fault.expected == "tables like [http], lines like port = 8080"


@pytest.mark.parametrize(
    ("name", "said"), [("missing", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read(tmp_path, name, said):
    with pytest.raises(ServeError) as caught:
        load_config(SCHEMA, tmp_path / name, {}, {})
    assert caught.value.code is Code.NOT_FOUND
    assert caught.value.message == f"Cannot read the configuration {tmp_path / name}: {said}."
