"""Answers that nobody waits for: kept, fetched in pages, bounded in number, bytes and age."""

from collections.abc import Callable

import pytest

from trivium.core.queueing.deferred import DeferredAnswers, Write
from trivium.core.queueing.kept_payload import PER_PART
from trivium.types.buffers import Lease
from trivium.types.core_config import DeferredLimits
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generated, GeneratedChoice
from trivium.types.interfaces import Sink
from trivium.types.operations import Defer, Fetch, Infer, ResponsePart
from trivium.types.payload import Payload, Raw, RawPart

SIZE = 100
COST = SIZE + PER_PART


class Run:
    """A run that the store has begun: its sink, and what its ticket was told."""

    def __init__(self, infer: Infer, sink: Sink) -> None:
        self.infer, self.sink = infer, sink
        self.told: list[str] = []

    def cancel(self, why: ServeError) -> None:
        self.told.append("cancel")

    def hold(self) -> None:
        self.told.append("hold")

    def resume(self) -> None:
        self.told.append("resume")

    def answer(self, text: bytes = b"x" * SIZE, final: bool = True) -> None:
        self.sink(ResponsePart(Raw((RawPart(text),)), final=final))


class Stage:
    def __init__(self, **limits: float) -> None:
        self.now = 0.0
        self.runs: list[Run] = []
        self.at_once: Callable[[Sink], None] | None = None
        numbers = iter(range(1000))
        found = DeferredLimits(**{"count": 3, "size": 10 * COST, "age": 60.0, **limits})  # type: ignore[arg-type]
        self.elsewhere: list[Callable[[], None]] = []
        self.store = DeferredAnswers(
            found, lambda: self.now, lambda: f"t{next(numbers)}", self.submit, self.offload
        )

    def offload(
        self, work: Callable[[], ResponsePart | None], done: Callable[[ResponsePart | None], None]
    ) -> None:
        self.elsewhere.append(lambda: done(work()))

    def submit(self, infer: Infer, sink: Sink) -> Run:
        run = Run(infer, sink)
        self.runs.append(run)
        if self.at_once is not None:
            self.at_once(sink)
        return run

    def begin(self, payload: Payload | None = None, write: Write | None = None) -> tuple[str, Run]:
        token = self.store.begin(Defer(Infer("m", payload or Raw((RawPart(b""),))), write)).token
        return token, self.runs[-1]

    def page(self, token: str, first: int = 0, most: int = 0) -> tuple[bytes, int, bool]:
        found = self.store.fetch(Fetch(token, first, most))
        data = b"".join(bytes(p.payload.parts[0].data) for p in found.parts if isinstance(p.payload, Raw))
        return data, found.following, found.is_last

    def is_unknown(self, token: str, first: int = 0) -> bool:
        try:
            self.store.fetch(Fetch(token, first))
        except ServeError as error:
            return error.code is Code.NOT_FOUND
        return False


def test_nothing_then_a_page_then_the_last_one() -> None:
    stage = Stage()
    token, run = stage.begin()
    assert stage.page(token) == (b"", 0, False)
    run.answer(b"a", final=False)
    assert stage.page(token) == (b"a", 1, False)
    run.answer(b"b", final=False)
    run.answer(b"c")
    assert stage.page(token, 1) == (b"bc", 3, True)


@pytest.mark.parametrize("most", [1, 2, 3, 0])
def test_pages_joined_are_the_answer(most: int) -> None:
    stage = Stage()
    token, run = stage.begin()
    pieces = [b"%d" % number for number in range(7)]
    for piece in pieces:
        run.answer(piece, final=piece == pieces[-1])
    joined, first, is_last = b"", 0, False
    while not is_last:
        data, first, is_last = stage.page(token, first, most)
        joined += data
    assert joined == b"0123456"


def test_a_page_may_be_asked_for_again_until_the_next_one_is() -> None:
    stage = Stage()
    token, run = stage.begin()
    for piece in (b"a", b"b", b"c"):
        run.answer(piece, final=piece == b"c")
    assert stage.page(token, 0, 1) == stage.page(token, 0, 1) == (b"a", 1, False)
    assert stage.page(token, 1) == (b"bc", 3, True)
    assert stage.page(token, 3) == (b"", 3, True)
    assert stage.is_unknown(token, 0)
    assert stage.is_unknown(token, 9)
    assert stage.is_unknown("invented")


def test_a_request_counts_until_it_ends() -> None:
    stage = Stage(size=2 * COST)
    asked = Raw((RawPart(b"y" * COST),))
    token, run = stage.begin(asked)
    other, _ = stage.begin(asked)
    assert stage.store.size == 2 * COST
    with pytest.raises(ServeError, match="--deferred-bytes") as caught:
        stage.begin(asked)
    assert caught.value.code is Code.QUEUE_FULL
    assert not stage.is_unknown(token)
    run.answer()
    assert stage.store.size == 2 * COST
    stage.begin(asked)  # what is whole makes room
    assert (stage.is_unknown(token), stage.is_unknown(other), stage.store.size) == (True, False, 2 * COST)
    stage.now = 61
    assert stage.is_unknown(other)
    assert stage.store.size == 0


def test_a_leased_request_is_booked_with_its_lease() -> None:
    """Whoever runs it holds that; here nothing of it is copied, or counted again."""
    stage = Stage()
    asked = Raw((RawPart(b"y" * COST),), lease=Lease(memoryview(b""), lambda lease: None))
    _, run = stage.begin(asked)
    assert run.infer.payload is asked
    assert stage.store.size == 0


def test_what_is_refused_at_once_gets_no_token() -> None:
    stage = Stage()
    stage.at_once = lambda sink: sink(ResponsePart(error=ServeError(Code.QUEUE_FULL, "full")))
    with pytest.raises(ServeError, match="full"):
        stage.begin()
    assert (len(stage.store), stage.store.size) == (0, 0)


def test_of_too_many_the_oldest_goes_and_what_runs_for_it_ends() -> None:
    stage = Stage()
    tokens = [stage.begin()[0] for _ in range(4)]
    assert stage.is_unknown(tokens[0])
    assert [run.told for run in stage.runs] == [["cancel"], [], [], []]
    stage.runs[0].answer()
    assert stage.store.size == 0


def test_what_is_too_old_goes() -> None:
    stage = Stage()
    token, run = stage.begin()
    run.answer()
    stage.now = 61
    assert stage.is_unknown(token)
    assert (len(stage.store), stage.store.size) == (0, 0)


def test_whole_answers_make_room_for_one_that_grows() -> None:
    stage = Stage(size=2 * COST)
    old, run = stage.begin()
    run.answer()
    _, growing = stage.begin()
    growing.answer(final=False)
    assert not stage.is_unknown(old)
    growing.answer(final=False)
    assert stage.is_unknown(old)
    assert growing.told == []


def test_one_that_grows_beyond_the_bound_holds_its_producer_until_it_is_fetched() -> None:
    stage = Stage(size=2 * COST)
    token, run = stage.begin()
    for _ in range(3):
        run.answer(final=False)
    assert run.told == ["hold"]
    stage.page(token, 0, 3)
    assert run.told == ["hold"]
    stage.page(token, 3)
    assert run.told == ["hold", "resume"]
    assert stage.store.size == 0


def test_an_answer_that_is_too_large_becomes_a_sentence() -> None:
    stage = Stage(size=2 * COST)
    token, run = stage.begin()
    run.answer(b"x" * 3 * COST)
    (part,) = stage.store.fetch(Fetch(token)).parts
    assert part.error is not None
    assert part.error.code is Code.TOO_LARGE
    assert stage.store.size == PER_PART


def test_many_that_nobody_fetches_take_what_the_bounds_say() -> None:
    stage = Stage(count=50, size=20 * COST)
    for _ in range(990):
        _, run = stage.begin()
        run.answer()
        assert stage.store.size <= 20 * COST
        assert len(stage.store) <= 50
    stage.store.close()
    assert (len(stage.store), stage.store.size) == (0, 0)


def text(word: str, final: bool = False) -> ResponsePart:
    return ResponsePart(Generated((GeneratedChoice(0, word),)), final=final)


def in_capitals(part: ResponsePart) -> ResponsePart | None:
    """What is kept of a text; nothing of one that is empty, and of "end" that nothing will follow."""
    assert isinstance(part.payload, Generated)
    word = part.payload.choices[0].text
    kept = Raw((RawPart(word.upper().encode()),))
    return ResponsePart(kept, final=part.final or word == "end") if word else None


def test_what_is_kept_is_what_was_written() -> None:
    stage = Stage()
    token, run = stage.begin(write=in_capitals)
    for word in ("a", "", "b", "end", "never"):
        run.sink(text(word))
    assert stage.page(token, 0, 2) == (b"AB", 2, False)
    assert stage.page(token, 2) == (b"END", 3, True)
    assert stage.elsewhere == []


def test_the_last_of_a_text_is_written_elsewhere() -> None:
    stage = Stage()
    token, run = stage.begin(write=in_capitals)
    dropped, other = stage.begin(write=in_capitals)
    run.sink(text("a"))
    run.sink(text("b", final=True))
    other.sink(text("c", final=True))
    assert stage.page(token, 1) == (b"", 1, False)
    stage.store.close()
    for write in stage.elsewhere:
        write()
    assert stage.is_unknown(dropped)
    assert (len(stage.store), stage.store.size) == (0, 0)
    token, run = stage.begin(write=in_capitals)
    run.sink(text("d", final=True))
    stage.elsewhere[-1]()
    assert stage.page(token) == (b"D", 1, True)
    assert run.told == []
