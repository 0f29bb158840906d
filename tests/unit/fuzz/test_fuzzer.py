"""The fuzzer finds parsers that are broken in each way it looks for, and makes every input again."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fuzz import mutations
from tests.fuzz.runner import Bounds, FuzzFailure, run
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

from trivium.types.errors import Code, ServeError

CORPUS = (b"[1, 2, 3]", b"\0\0\0\5hello", b'{"a": [1]}')
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that read and write hostile files
BOUNDS = Bounds(seconds=0.2, growth=2**23, warm_up=50)


def target(read: Callable[[bytes, random.Random], object], **more: object) -> Target:
    return Target("broken", CORPUS, read, **more)  # type: ignore[arg-type]


def read_well(data: bytes, chance: random.Random) -> None:
    if not data.startswith(b"["):
        raise ServeError(Code.INVALID, "It begins with no bracket. Write one.")


def forget_the_end(data: bytes, chance: random.Random) -> int:
    return data[4]


def go_on_for_ever(data: bytes, chance: random.Random) -> None:
    at = 0
    while at < len(data):
        at += data[at] and 1


def compute_in_one_call(data: bytes, chance: random.Random) -> int:
    return 3 ** (2**21) % 7 if 0 in data else 0


def take_what_is_claimed(data: bytes, chance: random.Random) -> bytearray:
    return bytearray(int.from_bytes(data[:4], "big") * 1000)


def swallow(data: bytes, chance: random.Random) -> None:
    try:
        go_on_for_ever(data, chance)
    except Exception as error:
        raise ServeError(Code.INVALID, "It is broken. Send another.") from error


HELD: list[bytearray] = []


def keep(data: bytes, chance: random.Random) -> None:
    HELD.append(bytearray(b"x" * 2**17))


def test_a_good_parser_passes() -> None:
    report = run(target(read_well), 1, 500, bounds=BOUNDS)
    assert report.read + report.refused == 500
    assert report.read > 50
    assert report.refused > 50


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (forget_the_end, "it raised IndexError: index out of range at test_fuzzer.py"),
        (go_on_for_ever, "it took more than 0.2 s of processor time"),
        (swallow, "it took more than 0.2 s of processor time"),
        (take_what_is_claimed, "it raised MemoryError"),
    ],
)
def test_a_broken_parser_is_found(read: Callable[[bytes, random.Random], object], words: str) -> None:
    with pytest.raises(FuzzFailure) as found:
        run(target(read), 7, 500, bounds=BOUNDS)
    error = found.value
    data, _ = target(read).input(7, error.index)
    text = str(error)
    assert words in text
    assert f"{len(data)} bytes in hex: {data.hex()[:4096]}" in text
    assert f"python -m tests.fuzz --target broken --seed 7 --index {error.index}" in text
    with pytest.raises(FuzzFailure):
        run(target(read), 7, 1, error.index, BOUNDS)


def test_one_long_call_is_found() -> None:
    with pytest.raises(FuzzFailure, match="of processor time"):
        run(target(compute_in_one_call), 1, 500, bounds=Bounds(seconds=0.005))


def test_a_parser_that_keeps_what_it_read_is_found() -> None:
    with pytest.raises(FuzzFailure, match="with 400 inputs the process has grown by"):
        run(target(keep), 1, 400, bounds=BOUNDS)
    HELD.clear()


def test_what_is_no_refusal_of_the_parser_fails() -> None:
    with pytest.raises(FuzzFailure, match="ServeError"):
        run(target(read_well, refusals=(ValueError,)), 1, 500, bounds=BOUNDS)


def test_inputs_follow_from_target_seed_and_index() -> None:
    for one in TARGETS.values():
        made = [one.input(3, index) for index in range(20)]
        assert [data for data, _ in made] == [one.input(3, index)[0] for index in range(20)]
        assert len({data for data, _ in made}) > 5
        assert [chance.random() for _, chance in made] == [one.input(3, at)[1].random() for at in range(20)]


def test_every_entry_of_every_corpus_is_itself_no_fault() -> None:
    for one in TARGETS.values():
        taken = 0
        for seed, entry in enumerate(one.corpus * 3):
            try:
                one.read(entry, random.Random(seed))
                taken += 1
            except one.refusals:
                continue
        assert taken, one.name


@pytest.mark.parametrize("mutation", mutations.GENERAL)
def test_a_mutation_works_at_every_place(mutation: mutations.Mutation) -> None:
    for at in range(len(CORPUS[0])):
        for seed in range(20):
            mutation(bytearray(CORPUS[0]), at, random.Random(seed))


def test_json_is_changed_as_json() -> None:
    text = b'{"inputs": [{"name": "x", "shape": [1, 2]}], "id": "1"}'
    made = {mutations.json_changed(text, random.Random(seed)) for seed in range(300)}
    assert len(made) > 100
    assert any(b"\\ud800" in each for each in made)
    assert any(b"[[[[[[" in each for each in made)
    assert mutations.json_changed(b"no JSON", random.Random(1)) == b"no JSON"


def test_the_command_shows_one_input() -> None:
    words = [sys.executable, "-m", "tests.fuzz", "--target", "ndlist", "--seed", "1", "--index", "4711"]
    root = Path(__file__).parents[3]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert TARGETS["ndlist"].input(1, 4711)[0].hex() in done.stdout
