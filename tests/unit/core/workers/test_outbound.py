"""What leaves for a worker: one write for a turn of the loop, and nothing for who is not there."""

from trivium.core.workers.connection import FrameWriter


class Wire:
    def __init__(self):
        self.written = []
        self.is_aborted = False

    def set_write_buffer_limits(self, high):
        self.high = high

    def write(self, data):
        assert not self.is_aborted, "written behind the end"
        self.written.append(data)

    def abort(self):
        self.is_aborted = True


def scene():
    last = []
    outbound, wire = FrameWriter(last.append), Wire()
    outbound.connected(wire)
    return outbound, wire, last


def turn(last):
    for callback in last[:]:
        last.remove(callback)
        callback()


def test_the_frames_of_one_turn_leave_in_one_write():
    outbound, wire, last = scene()
    outbound.write([b"a", memoryview(b"b")])
    outbound.write([b"c"])
    assert (wire.written, len(last)) == ([], 1)
    turn(last)
    outbound.write([b"d"])
    turn(last)
    assert wire.written == [b"abc", b"d"]


def test_what_is_written_before_there_is_a_connection_is_lost_with_its_turn():
    last = []
    outbound, wire = FrameWriter(last.append), Wire()
    outbound.write([b"a"])
    turn(last)
    outbound.connected(wire)
    outbound.write([b"b"])
    turn(last)
    assert wire.written == [b"b"]


def test_nothing_is_written_to_who_has_left_or_was_cut_off():
    for end in (FrameWriter.lost, FrameWriter.abort):
        outbound, wire, last = scene()
        outbound.write([b"a"])
        end(outbound)
        assert not outbound.is_connected
        turn(last)
        outbound.write([b"b"])
        turn(last)
        outbound.abort()
        assert (wire.written, wire.is_aborted) == ([], end is FrameWriter.abort)
