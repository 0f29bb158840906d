"""The index of safetensors, the head of a piece, and that of a GGUF file: each cut and each hostile one is named."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.llm_folders import EMPTY_WEIGHTS, GGUF, gguf

from trivium.formats.checkpoint.gguf import HEAD_BYTES, read_head
from trivium.formats.checkpoint.weights import header_fault, lacking, read_index


def test_an_index_names_each_piece_once() -> None:
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    pieces, faults = read_index("i", json.dumps({"weight_map": {**names, "c": names["a"]}}).encode())
    assert (pieces, faults) == (tuple(names.values()), ())
    (fault,) = lacking("i", dict.fromkeys(pieces, False))
    assert "model-00001-of-00002.safetensors" in str(fault)
    assert lacking("i", dict.fromkeys(pieces, True)) == ()


@pytest.mark.parametrize(
    "piece",
    [
        *("/etc/passwd", "/x.safetensors", "../x.safetensors", "a/../../x.safetensors", "sub/x.safetensors"),
        *("", ".", "..", "x.bin", "a\\b.safetensors", "a\0.safetensors", "x" * 300 + ".safetensors"),
    ],
)
def test_a_piece_outside_of_the_folder_is_refused(piece: str) -> None:
    pieces, (fault,) = read_index("i", json.dumps({"weight_map": {"a": piece}}).encode())
    assert pieces == ()
    assert "not named within the folder" in str(fault)


@pytest.mark.parametrize(
    "document", [{}, {"weight_map": {}}, {"weight_map": []}, {"weight_map": {"a": 1}}, [], 3]
)
def test_an_index_without_a_map_is_refused(document: object) -> None:
    pieces, (fault,) = read_index("i", json.dumps(document).encode())
    assert pieces == ()
    assert fault.expected


@pytest.mark.parametrize(
    ("head", "size", "is_whole"),
    [
        (EMPTY_WEIGHTS, 10, True),
        (EMPTY_WEIGHTS, 9, False),
        (b"", 0, False),
        (b"\0\0\0", 3, False),
        (struct.pack("<Q", 2**63) + b"{", 10_000, False),
        (struct.pack("<Q", 0) + b"{", 100, False),
        (struct.pack("<Q", 2) + b"PK", 10, False),
    ],
)
def test_the_head_of_a_piece(head: bytes, size: int, is_whole: bool) -> None:
    assert (header_fault("f", head, size) is None) is is_whole


def test_a_gguf_tells_its_architecture_and_context() -> None:
    head = read_head("f", GGUF, len(GGUF))
    assert (head.architecture, head.context, head.name) == ("llama", 512, "Tiny")
    assert (head.context_key, head.findings) == ("llama.context_length", ())


def test_what_is_behind_the_head_is_not_missed() -> None:
    data = GGUF[:-10]
    assert read_head("f", data, len(data)).findings
    assert read_head("f", data, len(data) + HEAD_BYTES).architecture == "llama"


@pytest.mark.parametrize("end", range(0, len(GGUF), 3))
def test_a_gguf_that_is_cut_off_is_refused(end: int) -> None:
    (fault,) = read_head("f", GGUF[:end], end).findings
    assert "copy it anew" in fault.hint


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GGML" + GGUF[4:], "begins with b'GGML'"),
        (gguf(version=1), "version 1"),
        (gguf(version=3 << 24), "version"),
        (gguf(tensors=2**40), "tensors"),
        (gguf(keys=2**60), "keys"),
        (gguf(("k", b"\xff\0\0\0")), "type 255"),
        (gguf(("k", struct.pack("<IIQ", 9, 9, 1))), "list of values of type 9"),
        (gguf(("k", struct.pack("<IIQ", 9, 8, 2**60))), "end within the metadata"),
        (gguf(("k", struct.pack("<IIQ", 9, 4, 2**60))), "end within the metadata"),
        (gguf(("k" * 70_000, 1)), "bytes of a key"),
        (gguf(), "no general.architecture"),
        (gguf(("general.architecture", 4)), "no general.architecture"),
        (gguf(("general.architecture", "t5")), "no causal language model"),
    ],
)
def test_what_is_no_language_model_in_gguf_is_refused(data: bytes, words: str) -> None:
    (fault,) = read_head("f", data, len(data)).findings
    assert words in str(fault)


@pytest.mark.parametrize("context", ["many", 0, 2**32 - 1])
def test_a_context_that_cannot_be_is_not_believed(context: object) -> None:
    data = gguf(("general.architecture", "llama"), ("llama.context_length", context))
    assert (read_head("f", data, len(data)).context, read_head("f", data, len(data)).findings) == (0, ())


@given(st.integers(0, len(GGUF) - 1), st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused(at: int, byte: int) -> None:
    data = GGUF[:at] + bytes([byte]) + GGUF[at + 1 :]
    head = read_head("f", data, len(data))
    assert head.architecture or head.findings


@given(st.binary(max_size=200))
def test_any_bytes_behind_the_magic_are_read_or_refused(data: bytes) -> None:
    head = read_head("f", b"GGUF" + data, len(data) + 4)
    assert head.architecture or head.findings
