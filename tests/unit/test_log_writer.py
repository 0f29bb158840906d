"""A log's writer: nobody waits for its reader, what is dropped is counted, a file is opened anew."""

import fcntl
import gzip
import os
import re
import resource
import select
import sys
import threading
from datetime import date, datetime
from typing import TextIO, cast

import pytest

from trivium.log_rotation import LogFileView, Rotation, is_due, pack, packed_name
from trivium.log_writer import LogStream, LogWriter, flush_logs, reopen_logs


def lost(lines, why):
    return f"lost {lines}: {why}\n".encode()


def test_a_reader_who_does_not_read_costs_lines_that_are_counted_and_no_time():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    writer = LogWriter(writing, lost, most_bytes=100_000)
    for _ in range(300):
        writer.write(b"x" * 999 + b"\n")
    assert not writer.flush(0)
    came, written, dropped = b"", 0, 0
    while written + dropped < 300:
        came += os.read(reading, 65536)
        written = came.count(b"x\n")
        dropped = sum(
            int(number) for number in re.findall(rb"lost (\d+): whoever reads it is too slow", came)
        )
    assert written <= 101
    assert written + dropped == 300
    writer.close()
    os.close(reading)
    os.close(writing)


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path):
    path, old = tmp_path / "log", tmp_path / "old"
    writer = LogWriter(str(path), lost)
    writer.write(b"1\n")
    assert writer.flush()
    path.rename(old)
    writer.write(b"2\n")
    reopen_logs()
    writer.write(b"3\n")
    writer.close()
    assert (old.read_bytes(), path.read_bytes()) == (b"1\n2\n", b"3\n")


def test_a_file_that_cannot_be_opened_anew_goes_on_as_it_was_and_says_so(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    writer = LogWriter(str(folder / "log"), lost)
    folder.rename(tmp_path / "elsewhere")
    writer.reopen()
    writer.write(b"1\n")
    writer.close()
    said, line = (tmp_path / "elsewhere" / "log").read_text().splitlines()
    assert said.startswith("lost 0: it cannot be opened anew")
    assert line == "1"


def test_a_full_disk_is_told_by_whoever_asked():
    told = []
    writer = LogWriter("/dev/full", lambda lines, why: told.append((lines, why)) or b"")
    writer.write(b"1\n2\n", 2)
    writer.close()
    assert told == [(2, "No space left on device")]


def test_a_pipe_that_nobody_reads_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        LogWriter(str(tmp_path / "pipe"), lost)


def test_a_slow_reader_of_a_descriptor_with_a_large_number():
    """A log that is opened anew gets what is free, which is large on a server with many connections."""
    reading, writing = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    large = fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 2000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(writing)
    fcntl.fcntl(large, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(large, False)
    writer = LogWriter(large, lost)
    for _ in range(100):
        writer.write(b"x" * 999 + b"\n")
    came, poll = 0, select.poll()
    poll.register(reading, select.POLLIN)
    while came < 100_000:
        assert poll.poll(60_000), "its thread has ended"
        came += len(os.read(reading, 65536))
    assert writer.flush(60)
    writer.close()
    os.close(reading)
    os.close(large)


def test_many_threads_write_whole_lines(tmp_path):
    path = tmp_path / "log"
    writer = LogWriter(str(path), lost)

    def write(letter):
        for _ in range(500):
            writer.write(letter * 100 + b"\n")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flush_logs(10)
    writer.close()
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1500
    assert {bytes(set(line)) for line in lines} == {b"a", b"b", b"c"}


def test_a_stream_stands_for_another(tmp_path):
    path = tmp_path / "log"
    writer = LogWriter(str(path), lost)
    stream = LogStream(writer, sys.__stderr__)
    print("grün", file=cast(TextIO, stream), flush=True)
    writer.close()
    assert path.read_text() == "grün\n"
    assert stream.isatty() == sys.__stderr__.isatty()


def packed(folder, name="log.??-???.gz"):
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob(name)))


def until_packed(folder, lines):
    wait = threading.Event()
    while packed(folder) != lines or len(list(folder.iterdir())) > 2:
        assert not wait.wait(0.005)


def test_a_file_is_begun_anew_before_it_is_too_large_and_the_old_ones_are_packed_together(tmp_path):
    path = tmp_path / "log"
    writer = LogWriter(str(path), lost, rotation=Rotation(most_bytes=6))
    for number in range(5):
        writer.write(b"%d\n" % number * 2)
    assert writer.flush()
    until_packed(tmp_path, b"0\n0\n1\n1\n2\n2\n3\n3\n")
    assert path.read_bytes() == b"4\n4\n"
    writer.close()


def test_a_file_of_another_day_is_begun_anew_under_that_days_name(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"old\n")
    day = datetime(2025, 3, 7, 12).timestamp()
    os.utime(path, (day, day))
    writer = LogWriter(str(path), lost, rotation=Rotation(2**20))
    writer.write(b"new\n")
    writer.write(b"newer\n")
    assert writer.flush()
    until_packed(tmp_path, b"old\n")
    assert (tmp_path / "log.07-Mar.gz").exists()
    assert path.read_bytes() == b"new\nnewer\n"
    writer.close()


def test_what_is_no_file_of_its_own_or_cannot_be_renamed_goes_on(tmp_path, monkeypatch):
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    for target in ("/dev/full", str(link)):
        writer = LogWriter(target, lost, rotation=Rotation(1))
        writer.write(b"1\n")
        writer.write(b"2\n")
        writer.close()
    assert real.read_bytes() == b"1\n2\n"
    path = tmp_path / "log"
    path.write_bytes(b"0\n")
    writer = LogWriter(str(path), lost, rotation=Rotation(1))
    path.rename(tmp_path / "away")
    writer.write(b"1\n")
    writer.write(b"2\n")
    writer.close()
    text = (tmp_path / "away").read_bytes()
    assert text.startswith(b"0\nlost 0: it cannot be begun anew, and goes on as it was:")
    assert text.endswith(b"\n1\n2\n")
    assert text.count(b"begun anew") == 1


def test_a_file_that_cannot_be_opened_anew_keeps_its_name_and_its_lines(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"0\n")
    writer = LogWriter(str(path), lost, rotation=Rotation(1))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))  # nothing more can be opened
        writer.write(b"1\n")
        assert writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    writer.write(b"2\n")
    writer.close()
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
    assert re.fullmatch(rb"0\nlost 0: it cannot be opened anew, .*\n1\n2\n", path.read_bytes())


@pytest.mark.parametrize(
    ("size", "day", "more", "due"),
    [(0, 1, 100, False), (5, 2, 5, False), (5, 2, 6, True), (1, 1, 1, True), (20, 2, 0, True)],
)
def test_when_a_file_is_begun_anew(size, day, more, due):
    assert is_due(LogFileView(size, date(2026, 1, day)), Rotation(10), more, date(2026, 1, 2)) is due


def test_what_was_packed_a_year_ago_goes_and_what_cannot_be_packed_stays(tmp_path, caplog):
    aside, target = tmp_path / "aside", packed_name(tmp_path / "log", date(2026, 1, 2))
    assert target.name == "log.02-Jan.gz"
    target.write_bytes(gzip.compress(b"of last year"))
    os.utime(target, (0, datetime(2025, 1, 2).timestamp()))
    aside.write_bytes(b"new")
    pack(aside, target, date(2026, 1, 2))
    assert packed(tmp_path) == b"new"
    aside.mkdir()
    pack(aside, target, date.today())
    assert aside.exists()
    assert packed(tmp_path) == b"new"
    assert "cannot be packed, and stays as it is" in caplog.text
