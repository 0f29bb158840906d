"""Whether a model is ready: all of its instances that have a say in it are asked, and have five seconds."""

from types import SimpleNamespace

from trivium.core.models.readiness import CHECK_SECONDS, ReadyAnswers
from trivium.load.simulate import VirtualClock
from trivium.types.operations import Ready
from trivium.types.state import ServerState

BROKEN = "its database is gone"


class Desk:
    """One model with so many instances that are asked; `told` are their callbacks, `answers` what was answered."""

    def __init__(self, instances=0, lacking=""):
        self.clock, self.told, self.answers = VirtualClock(), [], []
        self.left = 0
        loaded = SimpleNamespace(spec=SimpleNamespace(name="m"), checks=lambda: [self.check] * instances)
        registry = SimpleNamespace(serving=lambda model, version: loaded, lacking=lambda loaded: lacking)
        self.desk = ReadyAnswers(registry, self.clock, lambda: ServerState.SERVING)

    def check(self, told):
        self.told.append(told)
        return self.leave

    def leave(self):
        self.left += 1

    def ask(self):
        self.desk.begin(Ready("m"), lambda part: self.answers.append((part.answer.ready, part.answer.reason)))
        return self.answers


def test_where_nobody_has_a_say_it_is_ready_at_once():
    assert Desk().ask() == [(True, "")]


def test_one_that_serves_no_more_is_not_asked():
    desk = Desk(2, "It was given up.")
    assert desk.ask() == [(False, "It was given up.")]
    assert desk.told == []


def test_all_have_to_say_yes():
    desk = Desk(3)
    desk.ask()
    for told in desk.told:
        assert desk.answers == []
        told("")
    assert desk.answers == [(True, "")]


def test_the_first_no_is_the_answer_whatever_comes_later():
    desk = Desk(3)
    desk.ask()
    first, second, third = desk.told
    first("")
    second(BROKEN)
    assert desk.left == 3, "nobody waits for the third"
    third("and so is mine")
    desk.clock.run(2 * CHECK_SECONDS)
    assert (desk.answers, desk.left) == ([(False, BROKEN)], 3)


def test_who_does_not_answer_in_time_is_not_ready():
    desk = Desk(2)
    desk.ask()
    desk.told[0]("")
    desk.clock.run(CHECK_SECONDS - 0.1)
    assert desk.answers == []
    desk.clock.run(CHECK_SECONDS + 0.1)
    ((ready, why),) = desk.answers
    assert not ready
    assert why.startswith("Model 'm' did not say within 5 s whether it is ready")
    assert desk.left == 2, "what never answers keeps nobody who has given it up"
    desk.told[1]("")
    assert len(desk.answers) == 1


def test_an_answer_in_time_leaves_no_timer():
    desk = Desk(1)
    desk.ask()
    desk.told[0]("")
    desk.clock.run(2 * CHECK_SECONDS)
    assert desk.answers == [(True, "")]
