"""A log's writer: nobody waits for its reader, what is dropped is counted, a file is opened anew."""

import fcntl
import os
import re
import resource
import select
import sys
import threading
from typing import TextIO, cast

import pytest

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
