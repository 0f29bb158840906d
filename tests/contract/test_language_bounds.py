"""Texts without end and code that ends threads: each ends its own request, and the others are answered meanwhile."""

import json
import sys
import time

import psutil
import pytest
from tests.harness.language_models import Steps, text, tokenizer, write

from trivium.engines.hf import call_guard, texts
from trivium.engines.hf.text_roads_policy import LONG
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

pytest.importorskip("transformers")

SLOTS = 4
CHAT = ({"role": "user", "content": "hi"},)
GOOD = {"prompts": ("good",), "sampling": Sampling(max_tokens=4)}
LOOP = "{% for i in range(99999) %}"
TEMPLATES = {
    "loops": LOOP * 4 + "{% endfor %}" * 4,
    "a macro that calls itself": "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "a macro of two branches": "{% macro f(n) %}{% if n %}{{ f(n - 1) ~ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "a long text": "{{ 'a' * 10 ** 10 }}",
    "a text that doubles": "{% set x = namespace(t='a' * 1000) %}"
    + LOOP
    + "{% set x.t = x.t + x.t %}{% endfor %}{{ x.t }}",
    "a wide centre": "{{ 'a'.center(10 ** 10) }}",
    "a wide format": "{{ '%1000000000d' % 3 }}{{ '{:>9000000000}'.format(3) }}",
    "a large number": "{{ 9 ** (9 ** 9) }}",
    "a joined list": "{{ (['a' * 1000000] * 1000000) | join }}",
    "a range": "{% for i in range(10 ** 12) %}{% endfor %}",
    "a fault": "{{ 1 / 0 }}",
}
PROCESSORS = """
import os
import sys
import time


def quits(ids, scores):
    sys.exit(3)


def is_interrupted(ids, scores):
    raise KeyboardInterrupt("by hand")


def is_endless(ids, scores):
    while True:
        pass


def sleeps(ids, scores):
    time.sleep(10_000)


class QuitsWhenMade:
    def __init__(self):
        sys.exit(4)

    def __call__(self, ids, scores):
        return scores


class EndlessWhenMade:
    def __init__(self):
        while True:
            pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = write(tmp_path_factory.mktemp("bounds"), "llama")
    (made / "own.py").write_text(PROCESSORS)
    (made / "leaves.py").write_text("import sys\nsys.exit(5)\n")
    return made


@pytest.fixture
def brief(monkeypatch):
    """Deadlines of a second, so that a test need not wait for those of the product."""
    monkeypatch.setattr(texts, "SECONDS", 1.0)


def error_of(steps, item) -> ServeError:
    end = steps.ends[item]
    assert isinstance(end, ServeError), end
    return end


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_is_dear_ends_its_own_request(tmp_path, name):
    folder = write(tmp_path, "llama")
    (folder / "chat_template.jinja").write_text(TEMPLATES[name])
    with Steps(folder, slots=SLOTS) as steps:
        bad = steps.add(messages=CHAT)
        good = steps.add(**GOOD)
        steps.run()
        assert steps.answer(good).usage.new_tokens
        error = error_of(steps, bad)
        if error.code is Code.EXPIRED:
            assert list(steps.ends) == [good, bad], "the good one waited for the bad one"
        assert error.code in (Code.EXPIRED, Code.INVALID, Code.MODEL_FAILED)
        assert "'messages'" in error.message
        steps.answers([GOOD])
        assert psutil.Process().memory_info().rss < 2 * 2**30


@pytest.mark.usefixtures("brief")
def test_chats_behind_one_without_end_have_the_same_deadline(tmp_path):
    folder = write(tmp_path, "llama")
    (folder / "chat_template.jinja").write_text(TEMPLATES["loops"])
    with Steps(folder, slots=SLOTS) as steps:
        items = [steps.add(messages=CHAT) for _ in range(SLOTS)]
        steps.run()
        errors = [error_of(steps, item) for item in items]
        assert {error.code for error in errors} == {Code.EXPIRED}
        assert "took longer than 1 s" in errors[0].message
        assert all("others took the 1 s" in error.message for error in errors[1:])


def test_a_prompt_that_cannot_fit_is_refused_unread(folder):
    with Steps(folder, slots=SLOTS, max_context=512) as steps:
        with pytest.raises(
            ServeError, match=r"'prompt' has 8388608 bytes; expected at most 511 tokens"
        ) as caught:
            steps.add(prompts=("a" * 2**23,))
        assert caught.value.code is Code.INVALID
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": SLOTS}


def test_a_prompt_is_refused_by_its_bytes_alone_where_its_tokens_would_be_too_many(folder):
    """Of any two texts, one that is refused unread would have been refused read."""
    refused = []
    with Steps(folder, slots=SLOTS, max_context=64) as steps:
        for size in range(40, 4000, 131):
            told = text(size, size)
            is_long = len(tokenizer()(told)["input_ids"]) > 63
            try:
                item = steps.add(prompts=(told,), sampling=Sampling(max_tokens=1))
            except ServeError:
                refused.append(is_long)
                continue
            steps.run()
            assert isinstance(steps.ends[item], ServeError) is is_long
    assert refused
    assert all(refused)


def long_prompt(letters: int = 8 * 2**20):
    return {"prompts": ("word and " * (letters // 9),), "sampling": Sampling(max_tokens=4, truncate=8)}


def test_others_are_answered_while_a_long_text_is_read(folder):
    with Steps(folder, slots=SLOTS) as steps:
        long = steps.add(**long_prompt(2**20))
        goods = [steps.add(**GOOD) for _ in range(2)]
        steps.run()
        assert list(steps.ends) == [*goods, long]
        assert steps.answer(long).usage.prompt_tokens == 8


def test_no_more_long_texts_wait_than_half_of_the_slots(folder):
    with Steps(folder, slots=SLOTS) as steps:
        items = [steps.add(**long_prompt()) for _ in range(2)]
        with pytest.raises(ServeError, match="2 requests with long texts wait") as caught:
            steps.add(**long_prompt(LONG + 9))
        assert caught.value.code is Code.QUEUE_FULL
        for item in items:
            steps.runner.abort(item)
        assert steps.answers([long_prompt(LONG + 9), GOOD])


def children() -> dict[int, psutil.Process]:
    return {one.pid: one for one in psutil.Process().children(recursive=True)}


def test_the_work_for_a_client_that_has_left_stops(folder):
    before = children().keys()
    with Steps(folder, slots=SLOTS) as steps:
        item = steps.add(**long_prompt())
        worker = _busy(before)
        steps.runner.abort(item)
        worker.wait(20)  # it is killed, and not merely forgotten
        assert not steps.ends
        assert steps.step() is None
        steps.answers([long_prompt(LONG + 9)])


def _busy(before) -> psutil.Process:
    """The process that reads a text, once it is at it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = [one for number, one in children().items() if number not in before]
        if len(found) == 2 and found[1].cpu_times().user > 0.2:
            return found[1]
        time.sleep(0.01)
    raise AssertionError("nobody reads the text")


PANICS = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}


def test_a_tokenizer_that_panics_ends_its_own_request(tmp_path):
    folder = write(tmp_path, "llama")
    told = json.loads((folder / "tokenizer.json").read_text())
    told["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [PANICS, told["pre_tokenizer"]]}
    (folder / "tokenizer.json").write_text(json.dumps(told))
    with Steps(folder, slots=SLOTS) as steps:
        bad = steps.add(prompts=("a" * 40 + "b",))
        good = steps.add(**GOOD)
        steps.run()
        assert steps.answer(good)
        assert "PanicException" in error_of(steps, bad).message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own.py:quits", "SystemExit: 3"),
        ("own.py:is_interrupted", "KeyboardInterrupt: by hand"),
        ("own.py:QuitsWhenMade", "SystemExit: 4"),
        ("own.py:is_endless", "took longer than 0.5 s"),
        ("own.py:sleeps", "took longer than 0.5 s"),
        ("own.py:EndlessWhenMade", "took longer than 0.5 s"),
    ],
)
def test_a_processor_that_would_end_or_keep_the_thread_ends_its_own_request(folder, monkeypatch, name, words):
    monkeypatch.setattr(call_guard.CallGuard.__init__, "__defaults__", (0.5, 60.0))
    named = {"trust_remote_code": "true", "logits_processors": f"chosen={name}"}
    with Steps(folder, slots=SLOTS, **named) as steps:
        bad = steps.add(prompts=("bad",), sampling=Sampling(processor="chosen"))
        good = steps.add(**GOOD)
        steps.run()
        assert steps.answer(good)
        error = error_of(steps, bad)
        assert error.code is Code.MODEL_FAILED
        assert words in error.message
        assert "'chosen'" in error.message
        steps.answers([GOOD])
        assert steps.runner.debug_state() == {"unread": 0, "requests": 0, "free": SLOTS}


def test_a_processors_file_that_would_end_the_thread_keeps_its_model_from_loading(folder):
    with pytest.raises(ServeError, match="SystemExit: 5") as caught:
        Steps(folder, slots=SLOTS, trust_remote_code="true", logits_processors="chosen=leaves.py:x")
    assert caught.value.code is Code.LOAD_FAILED
    assert not [name for name in sys.modules if name.startswith("trivium_folder_leaves")]
