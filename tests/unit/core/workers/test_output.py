"""What a worker prints: logged by the line, a flood counted, long lines cut, the last ones kept."""

import asyncio
import logging
import os

import pytest

from trivium.core.workers.child_process import KEPT_LINES, LINES_PER_SECOND, LONGEST, Output

LOG = logging.getLogger("trivium.worker.m")


class Pipe:
    """An output whose other end the test writes. Time stands still but for `second`."""

    def __init__(self, monkeypatch):
        reading, self.writing = os.pipe()
        os.set_blocking(reading, False)
        loop = asyncio.get_running_loop()
        self.now = 100.0
        monkeypatch.setattr(loop, "time", lambda: self.now)
        self.output = Output(reading, "m_0 stderr", logging.WARNING, LOG)
        self.reading = reading

    def say(self, data):
        """Written and taken in."""
        while data:
            os.write(self.writing, data[: 2**15])
            data = data[2**15 :]
            self.output.read(64)

    def hang_up(self):
        os.close(self.writing)
        self.writing = -1

    def close(self):
        self.output.close()
        if self.writing >= 0:
            self.hang_up()


@pytest.fixture
def scene(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, LOG.name)

    def run(play):
        async def main():
            pipe = Pipe(monkeypatch)
            try:
                play(pipe)
            finally:
                pipe.close()

        asyncio.run(main())
        return [record.getMessage() for record in caplog.records if record.name == LOG.name]

    return run


def test_lines_are_logged_whole_and_under_their_name(scene, caplog):
    def play(pipe):
        for piece in (b"one\ntw", b"o\n\nth", b"ree"):
            pipe.say(piece)
        assert list(pipe.output.last) == ["one", "two", ""]

    assert scene(play) == [f"m_0 stderr: {line}" for line in ("one", "two", "", "three")]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_progress_bar_is_its_last_state(scene):
    def play(pipe):
        for share in range(101):
            pipe.say(b"\rloading: %3d%%|#  | %d/100" % (share, share))
        assert pipe.output.pending_bytes < 100
        pipe.say(b"\nready\n1%\r2%\r")
        pipe.say(b"3%\r\n")
        pipe.say(b"words\rother words\n")

    bar = "m_0 stderr: loading: 100%|#  | 100/100"
    said = [bar, "m_0 stderr: ready", "m_0 stderr: 3%", "m_0 stderr: words\rother words"]
    assert scene(play) == said


def test_a_flood_is_counted(scene):
    def play(pipe):
        pipe.say(b"".join(b"%d\n" % number for number in range(1000)))
        assert list(pipe.output.last) == [str(number) for number in range(950, 1000)]
        pipe.now += 1
        pipe.say(b"later\n")

    said = scene(play)
    assert len(said) == LINES_PER_SECOND + 2
    assert said[-3:] == ["m_0 stderr: 99", "m_0 stderr: 900 lines more were not logged", "m_0 stderr: later"]


@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_flood_to_the_end_is_counted_then(scene, hangs_up):
    def play(pipe):
        pipe.say(b"x\n" * 150)
        if hangs_up:
            pipe.hang_up()
            pipe.output.read(1)

    said = scene(play)
    assert said[-1] == "m_0 stderr: 50 lines more were not logged"


def test_long_lines_are_cut_and_cost_no_memory(scene):
    def play(pipe):
        pipe.say(b"x" * 1_000_000)
        assert pipe.output.pending_bytes <= LONGEST + 2**16
        pipe.say(b"\nshort\n")
        assert all(len(line) <= LONGEST for line in pipe.output.last)
        assert pipe.output.last[-1] == "short"

    assert max(map(len, scene(play))) <= LONGEST + 20


def test_the_last_lines_are_kept(scene):
    def play(pipe):
        pipe.say(b"".join(b"line %d\n" % number for number in range(60)))
        assert list(pipe.output.last) == [f"line {number}" for number in range(10, 60)]
        assert len(pipe.output.last) == KEPT_LINES

    scene(play)


def test_bytes_that_are_no_text_are_shown(scene):
    assert scene(lambda pipe: pipe.say(b"\xff\xfe\n")) == ["m_0 stderr: \\xff\\xfe"]


@pytest.mark.parametrize("is_read", [False, True])
def test_it_ends_with_its_other_end_or_when_it_is_closed(scene, is_read):
    def play(pipe):
        os.write(pipe.writing, b"last words")
        pipe.hang_up()
        if is_read:
            pipe.output.read(1)
            pipe.output.read(1)  # the end
        pipe.output.close()
        assert list(pipe.output.last) == ["last words"]
        pipe.output.close()
        with pytest.raises(OSError):
            os.fstat(pipe.reading)

    assert scene(play) == ["m_0 stderr: last words"]


def test_a_descriptor_that_fails_is_given_up(scene, monkeypatch):
    def fail(descriptor, size):
        raise OSError("the wire is cut")

    def play(pipe):
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", fail)
            pipe.output.read(1)
        pipe.output.close()

    assert scene(play) == []
