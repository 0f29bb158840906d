"""MANIFEST.json: what is read, and that every fault is named with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.servers.torchserve.words.manifest import MAX_BYTES, handler_ref, read_manifest
from trivium.types.findings import Severity

WHOLE = {
    "createdOn": "01/02/2026 03:04:05",
    "runtime": "python",
    "model": {
        "modelName": "digits",
        "serializedFile": "weights.pt",
        "handler": "handler.py:run",
        "modelFile": "net.py",
        "modelVersion": "1.0",
        "requirementsFile": "requirements.txt",
        "configFile": "model-config.yaml",
    },
    "archiverVersion": "0.12.0",
    "somethingElse": [1],
}


def test_a_whole_manifest() -> None:
    manifest = read_manifest("M", json.dumps(WHOLE, indent=2).encode())
    assert manifest.findings == ()
    assert (manifest.name, manifest.version, manifest.handler) == ("digits", "1.0", "handler.py:run")
    assert (manifest.serialized_file, manifest.model_file) == ("weights.pt", "net.py")
    assert (manifest.requirements_file, manifest.config_file) == ("requirements.txt", "model-config.yaml")
    assert manifest.document == WHOLE
    assert manifest.lines["model.handler"] == 7


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"runtime": "LSP"}, "runtime", "C++"),
        ({"runtime": None}, "runtime", "missing"),
        ({"runtime": "ruby"}, "runtime", "ruby"),
        ({"model": None}, "model", "missing"),
        ({"model": [1]}, "model", "[1]"),
        ({"model": {"modelName": ""}}, "model.modelName", "''"),
        ({"model": {"modelName": 5}}, "model.modelName", "5"),
        ({"model": {"modelVersion": None}}, "model.modelVersion", "missing"),
        ({"model": {"handler": "../evil.py"}}, "model.handler", "evil"),
        ({"model": {"handler": "/evil.py:f"}}, "model.handler", "evil"),
        ({"model": {"serializedFile": "a/../../b"}}, "model.serializedFile", "a/../../b"),
        ({"model": {"configFile": "a\nb"}}, "model.configFile", "a\\nb"),
    ],
)
def test_faults(change: dict[str, object], key: str, words: str) -> None:
    document = {**WHOLE, **change}
    if isinstance(change.get("model"), dict):
        document["model"] = {**WHOLE["model"], **change["model"]}  # type: ignore[dict-item]
    findings = read_manifest("M", json.dumps(document).encode()).findings
    mine = [finding for finding in findings if finding.key == key]
    assert len(mine) == 1
    assert mine[0].severity is Severity.ERROR
    assert words in str(mine[0])
    assert mine[0].hint


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff{}",
        b"[" * 10**5,
        b" " * (MAX_BYTES + 1),
        b'{"a": 1' + b"0" * 5000 + b"}",
    ],
)
def test_what_is_no_manifest(data: bytes) -> None:
    (finding, *_) = read_manifest("M", data).findings
    assert finding.severity is Severity.ERROR


@given(
    st.binary()
    | st.recursive(
        st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ).map(lambda v: json.dumps({"model": v}).encode())
)
def test_never_raises(data: bytes) -> None:
    read_manifest("M", data)


@pytest.mark.parametrize(
    ("text", "file", "function", "name"),
    [
        ("h.py", "h.py", "", "h"),
        ("h", "h.py", "", "h"),
        ("d/h.py:run", "d/h.py", "run", "h"),
        ("d/h:run", "d/h.py", "run", "h"),
        ("base_handler", "base_handler.py", "", "base_handler"),
    ],
)
def test_handlers(text: str, file: str, function: str, name: str) -> None:
    ref = handler_ref(text)
    assert (ref.file, ref.function, ref.name) == (file, function, name)
