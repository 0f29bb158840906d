"""One signal per drained set, nothing missed, order kept."""

from trivium.core.instances.mailbox import Mailbox
from trivium.types.running import Credit, Dead


class Loop:
    """Takes signals, and drains when it is told to."""

    def __init__(self):
        self.signals, self.got = [], []
        self.mailbox = Mailbox(self.signals.append)

    def port(self, name):
        return self.mailbox.port(lambda events: self.got.append((name, *events)))

    def turn(self):
        signals, self.signals[:] = self.signals[:], []
        for signal in signals:
            signal()
        return len(signals)


def test_one_signal_for_all_that_came_before_the_drain():
    loop = Loop()
    a, b = loop.port("a"), loop.port("b")
    a.push((Credit(1), Credit(2)))
    b.push((Credit(3),))
    a.push((Dead("gone"),))
    assert loop.got == []
    assert loop.turn() == 1
    assert loop.got == [("a", Credit(1), Credit(2)), ("b", Credit(3)), ("a", Dead("gone"))]
    assert loop.turn() == 0


def test_after_a_drain_the_next_push_signals_again():
    loop = Loop()
    port = loop.port("a")
    for number in range(3):
        port.push((Credit(number),))
        assert loop.turn() == 1
    assert len(loop.got) == 3


def test_what_comes_during_a_drain_is_delivered_and_not_twice():
    loop = Loop()
    second = loop.port("second")
    first = loop.mailbox.port(lambda events: second.push(events))
    first.push((Credit(1),))
    loop.turn()
    assert loop.got == [("second", Credit(1))]
    loop.turn()
    assert len(loop.got) == 1
