"""Which value of TorchServe's configuration counts, and what is said of one that cannot."""

import pytest

from trivium.codecs.java_properties import read
from trivium.servers.torchserve.command.properties_table import CONFIG
from trivium.servers.torchserve.command.sources import gather
from trivium.settings.kinds import KEY_STORE, PATTERN, SWITCH, TEXT, Address, OneOf, Whole
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import Sources
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

FILE = "config.properties"


def gathered(text: str = "", flags: dict[str, str] | None = None, **environment: str) -> Sources:
    given = {
        name: SourceSetting(value, Origin("the command line", f"--{name}"))
        for name, value in (flags or {}).items()
    }
    return gather(read(FILE, text.encode()), given, environment)


def only(sources: Sources) -> Finding:
    (finding,) = sources.findings
    return finding


# -- who wins ----------------------------------------------------------------------------------------------


def test_flags_go_before_the_file_and_the_environment_before_both_where_the_file_lets_it() -> None:
    lets = "enable_envvars_config=true\n"
    assert gathered("model_store=a").text("model_store") == "a"
    assert gathered("model_store=a", {"model_store": "b"}).text("model_store") == "b"
    assert gathered("model_store=a", {"model_store": "b"}, TS_MODEL_STORE="c").text("model_store") == "b"
    assert (
        gathered(lets + "model_store=a", {"model_store": "b"}, TS_MODEL_STORE="c").text("model_store") == "c"
    )


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (("models={\\", ' "a": {"1.0": {"minWorkers": 1}\\', "}"), 4, "'}' is missing at its end"),
        (("models={\\", ' "a": {"1.0": {"minWorkers": 1\\', "}"), 4, "'}}' is missing at its end"),
        (("models={",), 2, "a line that goes on ends in a backslash"),
        (("models={\\", ' "a": {"1.0": {"minWorkers": 1]}\\', "}"), 3, "']' stands where '}' is missing"),
        (("models={\\", ' "a": {"1.0": {}}\\', "}}\\", "}"), 4, "a '}' too many"),
        (("models={\\", ' "a": {"1.0": {}}\\', ' "b": {}}'), 4, "Expecting ',' delimiter"),
        (("models={\\", r' "a": {"1.0": {"x": "}\\" ] {"}},}'), 3, "property name"),
        (('model_snapshot={"models": {\\', ' "a": 1}'), 3, "'}' is missing at its end"),
    ],
)
def test_json_over_several_lines_is_told_by_its_line_and_brace(
    lines: tuple[str, ...], line: int, words: str
) -> None:
    text = "# ours\n" + "\n".join(lines) + "\n"
    (fault,) = gather(read("config.properties", text.encode()), {}, {}).faults
    assert (fault.file, fault.line, fault.key) == ("config.properties", line, lines[0].partition("=")[0])
    assert words in fault.found


def test_a_variable_that_is_not_read_is_named_with_the_line_that_has_it_read() -> None:
    finding = only(gathered("", TS_JOB_QUEUE_SIZE="5"))
    assert (finding.severity, finding.key) == (Severity.NOTICE, "TS_JOB_QUEUE_SIZE")
    assert "enable_envvars_config=true" in finding.hint
    text = "enable_envvars_config=true\n"
    finding = only(gathered(text, TS_ALLOWED_URLS="https://h/.*"))
    assert "use_env_allowed_urls=true" in finding.hint
    found = gathered(text + "use_env_allowed_urls=true", TS_ALLOWED_URLS="https://h/.*")
    assert (found.text("allowed_urls"), found.findings) == ("https://h/.*", [])


def test_the_variables_with_names_of_their_own() -> None:
    text = "enable_envvars_config=true"
    assert gathered(text, TS_TOKEN_EXPIRATION_TIME_MIN="0.5").text("token_expiration_min") == "0.5"
    assert gathered(TS_OPEN_INFERENCE_PROTOCOL="oip").text("ts_open_inference_protocol") == "oip", (
        "read always"
    )
    assert not gathered(
        text, TS_MODELS="{", TS_IO_RATIO="70", TS_CONFIG_FILE="x", PATH="y"
    ).settings.keys() - {"enable_envvars_config"}


def test_a_misspelt_variable_is_named_with_the_nearest() -> None:
    finding = only(gathered("enable_envvars_config=true", TS_JOB_QUEUESIZE="5"))
    assert (finding.severity, finding.hint) == (Severity.NOTICE, "Did you mean TS_JOB_QUEUE_SIZE?")


def test_the_environment_is_put_in_for_its_names() -> None:
    found = gathered("model_store=/a/$$WHO$$/$$WHO$$-$$X$$", WHO="me", X="1")
    assert found.text("model_store") == "/a/me/me-1"
    found = gathered("\nmodel_store=$$WHO$$/$$X$$", X="1")
    finding = only(found)
    assert (finding.severity, finding.line, finding.key) == (Severity.ERROR, 2, "model_store")
    assert finding.found.startswith("Invalid Environment Variable WHO")
    assert not found.is_given("model_store")


def test_the_originals_example_is_read() -> None:
    text = (
        'models={\\\n  "noop": {\\\n    "1.0": {\\\n        "defaultVersion": true,\\\n        "marName": "noop.mar",'
        '\\\n        "minWorkers": 2\\\n    }\\\n  }\\\n}\n# a comment\nblacklist_env_vars=.*USERNAME.*|.*PASSWORD.*\n'
    )
    found = gathered(text)
    assert not found.findings
    assert '"minWorkers": 2' in found.text("models")


# -- what nobody sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", CONFIG.rows.values(), ids=lambda row: row.name)
def test_every_default_is_a_value_that_is_taken_in_silence(row: Setting) -> None:
    if row.default:
        assert gathered(f"{row.name}={row.default}").findings == []


def test_defaults_are_the_originals() -> None:
    found = gathered()
    assert (found.number("job_queue_size"), found.switch("disable_token_authorization")) == (100, False)
    assert found.origin("job_queue_size").file == "TorchServe's default"


# -- what is at fault --------------------------------------------------------------------------------------

MISSPELT = [name for name in CONFIG.rows if len(name) > 5 and name.islower()]


@pytest.mark.parametrize("name", MISSPELT)
def test_a_property_that_is_misspelt_is_named_with_its_line_and_the_nearest_one(name: str) -> None:
    wrong = name[:3] + name[4:]
    finding = only(gathered(f"# first\n{wrong}=1"))
    assert (finding.severity, finding.file, finding.line, finding.key) == (Severity.ERROR, FILE, 2, wrong)
    assert finding.hint.startswith(f"Did you mean {name}?")


@pytest.mark.parametrize("name", MISSPELT)
def test_a_property_in_other_capitals_is_named(name: str) -> None:
    assert only(gathered(f"{name.upper()}=1")).hint.startswith(f"Did you mean {name}?")


def test_a_property_of_somebody_else_is_told_and_no_fault() -> None:
    finding = only(gathered("org.example.plugin.zzz=1"))
    assert (finding.severity, finding.line) == (Severity.NOTICE, 1)


@pytest.mark.parametrize("name", CONFIG.rows)
def test_a_property_that_is_there_twice_is_named_with_both_lines(name: str) -> None:
    text = f"{name}={CONFIG.rows[name].default}"
    finding = next(one for one in gathered(f"{text}\n\n{text}").findings)
    assert (finding.line, finding.key) == (3, name)
    assert "line 1" in finding.found


BY_KIND = {SWITCH: ("yes", "1"), PATTERN: ("(", "a{99999999999999}"), KEY_STORE: ("JKS",)}
BY_CLASS = {
    Whole: ("many", "1.5", "1e3"),
    Address: ("127.0.0.1:8080", "ftp://h", "http://h:99999", "unix:x"),
    OneOf: ("promtheus",),
}
BY_NAME = {
    "token_expiration_min": ("0", "-1", "an hour", "nan"),
    "grpc_inference_address": ("http://127.0.0.1", "a b"),
    "grpc_management_address": ("http://127.0.0.1", "a b"),
    "allowed_urls": ("https://a/.*,(",),
    "models": ("{", "[]", '{"m": 1}', '{"m": {"1.0": 3}}'),
    "model_snapshot": ("{", "{}", '{"models": {"m": {"1.0": {}}}}'),
}


def wrong(row: Setting) -> tuple[str, ...]:
    """Values that it cannot have."""
    return BY_NAME.get(row.name) or BY_KIND.get(row.kind) or BY_CLASS[type(row.kind)]


WITH_RULES = [(row, value) for row in CONFIG.rows.values() if row.kind is not TEXT for value in wrong(row)]


@pytest.mark.parametrize(("row", "value"), WITH_RULES, ids=lambda one: getattr(one, "name", None))
def test_a_value_that_cannot_be_is_named_with_what_is_expected(row: Setting, value: str) -> None:
    finding = only(gathered(f"\n{row.name}={value}"))
    assert (finding.severity, finding.line, finding.key, finding.expected) == (
        Severity.ERROR,
        2,
        row.name,
        row.kind.expected,
    )
    assert finding.hint


@pytest.mark.parametrize(
    "row",
    [row for row in CONFIG.rows.values() if isinstance(row.kind, Whole)],
    ids=lambda row: row.name,
)
def test_a_number_out_of_its_range_is_told_the_range(row: Setting) -> None:
    assert isinstance(row.kind, Whole)
    for number in (row.kind.least - 1, row.kind.most + 1, 2**70):
        finding = only(gathered(f"{row.name}={number}"))
        assert f"from {row.kind.least} to {row.kind.most}" in finding.expected


@pytest.mark.parametrize(
    "row",
    [row for row in CONFIG.rows.values() if row.support is Support.REFUSED],
    ids=lambda row: row.name,
)
def test_what_is_not_supported_is_refused_with_the_way_out(row: Setting) -> None:
    finding = only(gathered(f"{row.name}=true"))
    assert finding.severity is Severity.ERROR
    assert "leave it out" in finding.hint


@pytest.mark.parametrize(
    "row",
    [row for row in CONFIG.rows.values() if row.support is Support.REPORTED],
    ids=lambda row: row.name,
)
def test_what_has_no_effect_is_reported_with_the_reason(row: Setting) -> None:
    other = "7" if isinstance(row.kind, Whole) else "false" if row.default == "true" else "true"
    finding = only(gathered(f"{row.name}={other}"))
    assert finding.severity is Severity.NOTICE
    assert row.how in finding.found


@pytest.mark.parametrize(
    ("text", "role", "port"),
    [
        ("http://h", "inference", 80),
        ("https://h", "inference", 443),
        ("http://h", "management", 8081),
        ("https://h", "management", 8444),
        ("http://h/", "metrics", 8082),
        ("https://h", "metrics", 8445),
    ],
)
def test_an_address_without_a_port_has_that_of_its_role(text: str, role: str, port: int) -> None:
    assert gathered(f"{role}_address={text}").value(f"{role}_address").bind.port == port
