"""Which value of DJL's configuration counts, and what is said of one that cannot."""

import pytest

from trivium.codecs.java_properties import read
from trivium.servers.djl.command.keys import CONFIG
from trivium.servers.djl.command.sources import gather
from trivium.settings.kinds import TEXT, Whole
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import Sources
from trivium.types.findings import Finding, Severity

FILE = "config.properties"
ROWS = CONFIG.rows.values()


def gathered(text: str = "", models: tuple[str, ...] = (), store: str = "", **environment: str) -> Sources:
    return gather(read(FILE, text.encode()), models, store, environment)


def only(sources: Sources) -> Finding:
    (finding,) = sources.findings
    return finding


def test_the_environment_goes_before_flags_and_flags_before_the_file() -> None:
    assert gathered("model_store=a").text("model_store") == "a"
    assert gathered("model_store=a", store="b").text("model_store") == "b"
    assert gathered("model_store=a", store="b", SERVING_MODEL_STORE="c").text("model_store") == "c"
    assert gathered("load_models=NONE", ("x", "y=z")).text("load_models") == "x,y=z"
    assert gathered(SERVING_JOB_QUEUE_SIZE="9").number("job_queue_size") == 9
    assert gathered("job_queue_size=9", SERVING_JOB_QUEUE_SIZE="").number("job_queue_size") == 9


def test_what_nobody_sets_has_the_originals_default() -> None:
    found = gathered()
    assert (found.number("batch_size"), found.switch("wait_model_loading"), found.text("load_models")) == (
        1,
        True,
        "ALL",
    )
    assert not found.is_given("batch_size")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_default_is_a_value_that_is_taken(row: Setting) -> None:
    if row.default:
        assert row.fault(row.default) == ""


MISSPELT = [name for name in CONFIG.rows if len(name) > 5]


@pytest.mark.parametrize("key", MISSPELT)
def test_a_key_that_is_misspelt_is_named_with_its_line_and_the_nearest_one(key: str) -> None:
    wrong = key[:3] + key[4:]
    finding = only(gathered(f"# first\n{wrong}=1"))
    assert (finding.severity, finding.file, finding.line, finding.key) == (Severity.ERROR, FILE, 2, wrong)
    assert finding.hint.startswith(f"Did you mean {key}?")


def wrong(row: Setting) -> str:
    """A value that it cannot have."""
    special = {"load_models": "a:b:c:d:e=x", "model_url_pattern": "("}
    return special.get(row.name, "no one")


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind is not TEXT], ids=lambda row: row.name)
def test_a_value_that_cannot_be_is_named_with_what_is_expected(row: Setting) -> None:
    finding = only(gathered(f"\n{row.name}={wrong(row)}"))
    assert (finding.severity, finding.line, finding.key, finding.expected) == (
        Severity.ERROR,
        2,
        row.name,
        row.kind.expected,
    )


@pytest.mark.parametrize(
    "row", [row for row in ROWS if isinstance(row.kind, Whole)], ids=lambda row: row.name
)
def test_a_number_out_of_its_range_is_told_the_range(row: Setting) -> None:
    assert isinstance(row.kind, Whole)
    for number in (row.kind.least - 1, row.kind.most + 1, 2**70):
        finding = only(gathered(f"{row.name}={number}"))
        assert f"from {row.kind.least} to {row.kind.most}" in finding.expected


@pytest.mark.parametrize("row", [r for r in ROWS if r.support is Support.REFUSED], ids=lambda row: row.name)
def test_what_is_not_supported_is_refused_with_the_way_out(row: Setting) -> None:
    finding = only(gathered(f"{row.name}=x"))
    assert finding.severity is Severity.ERROR
    assert finding.hint


def test_what_has_no_effect_is_reported_unless_it_is_the_default() -> None:
    assert only(gathered("io_ratio=70")).severity is Severity.NOTICE
    assert not gathered("io_ratio=50").findings


def test_a_stray_comma_is_read_as_meant() -> None:
    found = gathered("batch_size=3,\nload_models=a,")
    assert (found.number("batch_size"), found.text("load_models")) == (3, "a,")
    assert (only(found).severity, only(found).line) == (Severity.NOTICE, 1)


def test_variables_of_others_and_unknown_ones() -> None:
    assert not gathered(SERVING_FEATURES="vllm", SERVING_MIN_WORKERS="1", PATH="/bin").findings
    assert "fetched later" in only(gathered(SERVING_S3_CACHE="true")).found
    finding = only(gathered(SERVING_BATCHSIZE="2"))
    assert (finding.severity, finding.hint) == (Severity.NOTICE, "Did you mean SERVING_BATCH_SIZE?")


def test_sagemakers_largest_request() -> None:
    assert (
        gathered("max_request_size=5", SAGEMAKER_MAX_PAYLOAD_IN_MB="6").number("max_request_size")
        == 6 * 2**20
    )
    assert (
        gathered(SAGEMAKER_MAX_REQUEST_SIZE="77", SAGEMAKER_MAX_PAYLOAD_IN_MB="6").number("max_request_size")
        == 77
    )


@pytest.mark.parametrize("text", ["http://h:65535", "http://h/x", "h:80"])
def test_what_is_no_address(text: str) -> None:
    assert CONFIG.rows["inference_address"].fault(text)
