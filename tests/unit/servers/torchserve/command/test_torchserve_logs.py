"""Log lines of a TorchServe: their forms, what clients cannot write into them, and full disks."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivium.frontends.access_log import AccessLine, DetailedLine
from trivium.log_writer import flush_logs
from trivium.servers.torchserve.command.logs import (
    THREAD_NAME,
    DiskFault,
    FileHandler,
    LineLog,
    LineMask,
    TorchServeFormatter,
    access_text,
    begin_logs,
    moment,
    worker_name,
)
from trivium.types.recording import WORKER_LINE, InstanceName, WorkerLine

WORKER = InstanceName("m", "1.0", 3)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which gets back the handlers and the level that it had."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


def record(text: str, level: int = logging.INFO, name: str = "a.b", **extra: object) -> logging.LogRecord:
    made = logging.LogRecord(name, level, __file__, 1, text, None, None)
    made.__dict__.update(extra)
    return made


def test_records_have_the_originals_form() -> None:
    shown = TorchServeFormatter(LineMask()).format
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(rf"{time} \[WARN \] main a\.b - text", shown(record("text", logging.WARNING)))
    line = record("m_0 stdout: said", name="trivium.worker.m")
    line.__dict__[WORKER_LINE] = WorkerLine(WORKER, "stdout", "said\x1b %s")
    assert re.fullmatch(rf"{time} \[INFO \] W-9003-m_1\.0-stdout MODEL_LOG - said\\x1b %s", shown(line))
    assert line.getMessage() == "m_0 stdout: said"  # other handlers see it as it was
    told = record("text", **{THREAD_NAME: worker_name(WORKER)})
    assert re.fullmatch(rf"{time} \[INFO \] W-9003-m_1\.0 a\.b - text", shown(told))
    assert "main" in shown(record("a\n2026-01-01T00:00:00,000 [INFO ] b"))
    assert not re.search("^2026-01-01", shown(record("a\n2026-01-01T00:00:00,000 [INFO ] b")), re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            DetailedLine(0, "1.2.3.4:5", "POST", "/predictions/m", 200, 7, 0.0155, "a=b", "HTTP/1.0"),
            '/1.2.3.4:5 "POST /predictions/m?a=b HTTP/1.0" 200 16',
        ),
        (
            DetailedLine(0, "unix:", "GET", "/ping", 500, 7, 0.0),
            '127.0.0.1 "GET /ping HTTP/1.1" 500 0',
        ),
        (
            AccessLine(0, "ipv4:1.2.3.4:5", "gRPC", "/p.Service/Method", 13, 7, 1.5),
            '/1.2.3.4:5 "gRPC p.Service/Method HTTP/2.0" 13 1500',
        ),
        (AccessLine(0, "ipv6:[::1]:5", "gRPC", "/p.S/M", 0, 0, 0), '/[::1]:5 "gRPC p.S/M HTTP/2.0" 0 0'),
        (AccessLine(0, "1.2.3.4:5", "GET", "/x", 400, 0, 0), '/1.2.3.4:5 "GET /x HTTP/1.1" 400 0'),
        (
            DetailedLine(0, "1.2.3.4:5", "GET", '/a" 200 1\n', 404, 0, 0, "\x1b\r"),
            '/1.2.3.4:5 "GET /a%22 200 1\\n?\\x1b\\x0d HTTP/1.1" 404 0',
        ),
    ],
)
def test_the_access_log_has_the_originals_lines(line: AccessLine, text: str) -> None:
    assert access_text(line) == text


def test_moments_have_milliseconds() -> None:
    first, second = moment(1_700_000_000.0625), moment(1_700_000_001.999)
    assert first.endswith(",062")
    assert second.endswith(",999")
    assert int(second[17:19]) == int(first[17:19]) + 1


def test_a_full_disk_is_said_once_until_it_could_be_written() -> None:
    said: list[str] = []
    fault = DiskFault("x.log", said.append)
    for lines in (3, 4, 9, 9):
        fault(lines, "No space left on device")
    text = "lines of x.log are lost: No space left on device. Requests are served all the same; this is said once."
    assert said == [text]
    fault(1, "No space left on device")
    assert said == [text, text]
    fault(0, "it cannot be begun anew")
    assert len(said) == 3


def test_lines_that_cannot_be_written_cost_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []
    full = tmp_path / "full.log"
    full.symlink_to("/dev/full")
    log, handler = LineLog(full, said.append, LineMask()), FileHandler(full, said.append, LineMask())
    for number in range(5):
        log.add(str(number))
        log.flush()
        handler.handle(record("text"))
        flush_logs(60)
    assert [text[:28] for text in said] == ["lines of full.log are lost: "] * 2
    log.close()


def test_lines_are_written_many_at_a_time_and_what_is_left_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    log = LineLog(path, print, LineMask())
    for number in range(300):
        log.add(str(number), 1_700_000_000.0)
    flush_logs(60)
    assert len(path.read_text().splitlines()) == 256
    log.close()
    lines = path.read_text().splitlines()
    assert lines[299] == f"{moment(1_700_000_000.0)} - 299"
    nothing = LineLog(None, print, LineMask())
    nothing.add("x")
    nothing.close()


def test_files_lie_in_both_folders_or_the_reason_is_told(tmp_path: Path, root: logging.Logger) -> None:
    root.handlers.clear()
    logs = begin_logs(tmp_path / "a" / "b", tmp_path / "c", "info")
    assert logs.fault == ""
    logging.getLogger("trivium.worker.m").warning("a worker's")
    logging.getLogger("other").warning("the server's")
    logs.access.add("asked")
    logs.flush()
    flush_logs(60)
    found = {
        path.name: "".join(line[23:] for line in path.read_text().splitlines())
        for path in tmp_path.rglob("*.log")
    }
    assert found == {
        "ts_log.log": " [WARN ] main trivium.worker.m - a worker's [WARN ] main other - the server's"
        " [INFO ] main ACCESS_LOG - asked",
        "model_log.log": " [WARN ] main trivium.worker.m - a worker's",
        "access_log.log": " - asked",
        "ts_metrics.log": "",
        "model_metrics.log": "",
    }
    (tmp_path / "file").touch()
    for folders, variables in (
        ((tmp_path / "file", tmp_path / "d"), ["LOG_LOCATION"]),
        ((tmp_path / "e", tmp_path / "file" / "x"), ["METRICS_LOCATION"]),
    ):
        root.handlers.clear()
        logs = begin_logs(*folders, "info")
        assert re.findall(r"by the variable (\w+)\.", logs.fault) == variables
        logs.access.add("x")
        logs.server_metrics.add("x")
        logs.flush()
    root.handlers.clear()
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "model_log.log").mkdir()
    (tmp_path / "f" / "ts_metrics.log").mkdir()
    assert os.strerror(21) in begin_logs(tmp_path / "f", tmp_path / "f", "info").fault


def test_no_line_of_any_log_shows_what_is_hidden(tmp_path: Path, root: logging.Logger) -> None:
    root.handlers.clear()
    logs = begin_logs(tmp_path, tmp_path, "info")
    logs.mask.hide = lambda text: text.replace("secret", "-")
    for log in (logs.access, logs.server_metrics, logs.model_metrics):
        log.add("with secret")
    logging.getLogger("trivium.worker.m").info("%s", "a worker's secret")
    try:
        raise ValueError("secret")
    except ValueError:
        logging.getLogger("other").exception("the server's secret")
    logs.flush()
    flush_logs(60)
    texts = [path.read_text() for path in tmp_path.iterdir()]
    assert [len(texts), all(" - with -" in text or "a worker's -" in text for text in texts)] == [5, True]
    assert not [text for text in texts if "secret" in text]
