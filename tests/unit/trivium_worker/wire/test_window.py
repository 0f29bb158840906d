"""How much of an answer may be on its way: parts, bytes, and those who wait for room."""

import threading

import pytest

from trivium_worker.wire.frames import WINDOW
from trivium_worker.wire.window import BYTES, Window


class Sender:
    """Sends parts in a thread of its own, as far as it gets; `waits` is set when it has to wait."""

    def __init__(self, window, sizes):
        self.window, self.sent, self.waits = window, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, args=(sizes,), daemon=True)
        self.thread.start()

    def run(self, sizes):
        for size in sizes:
            if not self.window.enter(self.waits.set):
                return
            self.window.wrote(size)
            self.sent += 1

    def gets(self):
        """Parts sent when it waits."""
        assert self.waits.wait(10)
        return self.sent

    def ends(self):
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.sent


@pytest.mark.parametrize(
    ("size", "most"), [(1, WINDOW), (BYTES // 4, 4), (BYTES // 4 + 1, 4), (BYTES, 1), (9 * BYTES, 1)]
)
def test_so_many_parts_and_so_many_bytes(size, most):
    window = Window()
    sender = Sender(window, [size] * (most + 1))
    assert sender.gets() == most
    window.taken(1)
    assert sender.ends() == most + 1


def test_closed_those_who_wait_are_told():
    window = Window()
    sender = Sender(window, [1] * (WINDOW + 5))
    assert sender.gets() == WINDOW
    window.close()
    assert sender.ends() == WINDOW
    assert not window.enter(lambda: None)


def test_a_part_that_is_not_written_leaves_its_place():
    window = Window()
    for _ in range(WINDOW):
        assert window.enter(lambda: pytest.fail("there is room"))
    window.leave()
    assert window.enter(lambda: pytest.fail("there is room"))


def test_more_receipts_than_parts_do_no_harm():
    window = Window()
    window.taken(5)
    sender = Sender(window, [1] * (WINDOW + 1))
    assert sender.gets() == WINDOW
    window.close()
    sender.ends()


def test_without_waiting_one_is_let_in_or_hears_when_there_may_be_room():
    window, heard = Window(), []
    for _ in range(WINDOW):
        assert window.enter_now(lambda: heard.append("too early")) is True
        window.wrote(1)
    assert window.enter_now(lambda: heard.append("room")) is None
    assert heard == []
    window.taken(1)
    window.taken(1)
    assert heard == ["room"]
    assert window.enter_now(lambda: heard.append("later")) is True


@pytest.mark.parametrize("how", ["close", "leave"])
def test_without_waiting_one_hears_of_every_change(how):
    window, heard = Window(), []
    for _ in range(WINDOW):
        window.enter_now(heard.clear)
    assert window.enter_now(lambda: heard.append(how)) is None
    getattr(window, how)()
    assert heard == [how]
    assert window.enter_now(heard.clear) is (how == "leave")
