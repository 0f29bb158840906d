"""A runner around a runner: whose rows run together, what passes by, and whose fault a fault is."""

import numpy as np
import pytest

from trivium.translators.faults import failed, unfit
from trivium.translators.runner import TranslatedRunner
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import Batch, Ran, Translated


class Doubles:
    """A model that doubles, and remembers the shapes of each of its batches."""

    def __init__(self):
        self.batches, self.is_closed, self.is_interrupted, self.fault = [], False, False, None

    def run(self, batch):
        self.batches.append([one.payload["x"].shape for one in batch.operations])
        if self.fault is not None:
            raise self.fault
        return Ran([Tensors.of({"y": 2 * one.payload["x"]}) for one in batch.operations])

    def interrupt(self):
        self.is_interrupted = True

    def close(self):
        self.is_closed = True


class Numbers:
    """A translator of lines of numbers: each line is a row. A line `bad` is the client's fault."""

    def __init__(self):
        self.is_closed = False

    def before(self, requests):
        return [self._one(bytes(one.payload.parts[0].data)) for one in requests]

    def _one(self, data):
        if b"bad" in data:
            return unfit("a bad line")
        rows = [np.array(line.split(), "<f4") for line in data.splitlines()]
        return Translated([Tensors.of({"x": row}) for row in rows], len(rows))

    def after(self, translated, outputs):
        assert translated.state == len(outputs)
        lines = [" ".join(f"{value:g}" for value in one["y"]) for one in outputs]
        if "26" in lines:
            raise failed("unlucky")
        return Raw((RawPart("\n".join(lines).encode()),))

    def close(self):
        self.is_closed = True


def text(*lines):
    return Raw((RawPart("\n".join(lines).encode()),))


def asked(*payloads):
    return Batch(list(range(len(payloads))), [Infer("m", one) for one in payloads], [1] * len(payloads))


def answers(ran):
    return [one.parts[0].data.decode() if isinstance(one, Raw) else one for one in ran.outcomes]


@pytest.fixture
def model():
    return Doubles()


@pytest.fixture
def runner(model):
    return TranslatedRunner(model, Numbers(), 4)


def test_requests_run_together_and_answers_find_their_way_back(runner, model):
    assert answers(runner.run(asked(text("1", "2"), text("3")))) == ["2\n4", "6"]
    assert model.batches == [[(1,), (1,), (1,)]]


def test_rows_of_other_shapes_are_batches_of_their_own(runner, model):
    assert answers(runner.run(asked(text("1"), text("1 2"), text("3")))) == ["2", "2 4", "6"]
    assert model.batches == [[(1,), (1,)], [(2,)]]


def test_tensors_pass_by(runner, model):
    plain, raw = Tensors.of({"x": np.array([5], "<f4")}), text("1")
    ran = runner.run(asked(plain, raw, plain))
    assert [one["y"].tolist() for one in ran.outcomes[::2]] == [[10], [10]]
    assert answers(ran)[1] == "2"
    assert model.batches == [[(1,), (1,)], [(1,)]]


def test_a_request_with_many_rows_runs_in_several_batches(runner, model):
    count = 9
    (answer,) = answers(runner.run(asked(text(*("1" for _ in range(count))))))
    assert answer.splitlines() == ["2"] * count
    assert [len(batch) for batch in model.batches] == [4, 4, 1]


def test_a_fault_is_that_of_its_request_alone(runner, model):
    bad, good, unlucky = answers(runner.run(asked(text("bad"), text("1"), text("13"))))
    assert (bad.code, bad.message, bad.reason) == (Code.INVALID, "a bad line", "translation")
    assert good == "2"
    assert (unlucky.code, unlucky.reason) == (Code.MODEL_FAILED, "translation")
    assert model.batches == [[(1,), (1,)]]


def test_nothing_runs_for_requests_that_are_all_at_fault(runner, model):
    assert [one.code for one in runner.run(asked(text("bad"))).outcomes] == [Code.INVALID]
    assert model.batches == []


def test_a_model_that_fails_fails_those_that_it_ran_alone(runner, model):
    model.fault = ServeError(Code.MODEL_FAILED, "no")
    outcomes = runner.run(asked(text("1"), text("bad"))).outcomes
    assert [one.code for one in outcomes] == [Code.MODEL_FAILED, Code.INVALID]


def test_rows_that_a_model_cannot_take_are_the_requests_fault(runner, model):
    model.fault = ServeError(Code.INVALID, "another shape")
    (refused,) = runner.run(asked(text("1"))).outcomes
    assert (refused.code, refused.message, refused.reason) == (Code.INVALID, "another shape", "translation")


def test_a_translator_that_returns_too_few_fails_the_batch(model):
    class Few(Numbers):
        def before(self, requests):
            return []

    with pytest.raises(ServeError, match="0 results for 1 requests"):
        TranslatedRunner(model, Few(), 1).run(asked(text("1")))


def test_closing_frees_both_and_interrupting_reaches_the_model(model):
    translator = Numbers()
    runner = TranslatedRunner(model, translator, 1)
    runner.interrupt()
    runner.close()
    assert (model.is_interrupted, model.is_closed, translator.is_closed) == (True, True, True)
