"""The head of a GGUF file: what is read of it, and that nothing it says is believed unseen."""

import random
import struct
import time
import tracemalloc

import pytest
from tests.harness.llm_folders import gguf

from trivium.codecs.gguf import TOKENS, GgufCut, GgufFault, ListLength, metadata_of, read_head

BLOCKS = {0: (1, 4), 1: (1, 2), 8: (32, 34)}
PAIRS = (
    ("general.architecture", "llama"),
    ("llama.block_count", 2),
    (TOKENS, ["a", "b", "cä"]),
    ("llama.flags", struct.pack("<IIQ3f", 9, 6, 3, 1.0, 2.0, 3.0)),
)


def tensor(name: str, dims: tuple[int, ...], kind: int, start: int) -> bytes:
    """One entry of the table of tensors."""
    data = name.encode()
    made = struct.pack("<Q", len(data)) + data + struct.pack("<I", len(dims))
    return made + b"".join(struct.pack("<Q", one) for one in dims) + struct.pack("<IQ", kind, start)


def file(*tensors: bytes, data: int = 4096, pairs=PAIRS) -> bytes:
    """A whole file."""
    head = gguf(*pairs, tensors=len(tensors)) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(data)


WHOLE = file(tensor("a", (64, 2), 8, 0), tensor("b", (10,), 0, 160))


def test_metadata_and_tensors_are_read() -> None:
    head = read_head(WHOLE, BLOCKS, {TOKENS})
    assert (head.architecture, head.number("block_count"), head.metadata[TOKENS]) == (
        "llama",
        2,
        ["a", "b", "cä"],
    )
    first, second = head.tensors
    assert (first.name, first.shape, first.size, first.numbers) == ("a", (2, 64), 136, 128)
    assert second.start - first.start == 160
    assert first.start % 32 == 0
    assert head.numbers == 138


def test_lists_are_passed_over_unless_they_are_wanted() -> None:
    head = read_head(memoryview(WHOLE), BLOCKS)
    assert head.metadata[TOKENS] == 3
    assert isinstance(head.metadata[TOKENS], ListLength)
    assert head.number("flags") is None
    assert list(read_head(WHOLE, BLOCKS, {"llama.flags"}).metadata["llama.flags"]) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (file(tensor("a", (64,), 8, 0), tensor("b", (64,), 8, 32)), "lie over one another"),
        (file(tensor("a", (64,), 8, 0), tensor("a", (64,), 8, 96)), "same name"),
        (file(tensor("a", (64,), 8, 8)), "do not divide"),
        (file(tensor("a", (65,), 8, 0)), "in blocks of 32"),
        (file(tensor("a", (0,), 0, 0)), "in blocks of 1"),
        (file(tensor("a", (2**40, 2**40), 0, 0)), "in blocks of 1"),
        (file(tensor("a", (1,) * 5, 0, 0)), "5 dimensions"),
        (file(tensor("a", (), 0, 0)), "0 dimensions"),
        (file(tensor("a", (4,), 77, 0)), "type 77"),
        (file(tensor("a", (64,), 0, 2**62)), "ends at"),
        (file(tensor("a", (2**20,), 0, 0)), "ends at"),
        (file(tensor("x" * 2000, (4,), 0, 0)), "bytes of a tensor's name"),
        (file(pairs=(("k", 1), ("k", 2))), "twice"),
        (file(pairs=(("general.alignment", 3),)), "power of two"),
        (file(pairs=(("general.alignment", "x"),)), "power of two"),
        (file(pairs=(("k", struct.pack("<IQ", 8, 2**40)),)), "bytes of a text"),
        (file(pairs=(("k", struct.pack("<IIQ", 9, 8, 2**40)),)), "end within the metadata"),
        (file(pairs=(("k", struct.pack("<IIQ", 9, 12, 2**62)),)), "end within the metadata"),
    ],
)
def test_what_contradicts_itself_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(GgufFault, match=words):
        read_head(data, BLOCKS, {"k"})


def test_a_file_that_ends_too_soon_is_cut() -> None:
    for end in range(len(WHOLE) - 4096 + 200):
        with pytest.raises(GgufFault):
            read_head(WHOLE[:end], BLOCKS)
    with pytest.raises(GgufCut):
        dict(metadata_of(WHOLE[:60]))


def test_mutants_are_read_or_refused_at_once_and_take_no_memory() -> None:
    chance = random.Random(37)
    words = [f"word {i}" for i in range(300)]
    whole = file(tensor("a", (64, 2), 8, 0), tensor("b", (10,), 0, 160), pairs=(*PAIRS[:2], (TOKENS, words)))
    head = len(whole) - 4096
    refused = 0
    tracemalloc.start()
    began = time.process_time()
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(head)
            if chance.random() < 0.5:
                data[at] = chance.randrange(256)
            else:  # a count, a length or a size
                data[at : at + 8] = struct.pack(
                    "<Q", chance.choice((0, 1, 2**31, 2**32 - 1, 2**62, 2**64 - 1))
                )
        try:
            read_head(memoryview(bytes(data)), BLOCKS, {TOKENS})
        except GgufFault as error:
            refused += bool(str(error))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused > 1000
    assert most < 2**22
    assert time.process_time() - began < 60
