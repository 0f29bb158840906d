"""What `tritonserver` prints: log lines and tables, as observed on the original."""

import logging
import sys

import pytest

from trivium.catalogue import CATALOGUE
from trivium.servers.triton.command.log_lines import TABLE, LineFormatter
from trivium.servers.triton.command.report import narrate, tables, used_options, warnings
from trivium.servers.triton.command.settings import CommandSettings, settle
from trivium.servers.triton.command.tables import agents_table, backends_table, models_table, table
from trivium.types.errors import ServeError
from trivium.types.operations import VersionStatus
from trivium.types.state import VersionState

WHEN = 1795282366.097802  # 2026-11-21 17:32:46 UTC


def texts(settings: CommandSettings) -> list[str]:
    return [line.text for line in warnings(settings)]


def record(level: int, message: str, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"levelno": level, "msg": message, "filename": "server.py", "lineno": 604, **extra}
    )
    made.created = WHEN
    return made


@pytest.mark.parametrize(
    ("level", "letter"),
    [
        (logging.DEBUG, "I"),
        (logging.INFO, "I"),
        (logging.WARNING, "W"),
        (logging.ERROR, "E"),
        (logging.CRITICAL, "E"),
    ],
)
def test_a_line(level: int, letter: str) -> None:
    line = LineFormatter(is_iso=lambda: False, process=23290).format(record(level, "loading: bad:1"))
    assert line == f'{letter}1121 17:32:46.097802 23290 server.py:604] "loading: bad:1"'


def test_a_line_with_an_iso_time() -> None:
    line = LineFormatter(is_iso=lambda: True, process=7).format(record(logging.WARNING, "x"))
    assert line == '2026-11-21T17:32:46Z W 7 server.py:604] "x"'


def test_a_message_stays_on_its_line() -> None:
    line = LineFormatter(lambda: False, 1).format(record(logging.ERROR, 'a "b"\nc \u00e9'))
    assert line.endswith('] "a \\"b\\"\\nc \u00e9"')


def test_what_was_raised_stays_there_too() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        raised = sys.exc_info()
    line = LineFormatter(lambda: False, 1).format(record(logging.ERROR, "failed", exc_info=raised))
    assert "\n" not in line
    assert "ValueError: why" in line


def test_a_table_stands_below_its_line() -> None:
    line = LineFormatter(lambda: False, 1).format(record(logging.INFO, "+-+\n+-+", **TABLE))
    assert line == "I1121 17:32:46.097802 1 server.py:604] \n+-+\n+-+\n"


def test_an_empty_table() -> None:
    assert agents_table() == (
        "+------------------+------+\n"
        "| Repository Agent | Path |\n"
        "+------------------+------+\n"
        "+------------------+------+\n"
    )


def test_cells_of_several_lines() -> None:
    rows = [
        VersionStatus("bad", "1", VersionState.FAILED, "ValueError: no weights\n\nAt:\n  model.py(10)\n"),
        VersionStatus("good", "1", VersionState.READY),
        VersionStatus("idle", "", VersionState.REGISTERED),
        VersionStatus("worse", "2", VersionState.FAILED, "Not found: no file"),
    ]
    assert models_table(rows).splitlines() == [
        "+-------+---------+-----------------------------------------------+",
        "| Model | Version | Status                                        |",
        "+-------+---------+-----------------------------------------------+",
        "| bad   | 1       | UNAVAILABLE: Internal: ValueError: no weights |",
        "|       |         |                                               |",
        "|       |         | At:                                           |",
        "|       |         |   model.py(10)                                |",
        "| good  | 1       | READY                                         |",
        "| worse | 2       | UNAVAILABLE: Not found: no file               |",
        "+-------+---------+-----------------------------------------------+",
    ]


def test_settings_of_backends_are_json() -> None:
    text = backends_table({"python": "/p"}, {"auto-complete-config": "true"})
    assert '| python  | /p   | {"cmdline":{"auto-complete-config":"true"}} |' in text


def test_every_row_is_as_wide() -> None:
    drawn = table(("a", "bb"), [("x\nyyyyy", "z"), ("", "w\n")])
    assert len({len(line) for line in drawn.splitlines()}) == 1


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (VersionStatus("m", "1", VersionState.LOADING), [(logging.INFO, "loading: m:1")]),
        (VersionStatus("m", "", VersionState.LOADING), []),
        (VersionStatus("m", "1", VersionState.READY), [(logging.INFO, "successfully loaded 'm'")]),
        (
            VersionStatus("m", "1", VersionState.FAILED, "why"),
            [
                (logging.ERROR, "failed to load 'm' version 1: Internal: why"),
                (logging.INFO, "failed to load 'm'"),
            ],
        ),
        (
            VersionStatus("m", "", VersionState.FAILED, "why"),
            [(logging.ERROR, "Poll failed for model directory 'm': why")],
        ),
        (
            VersionStatus("m", "1", VersionState.UNLOADED, "unloaded"),
            [(logging.INFO, "successfully unloaded 'm' version 1")],
        ),
        (VersionStatus("m", "1", VersionState.UNLOADING), []),
    ],
)
def test_the_life_of_a_model(status: VersionStatus, lines: list[tuple[int, str]]) -> None:
    assert [(line.level, line.text) for line in narrate(status)] == lines


def options_of(**flags: object) -> dict[str, str]:
    settings = settle(CATALOGUE, {"--" + name.replace("_", "-"): value for name, value in flags.items()})
    rows = [line.strip("| ").split("|") for line in used_options(settings).splitlines()[3:-1]]
    return {
        name.strip(): value.strip()
        for name, value in (row if len(row) == 2 else (row[0], "") for row in rows)
    }


def test_the_options() -> None:
    options = options_of()
    assert list(options) == [
        "server_id",
        "server_version",
        "server_extensions",
        "model_control_mode",
        "strict_model_config",
        "model_config_name",
        "rate_limit",
        "pinned_memory_pool_byte_size",
        "min_supported_compute_capability",
        "strict_readiness",
        "exit_timeout",
        "cache_enabled",
    ]
    assert options["server_version"] == "2.51.0"
    assert options["rate_limit"] == "OFF"
    assert options["min_supported_compute_capability"] == "6.0"
    assert options["strict_readiness"] == "1"


def test_the_options_that_were_given() -> None:
    options = options_of(
        id="me",
        model_repository=("a", "b"),
        model_control_mode="explicit",
        load_model=("x", "y"),
        strict_model_config=True,
        model_config_name="h",
        cuda_memory_pool_byte_size=("0:64",),
        exit_timeout_secs=3,
        strict_readiness=False,
    )
    assert options["server_id"] == "me"
    assert (options["model_repository_path[0]"], options["model_repository_path[1]"]) == ("a", "b")
    assert options["model_control_mode"] == "MODE_EXPLICIT"
    assert (options["startup_models_0"], options["startup_models_1"]) == ("x", "y")
    assert options["cuda_memory_pool_byte_size{0}"] == "64"
    assert (options["strict_model_config"], options["strict_readiness"]) == ("1", "0")
    assert (options["model_config_name"], options["exit_timeout"]) == ("h", "3")


def test_what_is_wider_is_told_in_one_line() -> None:
    (wide,) = texts(settle(CATALOGUE, {}))
    assert "listens without keys to whoever reaches this machine" in wide
    assert "load and unload" not in wide
    near = {"--http-address": "127.0.0.1", "--grpc-address": "127.0.0.1", "--model-control-mode": "explicit"}
    wide, unused = texts(settle(CATALOGUE, {**near, "--allow-client-shm": False, "--http-thread-count": 1}))
    assert "listens" not in wide
    assert "shared memory" not in wide
    assert "load and unload" in wide
    assert "--http-thread-count" in unused


def test_the_four_tables_come_in_their_order() -> None:
    class Empty:
        versions = ()

    drawn = tables((), Empty(), settle(CATALOGUE, {}))  # type: ignore[arg-type]
    assert [text.splitlines()[1].split()[1] for text in drawn] == ["Repository", "Backend", "Model", "Option"]


def test_what_the_environment_is_noticed_for_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_HTTP_PORT", "tcp://10.0.0.1:80")
    settings = settle(CATALOGUE, {})
    assert settings.config.http.port == 8000
    _, skipped = texts(settings)
    assert "TRIVIUM_HTTP_PORT" in skipped
    monkeypatch.setenv("TRIVIUM_QUEUE_ITEMS", "few")
    with pytest.raises(ServeError, match="environment, TRIVIUM_QUEUE_ITEMS: 'few'; expected a whole number"):
        settle(CATALOGUE, {})
